"""A terminal with a shell: type commands, read the screen, and press Ctrl-C like a user."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping

CTRL_C = b"\x03"
PROMPT = re.compile(r"<back (\d+)>")


class Terminal:
    """An interactive bash on its own terminal. Each command is a foreground job, as in real use."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        self._text = bytearray()
        self.shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            env={**environment, "PS1": "<back $?>", "TERM": "xterm"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        threading.Thread(target=self._read, daemon=True).start()
        self.wait_for(PROMPT.pattern)

    def type(self, line: str) -> None:
        """Type a command on a clear screen."""
        self._text.clear()
        os.write(self._master, line.encode() + b"\n")

    def press(self, keys: bytes = CTRL_C) -> float:
        """Press a key; return the time."""
        os.write(self._master, keys)
        return time.monotonic()

    @property
    def screen(self) -> str:
        """Return everything printed since the command was typed."""
        return self._text.decode("utf-8", "replace")

    def wait_for(self, pattern: str, seconds: float = 60) -> re.Match[str]:
        """Wait until the screen shows the text."""
        deadline = time.monotonic() + seconds
        while (match := re.search(pattern, self.screen)) is None:
            assert time.monotonic() < deadline, f"{pattern} is not on the screen: {self.screen[-2000:]!r}"
            time.sleep(0.02)
        return match

    def exit_code(self, seconds: float = 60) -> int:
        """Wait for the prompt; return the command's exit code."""
        return int(self.wait_for(PROMPT.pattern, seconds)[1])

    def close(self) -> None:
        """Leave the shell, whatever still runs in it."""
        self.shell.send_signal(signal.SIGHUP)
        self.shell.wait(timeout=30)
        os.close(self._master)

    def _read(self) -> None:
        try:
            while text := os.read(self._master, 65536):
                self._text += text
        except OSError:  # hung up
            return
