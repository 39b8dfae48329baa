"""Identical bytes: one document, in any order; the other artifacts are skipped and name it."""

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.core.layout import Layout
from ingest_assets.intake.batches import assign_batches
from ingest_assets.intake.folders.changes import ScanLimits
from ingest_assets.intake.folders.scan import ScanReport, scan_sources
from ingest_assets.intake.folders.walk import Exclusions
from ingest_assets.intake.ledger import Ledger, Source
from ingest_assets.intake.queue.artifacts import NewArtifact
from ingest_assets.intake.queue.queue import Filter
from ingest_assets.settings.intake import BatchLimits
from ingest_tests.intake.acquire.conftest import NOW, Intake
from ingest_tests.intake.fetch.site import PDF, Site

CONTENTS = ("one", "two", "three")
NAMES = ("a.md", "b.md", "c.md")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_lowest_number_wins_in_any_order(intake: Intake, site: Site) -> None:
    """The second artifact of the list is acquired first and replaced by the first."""
    pages = {name: site.page(f"/{name}", lambda v: v.reply(200, PDF)) for name in ("first", "second")}
    intake.queue.enqueue([NewArtifact(artifact_id=n, url=url) for n, url in pages.items()], NOW)
    batches = sorted(assign_batches(intake.ledger, BatchLimits(max_documents=1), NOW))
    revisions = intake.ledger.batches()

    intake.run(batches[1])
    assert (intake["second"].state, intake.living().keys()) == ("done", {"second"})
    intake.run(batches[0])

    assert (intake["first"].state, intake["first"].duplicate_of) == ("done", None)
    assert (intake["second"].state, intake["second"].duplicate_of) == ("skipped", "first")
    assert intake.living().keys() == {"first"}
    assert intake.ledger.batches()[batches[1]] > max(revisions.values()), "its rows have to leave the tables"


def test_an_artifact_equal_to_a_watched_file_is_skipped_until_the_file_is_deleted(
    intake: Intake, tmp_path: Path
) -> None:
    """Nothing is lost: the artifact becomes the document, without another attempt."""
    folder = Folder(intake, tmp_path / "docs")
    folder.write("a.md", "one")
    folder.scan()
    other = tmp_path / "list" / "copy.md"
    other.parent.mkdir()
    other.write_text("one")
    intake.run(intake.add("copy", path=str(other)))
    assert (intake["copy"].state, intake["copy"].duplicate_of) == ("skipped", "docs:a.md")
    assert intake.living().keys() == {"docs:a.md"}

    (folder.path / "a.md").unlink()
    report = folder.scan()

    assert (intake["copy"].state, intake["copy"].attempts) == ("done", 1)
    assert intake.living() == {"copy": sha256("one")}
    assert intake["copy"].batch in report.batches


def test_an_artifact_names_the_new_id_of_a_moved_file(intake: Intake, tmp_path: Path) -> None:
    """A moved file is still the document; only its id changes."""
    folder = Folder(intake, tmp_path / "docs")
    folder.write("a.md", "one")
    folder.scan()
    other = tmp_path / "copy.md"
    other.write_text("one")
    intake.run(intake.add("copy", path=str(other)))
    (folder.path / "a.md").rename(folder.path / "z.md")

    report = folder.scan()

    assert (report.moved, report.batches) == (1, {"2024-05-01-0001"})
    assert (intake["copy"].state, intake["copy"].duplicate_of) == ("skipped", "docs:z.md")
    assert intake.living().keys() == {"docs:z.md"}


def test_an_artifact_with_the_id_of_a_file_is_refused(intake: Intake, tmp_path: Path, site: Site) -> None:
    """Two documents must not be one row."""
    folder = Folder(intake, tmp_path / "docs")
    folder.write("a.md", "one")
    folder.scan()

    artifact = intake.acquire("docs:a.md", site.page("/a", lambda v: v.reply(200, PDF)))

    assert artifact.state == "error"
    assert artifact.last_error is not None
    assert (artifact.last_error.category, artifact.last_error.code) == ("input", "E_ID_TAKEN")
    assert intake.living() == {"docs:a.md": sha256("one")}


