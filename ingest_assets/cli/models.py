"""`ingest models`: which models are here, and fetching those that the settings name and Docling can use."""

import sys
from typing import Annotated, Any

import typer

from ingest_assets.app.home import open_home
from ingest_assets.app.models import (
    DOCLING_MODELS,
    PULLED_AS,
    DoclingModel,
    NamedModel,
    Place,
    docling_model_object,
    embedding_object,
    engine_object,
    fetch,
    models_object,
    named_models,
    place_of,
    pull,
)
from ingest_assets.cli.flags import HomeFlag, JsonFlag, group
from ingest_assets.cli.output import engine_line, print_json, say, warn
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.model_hub import HubUnreachable, ModelNotFetched, hub_cache, hub_name

_DOCLING = {model.name: model for model in DOCLING_MODELS}
_SETTINGS = {name: setting for setting, name in PULLED_AS.items()}
_NAMES = (*_DOCLING, *_SETTINGS)


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
def list_models(home: HomeFlag = None, as_json: JsonFlag = False) -> None:
    """Show every model, where it is, and what the settings make of them."""
    here = open_home(home, only_looks=True, must_exist=False)
    embeddings = [embedding_object(model) for model in named_models(here).values()]
    models = models_object(here.settings_found.parsing)
    result = {"home": str(here.layout.home), **models, "embeddings": embeddings}
    if as_json:
        print_json(result)
        return
    for model in result["models"]:
        say(_line(model))
    for found in embeddings:
        say(_embedding_line(found))
    say(engine_line(result["engine"]))


@app.command("pull")
def pull_models(
    names: NamesArgument = None,
    home: HomeFlag = None,
    force: ForceFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Fetch the docling engine's models into parsing.artifacts_path, or else into the hub's cache, and the
    models that embeddings and chunks name into the hub's cache."""
    here = open_home(home, only_looks=True, must_exist=False)
    wanted, named = _chosen(names or [], named_models(here))
    parsing = here.settings_found.parsing
    place = place_of(parsing.artifacts_path)
    before = engine_object(parsing)["chosen"]
    embeddings, failures, goes_on = _fetch_named(named, force=force, is_quiet=as_json)
    models: list[dict[str, Any]] = []
    if goes_on:
        models, further = _fetch(wanted, place, force=force, is_quiet=as_json)
        failures += further
    result: dict[str, Any] = {
        "into": str(place.path),
        "models": models,
        "embeddings": embeddings,
        "failures": failures,
        "engine": engine_object(parsing),
    }
    if as_json:
        print_json(result)
    elif failures:
        for failure in failures:
            warn(f"ingest: {failure}")
    elif wanted:
        say(engine_line(result["engine"]))
        if result["engine"]["chosen"] != before:
            say("Documents that another engine has read are read again: `ingest plan` says which.")
    return 1 if failures else 0


def _fetch_named(
    named: list[NamedModel], *, force: bool, is_quiet: bool
) -> tuple[list[dict[str, Any]], list[str], bool]:
    """What the settings name, as it is afterwards; false when the hub is away: the rest would fail too."""
    models: list[dict[str, Any]] = []
    failures: list[str] = []
    for each in named:
        try:
            found = _fetch_one(each, force=force, is_quiet=is_quiet)
        except HubUnreachable as error:
            return models, [*failures, str(error)], False
        except ModelNotFetched as error:
            failures.append(str(error))
            continue
        if found["fault"]:
            failures.append(found["fault"])
            continue
        models.append(found)
        if not is_quiet:
            say(_embedding_line(found))
    return models, failures, True


def _fetch_one(named: NamedModel, *, force: bool, is_quiet: bool) -> dict[str, Any]:
    is_forced = force and named.is_on_hub
    found = {} if is_forced else embedding_object(named)
    if not named.is_on_hub or (found and found["is_present"]):
        return found
    if not is_quiet:
        say(f"{named.name}: fetching {named.model} from {hub_name()} into the hub's cache {hub_cache()} …")
    fetch(named.model, named.setting, with_bar=sys.stderr.isatty() and not is_quiet)
    return embedding_object(named)


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


def _chosen(names: list[str], there: dict[str, NamedModel]) -> tuple[list[DoclingModel], list[NamedModel]]:
    """Docling's models and those that the settings name, as far as they are to be fetched."""
    for name in names:
        if name not in _NAMES:
            raise ConfigError(f"{name}: no such model to fetch; there are {', '.join(_NAMES)}.")
    for name in names:
        if name in _SETTINGS and name not in there:
            raise ConfigError(f"{name}: {_SETTINGS[name]} names no model; set it first.")
    docling = [model for name, model in _DOCLING.items() if name in names or not names]
    return docling, [model for name, model in there.items() if name in names or not names]


def _line(model: dict[str, Any]) -> str:
    head = f"{model['name']:<12} {model['for']}: "
    if not model["is_present"]:
        return f"{head}not here ({model['path'] or model['source']}: {model['fault']})"
    revision = f" {model['revision'][:12]}" if model["revision"] else ""
    return f"{head}{model['source']}{revision}, {model['size_bytes'] / 2**20:.1f} MiB, in {model['path']}"


def _embedding_line(found: dict[str, Any]) -> str:
    """A model that the settings name, for a person."""
    head = f"{found['name']:<12} {found['for']}: "
    if found["fault"]:
        return f"{head}{'cannot be used' if found['is_present'] else 'not here'} ({found['fault']})"
    told = [found["model_id"] or found["model"]]
    if found["provider"]:
        told[0] += f" by {found['provider']}"
    told += [f"{found['dim']} dimensions"] if found["dim"] else []
    told += [f"reads {found['max_tokens']} tokens"] if found["max_tokens"] else []
    if found["path"]:
        told.append(f"{found['where']}, {found['size_bytes'] / 2**20:.1f} MiB, in {found['path']}")
    return head + ", ".join(told)
