"""Lists: valid lines are queued, malformed ones are reported with their numbers."""

import codecs
import io
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.app.home import open_home
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.import_list import MAX_LINE_BYTES, ArtifactList, ImportReport
from ingest_assets.intake.queue.queue import Queue
from ingest_assets.settings.intake import QueueOptions
from ingest_tests.conftest import Command, clean_environment


def _write(folder: Path, *lines: str | bytes) -> Path:
    file = folder / "list.jsonl"
    file.write_bytes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))
    return file


def _url(number: int) -> str:
    return json.dumps({"url": f"https://a.org/{number}"})


def test_a_list_is_imported_and_importing_it_again_changes_nothing(ingest: Command, tmp_path: Path):
    """Known ids and ids repeated in the list are duplicates alike."""
    file = _write(tmp_path, _url(1), "", _url(2), '{"url": "HTTPS://a.org:443/1#x"}')

    first, again = ingest.json("queue", "import", file), ingest.json("queue", "import", file)

    assert (first["new"], first["duplicate"], first["malformed"]) == (2, 1, [])
    assert (again["new"], again["duplicate"], again["malformed"]) == (0, 3, [])
    assert ingest.json("queue", "stats")["states"]["queued"] == 2


BAD: list[tuple[str | bytes, str]] = [
    ("{", "should be a JSON object; Expecting property name enclosed in double quotes at column 2"),
    ("[]", "should be a JSON object, got a list"),
    ('"https://a.org"', "should be a JSON object, got a string"),
    ("null", "should be a JSON object, got null"),
    ('{"id": "a"}', "should have either url or path"),
    ('{"path": "x.md"}', "id: missing; required without a url"),
    ('{"id": 7, "path": "x.md"}', "id: should be a valid string"),
    ('{"id": "a", "path": ""}', "path: should have at least 1 character"),
    ('{"id": "a", "id": "b", "path": "x"}', "id: duplicate key"),
    ('{"id": "a", "path": "x", "meta": {"k": {"j": 1, "j": 2}}}', "j: duplicate key"),
    (
        '{"id": "a", "path": "x", "metadata": {}}',
        "metadata: unknown key; known keys are id, url, path, resolver, meta, max_attempts, not_before",
    ),
    ('{"id": "a", "path": "x", "not_before": NaN}', "should be JSON, which has no NaN"),
    (f'{{"id": "a", "path": "x", "max_attempts": {"9" * 5000}}}', "should have numbers of at most"),
    ('{"id": "a\\u0000", "path": "x"}', "id: should not contain NUL characters or lone surrogates"),
    ('{"id": "a", "path": "x", "new\\nline": 1}', "new�line: unknown key"),
    ('{"id": "a", "path": "x", "\\ud800": 1}', "should be a valid string"),
    (b'{"id": "\xff", "path": "x"}', "should be UTF-8 text; byte 9 is not"),
    (b"\x00", "should be a JSON object; Expecting value at column 1"),
    ('{"url": "ftp://a.org"}', "ftp://a.org has scheme ftp, but only http and https are fetched"),
    ('{"id": "a", "path": "x", "meta": ' + '{"k":' * 50_000 + "1" + "}" * 50_001, "nested too deeply"),
    ('{"id": "' + "a" * MAX_LINE_BYTES + '"}', "should have at most 1,048,576 bytes"),
]


def test_each_malformed_line_is_named_with_what_was_expected(ingest: Command, tmp_path: Path):
    """The valid lines between them are queued."""
    lines = [line for number, (bad, _) in enumerate(BAD) for line in (_url(number), bad)]

    result = ingest.json("queue", "import", _write(tmp_path, *lines), check=1)

    assert result["exit_code"] == 1
    assert result["new"] == len(BAD)
    assert [wrong["line"] for wrong in result["malformed"]] == list(range(2, 2 * len(BAD) + 1, 2))
    for wrong, (_, reason) in zip(result["malformed"], BAD, strict=True):
        assert reason in wrong["reason"]


def test_the_text_shows_twenty_malformed_lines_and_the_number_of_others(ingest: Command, tmp_path: Path):
    """A list in the wrong format must not flood a terminal."""
    done = ingest("queue", "import", _write(tmp_path, *(["oops"] * 25), _url(1)), check=1)

    assert "1 new, 0 duplicate and 25 malformed lines" in done.stdout
    lines = done.stderr.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [f"line {number}" for number in range(1, 21)]
    assert lines[-1] == "and 5 more malformed lines; --json lists all."


def test_a_limit_takes_lines_from_the_front_and_says_that_there_is_more(ingest: Command, tmp_path: Path):
    """To try a list out; a malformed line counts too."""
    file = _write(tmp_path, _url(1), "", "oops", _url(2), _url(3))

    some = ingest.json("queue", "import", file, "--limit", 3, check=1)
    exact = ingest.json("queue", "import", file, "--limit", 4, check=1)

    assert (some["new"], len(some["malformed"]), some["has_more"]) == (2, 1, True)
    assert (exact["new"], exact["duplicate"], exact["has_more"]) == (1, 2, False)
    assert "--limit" in ingest("queue", "import", file, "--limit", 1).stdout


