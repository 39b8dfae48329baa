"""What keeps a new set from becoming active: temporary failures, and runs that still write."""

from collections.abc import Callable

import pytest

from ingest_assets.app.model_switch import cut_over, pending_switch
from ingest_assets.core.errors import ContractBroken, ItemTimeout
from ingest_assets.embedders.errors import TextTooLong
from ingest_assets.stages.lexical import LexicalStage
from ingest_assets.storage.locks import FileLock
from ingest_tests.defs.sets.world import World


@pytest.mark.graph
@pytest.mark.parametrize(
    ("error", "is_held"),
    [(ItemTimeout, True), (ZeroDivisionError, True), (ContractBroken, True), (TextTooLong, False)],
)
def test_only_permanent_failures_do_not_block_the_new_set(
    world: World, monkeypatch: pytest.MonkeyPatch, error: type[Exception], is_held: bool
):
    """An endpoint that is down for an hour, or a bug, must not remove rows that the old set has."""
    old = world.served()
    whole = LexicalStage.rows
    monkeypatch.setattr(LexicalStage, "rows", _failing_for("varroa", error))

    world.run(4)

    found = pending_switch(world.home(4), "lexical")
    assert (world.served() == old) is is_held
    assert (found is not None) is is_held
    if found is not None:
        assert [each.item_id for each in found.failures] == ["notes:varroa.html"]
        assert "blocked by 1 failed document, first notes:varroa.html [E_" in found.as_line()
        monkeypatch.setattr(LexicalStage, "rows", whole)
        world.run(4)
    assert pending_switch(world.home(4), "lexical") is None
    assert len(world.documents()) == (3 if is_held else 2)


def test_a_set_without_a_row_never_replaces_one_that_has_some(world: World, monkeypatch: pytest.MonkeyPatch):
    """If everything fails, the settings are wrong and not the documents."""
    old = world.served()
    monkeypatch.setattr(LexicalStage, "rows", _failing_for("", TextTooLong))

    world.run(4)

    assert world.served() == old


@pytest.mark.graph
@pytest.mark.parametrize(("failing", "takes_over"), [("varroa", True), ("", False), ("notes", False)])
def test_the_settings_limit_the_failed_documents_of_a_new_set(
    world: World, monkeypatch: pytest.MonkeyPatch, failing: str, takes_over: bool
):
    """A text that an endpoint always rejects must not block a switch; many of them do."""
    old, whole = world.served(), LexicalStage.rows
    monkeypatch.setenv("INGEST_EMBEDDINGS__SWITCH_WITHOUT", "1")
    monkeypatch.setattr(LexicalStage, "rows", _failing_for(failing, ContractBroken))

    world.run(4)

    assert (pending_switch(world.home(4), "lexical") is None) is takes_over
    assert (world.served() != old) is takes_over
    monkeypatch.setattr(LexicalStage, "rows", whole)
    world.run(4)
    assert len(world.documents()) == 3


@pytest.mark.graph
def test_a_document_without_an_attempt_always_blocks_the_switch(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """Only failed documents count as failed; a batch that was not run yet is missing."""
    old = world.served()
    monkeypatch.setenv("INGEST_EMBEDDINGS__SWITCH_WITHOUT", "9")

    world.run(4, world.batches[0])

    assert world.served() == old


@pytest.mark.graph
def test_no_switch_while_another_run_writes(world: World):
    """The last run to finish switches; so does a command that has nothing to compute."""
    old, home = world.served(), world.home(4)
    writer = FileLock(home.layout.family_lock("embeddings/lexical"), shared=True)
    writer.acquire()
    world.run(4)
    busy = world.served()
    writer.release()

    said: list[str] = []
    left = cut_over(home, "lexical", said.append)

    assert busy == old
    assert left is None
    assert "is now active" in said[0]
    assert world.served() != old


def _failing_for(name: str, error: type[Exception]) -> Callable:
    made = LexicalStage.rows

    def rows(self, item, context):
        if name in item.item_id:
            raise error("a fault")
        return made(self, item, context)

    return rows
