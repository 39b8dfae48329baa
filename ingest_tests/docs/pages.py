"""The Markdown pages of the project, parsed for the tests: blocks, links, headings, names."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest_assets.cli.main import COMMANDS, load_command
from ingest_tests.architecture.test_project import PROJECT
from ingest_tests.docs.reference import FOLDER, slug

_BLOCK = re.compile(r"(?ms)(?:^<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$")
_NOT_RUN = "not run: "


@dataclass(frozen=True)
class Block:
    """A code block; `why_not_run` is the comment above it: `<!-- not run: needs a server -->`."""

    page: str
    language: str
    text: str
    why_not_run: str

    def commands(self) -> Iterator[list[str]]:
        """Return the words of each shell command, without comments and with continued lines joined."""
        for line in self.text.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield words


@dataclass(frozen=True)
class Page:
    """One Markdown file of the project."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def prose(self) -> str:
        """Return the text without its code blocks."""
        return _BLOCK.sub("", self.text)

    def blocks(self, *languages: str) -> list[Block]:
        """Return the code blocks in some languages."""
        blocks = []
        for match in _BLOCK.finditer(self.text):
            note = match["note"] or ""
            why = note.removeprefix(_NOT_RUN) if note.startswith(_NOT_RUN) else ""
            if match["language"] in languages:
                blocks.append(Block(self.name, match["language"], match["text"], why))
        return blocks

    def links(self) -> list[str]:
        """Return the targets of all links and images."""
        return re.findall(r"\]\(([^)\s]+)\)", self.prose())

    def anchors(self) -> set[str]:
        """Return the anchors of all headings."""
        return {slug(heading) for heading in re.findall(r"(?m)^#+ (.+)$", self.prose())}

    def named(self, pattern: str) -> list[str]:
        """Return the inline code that matches a pattern completely."""
        return [code for code in re.findall(r"`([^`\n]+)`", self.prose()) if re.fullmatch(pattern, code)]


PAGES = [Page(PROJECT / "README.md"), *(Page(path) for path in sorted(FOLDER.glob("*.md")))]


def fault_of(words: list[str]) -> str:
    """What is wrong with a shell command of a page; empty when nothing is.

    Values are not looked at: `ingest inspect DOC` is fine, `ingest inspekt DOC` and a wrong flag are not.
    """
    if words[0] == "make":
        targets = re.findall(r"(?m)^([a-z-]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"))
        return "" if set(_without_values(words[1:])) <= set(targets) else f"no such target: {words}"
    if words[0] != "ingest":
        return "" if words[0] in _OTHERS else f"unknown command: {words[0]}"
    return _fault_of_ours(words[1:])


# Commands of other programs that a page may show.
_OTHERS = {
    ".",
    "cd",
    "git",
    "pip",
    "python",
    "docker",
    "ray",
    "dagster",
    "dg",
    "export",
    "curl",
    "cp",
    "kill",
    "mkdir",
}


def _without_values(words: list[str]) -> list[str]:
    return [word for word in words if "=" not in word]


def _fault_of_ours(words: list[str]) -> str:
    if not words or words[0].startswith("-"):
        known = {"--help", "--install-completion", "--show-completion"}
        return "" if set(words) <= known else f"no such flag: {words}"
    if words[0] not in COMMANDS:
        return f"no such command: ingest {words[0]}"
    command: Any = load_command(words[0])
    flags = words[1:]
    if below := getattr(command, "commands", None):
        if not flags:
            return ""
        if flags[0] not in below:
            return f"no such command: ingest {words[0]} {flags[0]}"
        command, flags = below[flags[0]], flags[1:]
    known = {name for each in command.params for name in [*each.opts, *each.secondary_opts]} | {"--help"}
    unknown = [flag for flag in flags if flag.startswith("--") and flag.split("=")[0] not in known]
    return f"no such flag of ingest {' '.join(words[:2])}: {unknown}" if unknown else ""
