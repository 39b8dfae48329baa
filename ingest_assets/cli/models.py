"""`ingest models`: which models are here, and fetching those that Docling can use."""

import sys
from typing import Annotated, Any

import typer

from ingest_assets.cli import flags
from ingest_assets.cli.model_list import docling_model_object, engine_line, engine_object, models_object
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.defs.home import open_home
from ingest_assets.model.errors import ConfigError
from ingest_assets.parsing.engines.artifacts import DOCLING_MODELS, DoclingModel, Place, place_of
from ingest_assets.parsing.engines.pulling import ModelNotFetched, hub_name, pull

app = typer.Typer(help="The models that read documents: which are here, and fetching Docling's own.")

_NAMES = {model.name: model for model in DOCLING_MODELS}

NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help=f"Default: all of {', '.join(_NAMES)}.")
]
ForceFlag = Annotated[bool, typer.Option("--force", help="Ask the hub also for models that are here whole.")]


@app.callback(invoke_without_command=True)
def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        say(context.get_help())


@app.command("list")
def list_models(home: flags.HomeFlag = None, as_json: flags.JsonFlag = False) -> None:
    """Show every model, where it is, and which engine the settings make of them."""
    here = open_home(home, only_looks=True, must_exist=False)
    result = {"home": str(here.layout.home), **models_object(here.parsing)}
    if as_json:
        print_json(result)
        return
    for model in result["models"]:
        say(_line(model))
    say(engine_line(result["engine"]))


@app.command("pull")
def pull_models(
    names: NamesArgument = None,
    home: flags.HomeFlag = None,
    force: ForceFlag = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Fetch the models of the docling engine into parsing.artifacts_path, or else into the hub's cache."""
    wanted = _wanted(names or [])
    parsing = open_home(home, only_looks=True, must_exist=False).parsing
    place = place_of(parsing.artifacts_path)
    before = engine_object(parsing)["chosen"]
    models, failures = _fetch(wanted, place, force=force, is_quiet=as_json)
    engine = engine_object(parsing)
    if as_json:
        print_json({"into": str(place.path), "models": models, "failures": failures, "engine": engine})
    for failure in () if as_json else failures:
        warn(f"ingest: {failure}")
    if not as_json and not failures:
        say(engine_line(engine))
        if engine["chosen"] != before:
            say("Documents that another engine has read are read again: `ingest plan` says which.")
    raise typer.Exit(1 if failures else 0)


def _fetch(
    wanted: list[DoclingModel], place: Place, *, force: bool, is_quiet: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """Each model in turn; the first that cannot be fetched ends it, for the next would end the same way."""
    models: list[dict[str, Any]] = []
    for model in wanted:
        found = place.find(model)
        if not found.is_whole or force:
            if not is_quiet:
                say(
                    f"{model.name}: fetching {model.repo} ({model.revision}) from {hub_name()} into {place} …"
                )
            try:
                found = pull(model, place, with_bar=sys.stderr.isatty() and not is_quiet)
            except ModelNotFetched as error:
                return models, [str(error)]
        models.append(docling_model_object(found))
        if not is_quiet:
            say(f"{model.name}: is in {found.path} ({found.size_bytes / 2**20:.0f} MiB).")
    return models, []


def _wanted(names: list[str]) -> list[DoclingModel]:
    unknown = [name for name in names if name not in _NAMES]
    if unknown:
        raise ConfigError(f"{unknown[0]}: no such model to fetch; there are {', '.join(_NAMES)}.")
    return [model for name, model in _NAMES.items() if name in names or not names]


def _line(model: dict[str, Any]) -> str:
    head = f"{model['name']:<12} {model['for']}: "
    if not model["is_present"]:
        return f"{head}not here ({model['path'] or model['source']}: {model['fault']})"
    revision = f" {model['revision'][:12]}" if model["revision"] else ""
    return f"{head}{model['source']}{revision}, {model['size_bytes'] / 2**20:.1f} MiB, in {model['path']}"