def test_byte_order_marks_and_line_ends_of_other_systems_are_accepted(ingest: Command, tmp_path: Path):
    """As written by Windows and by shells."""
    file = tmp_path / "list.jsonl"
    file.write_bytes(f"\ufeff{_url(1)}\r\n \t\r\n{_url(2)}".encode())

    assert ingest.json("queue", "import", file)["new"] == 2


def test_relative_paths_start_at_the_lists_folder(ingest: Command, tmp_path: Path):
    """So a list can be moved with its files."""
    folder = tmp_path / "travelling"
    folder.mkdir()
    file = _write(folder, '{"id": "r", "path": "in/x.md"}', '{"id": "a", "path": "/abs/x.md"}')

    ingest("queue", "import", file)

    queue = open_home(ingest.home).queue
    paths = [artifact.path if (artifact := queue.get(name)) else None for name in ("r", "a")]
    assert paths == [str(folder / "in/x.md"), "/abs/x.md"]


def test_a_list_can_be_read_from_standard_input(ingest: Command, tmp_path: Path):
    """From a pipe; relative paths start at the current folder."""
    done = subprocess.run(
        ingest.line("queue", "import", "-", "--json"),
        input=f'{_url(1)}\noops\n{{"id": "f", "path": "x.md"}}\n',
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["new"] == 2
    found = open_home(ingest.home).queue.get("f")
    assert found is not None
    assert found.path == str(tmp_path / "x.md")


@pytest.mark.parametrize("what", ["missing.jsonl", "."])
def test_a_list_that_cannot_be_read_is_wrong_usage(ingest: Command, tmp_path: Path, what: str):
    """One line, and no home is created."""
    done = ingest("queue", "import", tmp_path / what, check=2)

    (line,) = done.stderr.splitlines()
    assert line.startswith(f"ingest: {tmp_path / what}: cannot be read (")
    assert list(ingest.home.iterdir()) == []


class _Cut(io.BytesIO):
    """A stream that is interrupted after some lines."""

    def __init__(self, content: bytes, lines: int) -> None:
        super().__init__(content)
        self._lines = lines

    def readline(self, size: int | None = -1, /) -> bytes:
        self._lines -= 1
        if self._lines < 0:
            raise KeyboardInterrupt
        return super().readline(-1 if size is None else size)


def test_an_interrupted_import_keeps_what_was_stored_and_goes_on_when_repeated(tmp_path: Path):
    """A thousand lines are stored at a time."""
    content = "".join(f"{_url(number)}\n" for number in range(2500)).encode()
    queue = Queue(Ledger(tmp_path / "ledger.sqlite").database, QueueOptions())
    cut, whole = ImportReport(), ImportReport()

    with pytest.raises(KeyboardInterrupt):
        ArtifactList(_Cut(content, 2200), tmp_path).store(queue, time.time(), cut)
    ArtifactList(io.BytesIO(content), tmp_path).store(queue, time.time(), whole)

    assert (cut.new, cut.duplicate) == (2000, 0)
    assert (whole.new, whole.duplicate) == (500, 2000)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_GOOD = st.fixed_dictionaries(
    {"id": st.integers(0, 5).map("good {}".format)},
    optional={
        "meta": st.dictionaries(st.text(max_size=3), st.integers()),
        "resolver": st.none() | st.sampled_from(["http", "mine"]),
        "max_attempts": st.none() | st.integers(1, 100),
    },
).map(lambda fields: {**fields, "path": "x.md"})
_ANY_BYTES = st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b" "))
_ANY_LINE = _ANY_BYTES | _JSON.map(lambda value: json.dumps(value).encode())
_CUT_LINE = st.tuples(_GOOD, st.integers(1, 20)).map(lambda drawn: json.dumps(drawn[0])[: -drawn[1]].encode())


@given(
    st.lists(_GOOD.map(lambda line: (True, line)) | (_ANY_LINE | _CUT_LINE).map(lambda line: (False, line)))
)
def test_good_lines_survive_whatever_bad_lines_surround_them(lines: list[tuple[bool, Any]]):
    """The report counts every line that is not blank, once."""
    content = [json.dumps(line).encode() if is_good else line for is_good, line in lines]
    ledger, report = Ledger(None), ImportReport()
    queue = Queue(ledger.database, QueueOptions())

    ArtifactList(io.BytesIO(b"\n".join(content)), Path("/lists")).store(queue, 1.0, report)

    good = {line["id"] for is_good, line in lines if is_good}
    good_lines = sum(is_good for is_good, _ in lines)
    assert all(queue.get(name) is not None for name in good)
    assert (report.new, report.duplicate) == (len(good), good_lines - len(good))
    blank = sum(not line.removeprefix(codecs.BOM_UTF8).strip() for line in content)
    assert report.new + report.duplicate + report.malformed == len(content) - blank
    assert {wrong.line for wrong in report.kept}.isdisjoint(
        number for number, (is_good, _) in enumerate(lines, 1) if is_good
    )
    ledger.close()
