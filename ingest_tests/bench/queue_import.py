"""`ingest queue import` of 100,000 lines with 100 malformed ones: seconds, rows, and reported numbers."""

import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from ingest_assets.app.home import open_home
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.conftest import Command

LINES = 100_000
LINES_PER_BAD_ONE = 1000
HOSTS = 500


def measure(size: Size) -> list[Figure]:
    """Run the real command in a separate process, including its start; then import the same list again."""
    count = size.of(LINES)
    with tempfile.TemporaryDirectory() as folder:
        file, bad = Path(folder) / "list.jsonl", list(range(7, count + 1, LINES_PER_BAD_ONE))
        file.write_text("".join(map(_line, range(1, count + 1))), encoding="utf-8")
        command = Command(Path(folder) / "home")
        command.home.mkdir()
        result, first_s = _imported(command, file)
        again, again_s = _imported(command, file)
        rows = open_home(command.home).queue.stats(time.time()).total
    assert (again["new"], again["duplicate"]) == (0, count - len(bad))
    named = [wrong["line"] for wrong in result["malformed"]]
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return [
        Figure(f"import of {count:,} lines", first_s, "s", "<", 30),
        Figure("rows that are not there", count - len(bad) - rows, "", "=", 0),
        Figure("malformed lines named", sum(map(bad.__contains__, named)), "", "=", len(bad)),
        Figure("good lines named as malformed", len(set(named) - set(bad)), "", "=", 0),
        Figure("the same list again", again_s, "s"),
        Figure("memory at most", peak_mib, "MiB"),
    ]


def _imported(command: Command, file: Path) -> tuple[dict[str, Any], float]:
    started = time.perf_counter()
    done = command.apart("queue", "import", file, "--json", check=None)
    return json.loads(done.stdout), time.perf_counter() - started


def _line(number: int) -> str:
    """Return an artifact with metadata; every other one has its URL as id, and some are truncated."""
    given: dict[str, Any] = {"url": f"https://h{number % HOSTS}.org/{number}", "meta": {"number": number}}
    if number % 2:
        given["id"] = f"artifact-{number}"
    text = json.dumps(given)
    return f"{text[:-1] if number % LINES_PER_BAD_ONE == 7 else text}\n"
