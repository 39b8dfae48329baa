"""Which failures a command is about: its documents and filters, and what is wrong with them."""

from collections.abc import Sequence

from ingest_assets.cli.commands.failures import Choice
from ingest_assets.cli.inspecting import find
from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.home import Home
from ingest_assets.defs.inbox import FailedDocument, Wanted, read_inbox
from ingest_assets.intake.catalogue import SOURCE
from ingest_assets.model.errors import ConfigError


def require_known(home: Home, wanted: Wanted) -> None:
    """A batch or source that does not exist is a slip, and no reason to say that nothing failed."""
    if wanted.stage is not None and wanted.stage not in GRAPH:
        raise ConfigError(f"--stage: {wanted.stage!r} is not one of {', '.join(map(repr, GRAPH))}.")
    where = home.layout.home
    if wanted.batch is not None and wanted.batch not in home.ledger.batches():
        raise ConfigError(f"--batch: no batch {wanted.batch!r} in {where}; `ingest status` lists them.")
    names = {source.name for source in (*home.sources(), *home.ledger.sources())} | {SOURCE}
    if wanted.source is not None and wanted.source not in names:
        known = ", ".join(sorted(names))
        raise ConfigError(f"--source: no source {wanted.source!r} in {where}; known here: {known}.")


def chosen(home: Home, choice: Choice) -> list[FailedDocument]:
    """The failures to act on: never all of them without being asked to."""
    documents, wanted = choice.documents, Wanted(**choice.filters)
    if not documents and wanted.is_everything() and not choice.takes_all:
        raise ConfigError("Which failures? Give documents, a filter such as --stage, or --all.")
    if documents and choice.takes_all:
        raise ConfigError("Documents and --all contradict each other; give one of them.")
    require_known(home, wanted)
    every = read_inbox(home)
    ids = {_failed_id(home, every, document) for document in documents}
    return [failure for failure in every if failure in wanted and (not ids or failure.doc_id in ids)]


def _failed_id(home: Home, failures: Sequence[FailedDocument], wanted: str) -> str:
    """The id of a failed document, by its id or its end."""
    doc_id = resolved(home, failures, wanted)
    if all(failure.doc_id != doc_id for failure in failures):
        raise ConfigError(f"{doc_id} has not failed; `ingest failures list` shows what has.")
    return doc_id


def resolved(home: Home, failures: Sequence[FailedDocument], wanted: str) -> str:
    """The id that is meant: exactly that one, the only failed one that ends so, or the only one at all."""
    wanted = wanted.strip()
    failed = dict.fromkeys(failure.doc_id for failure in failures)
    if wanted in failed or home.ledger.document(wanted) or home.queue.get(wanted):
        return wanted
    ending = [doc_id for doc_id in failed if doc_id.endswith(wanted)]
    if len(ending) == 1 and wanted:
        return ending[0]
    if len(ending) > 1:
        first = ", ".join(ending[:5])
        raise ConfigError(f"{len(ending)} failed documents end in {wanted!r}: {first}; give more of the id.")
    return find(home, wanted).doc_id
