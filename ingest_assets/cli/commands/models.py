"""`ingest models list | pull`."""

from typing import Annotated

import typer

from ingest_assets.cli.commands import flags
from ingest_assets.cli.commands.flags import group, libraries

app = group("The models that read documents and make vectors: which are here, and fetching them.")

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="Names of models; default: Docling's models, and all that the settings name.",
    ),
]
ForceFlag = Annotated[bool, typer.Option("--force", help="Ask the hub also for models that are here whole.")]


@app.command("list")
def list_command(home: flags.HomeFlag = None, as_json: flags.JsonFlag = False) -> None:
    """Show every model, where it is, and what the settings make of them."""
    with libraries(home):
        from ingest_assets.cli.models import list_models
    list_models(home, as_json=as_json)


@app.command("pull")
def pull_command(
    names: NamesArgument = None,
    home: flags.HomeFlag = None,
    force: ForceFlag = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Fetch the docling engine's models into parsing.artifacts_path, or else into the hub's cache, and the
    models that embeddings and chunks name into the hub's cache."""
    with libraries(home):
        from ingest_assets.cli.models import pull_models
    raise typer.Exit(pull_models(names or [], home, force=force, as_json=as_json))