@dataclass
class Folder:
    """A watched folder called `docs`."""

    intake: Intake
    path: Path
    writes: int = 0

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, content: str) -> None:
        (self.path / name).write_text(content)
        self.writes += 1
        os.utime(self.path / name, ns=(0, int((NOW - 3600 + self.writes) * 1e9)))

    def scan(self) -> ScanReport:
        watched = [(Source("docs", self.path), Exclusions())]
        return scan_sources(self.intake.ledger, watched, ScanLimits(), lambda: self.intake.now)


@dataclass
class World:
    """A watched folder, files that are queued by path, and what is expected of them."""

    root: Path
    queued: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        layout = Layout(self.root / "home")
        self.intake = Intake(layout, Ledger(layout.ledger))
        self.folder = Folder(self.intake, self.root / "docs")
        (self.root / "list").mkdir()

    def act(self, action: str, name: str, content: str) -> None:
        """Do one step of a history."""
        self.intake.now += 60
        if action == "write":
            self.folder.write(name, content)
        elif action == "delete":
            (self.folder.path / name).unlink(missing_ok=True)
        elif action == "queue":
            self.queued.setdefault(name, self.root / "list" / name)
            self.queued[name].write_text(content)
            self.intake.add(name, path=str(self.queued[name]))
        elif action == "refresh":
            self.intake.queue.refresh(self.intake.now)
        elif action == "run":
            self.run(self.intake)

    def run(self, intake: Intake) -> None:
        """Run everything that is due, in this order of batches."""
        self.folder.scan()
        for batch in intake.ledger.batches():
            intake.run(batch)

    def settled(self) -> dict[str, str]:
        """Return the documents after a refresh of all and a run of all."""
        self.act("refresh", "", "")
        self.act("run", "", "")
        return self.intake.living()

    def expected(self) -> tuple[dict[str, str], dict[str, str]]:
        """All files, and the queued ones whose content has no document with a lower number."""
        ledger = self.intake.ledger
        documents = {f"docs:{p.name}": p.read_text() for p in self.folder.path.iterdir()}
        numbers = {d.doc_id: d.seq for d in ledger.documents() if d.resolver is None}
        numbers |= {a.artifact_id: a.doc_seq or 0 for a in self.intake.queue.find(Filter())}
        holders = {**documents, **{name: path.read_text() for name, path in self.queued.items()}}
        first: dict[str, str] = {}
        for doc_id in sorted(holders, key=lambda each: numbers[each]):
            first.setdefault(holders[doc_id], doc_id)
        documents |= {doc_id: text for text, doc_id in first.items() if doc_id in self.queued}
        repeats = {n: first[p.read_text()] for n, p in self.queued.items() if first[p.read_text()] != n}
        return {doc_id: sha256(text) for doc_id, text in documents.items()}, repeats


actions = st.tuples(
    st.sampled_from(["write", "delete", "queue", "refresh", "run"]),
    st.sampled_from(NAMES),
    st.sampled_from(CONTENTS),
)


@given(st.lists(actions, max_size=14))
def test_after_any_history_every_text_is_one_document(history: list[tuple[str, str, str]]) -> None:
    """Files are always documents; queued copies are skipped and name the one with the lowest number."""
    root = Path(tempfile.mkdtemp())
    try:
        world = World(root)
        for action in history:
            world.act(*action)

        living = world.settled()

        expected, repeats = world.expected()
        assert living == expected
        skipped = {a.artifact_id: a.duplicate_of for a in world.intake.queue.find(Filter(state="skipped"))}
        assert skipped == repeats
        world.intake.ledger.close()
    finally:
        shutil.rmtree(root)
