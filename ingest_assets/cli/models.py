"""`ingest models`: list the models for reading and embedding, and download them."""

import sys
from typing import Annotated, Any

import typer

from ingest_assets.app.home import open_home
from ingest_assets.app.models import (
    DOCLING_MODELS,
    PULL_NAMES,
    DoclingModel,
    ModelLocation,
    NamedModel,
    docling_model_object,
    embedding_object,
    engine_object,
    fetch,
    fetch_model,
    model_location,
    models_object,
    named_models,
)
from ingest_assets.cli.flags import HomeFlag, JsonFlag, group
from ingest_assets.cli.output import engine_line, print_json, say, warn
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.model_hub import HubUnreachable, ModelNotFetched, hub_cache, hub_name

_DOCLING = {model.name: model for model in DOCLING_MODELS}
_SETTINGS = {name: setting for setting, name in PULL_NAMES.items()}
_NAMES = (*_DOCLING, *_SETTINGS)


app = group("List the models for reading and embedding documents, and download them.")

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="Names of models (default: Docling's models and those in the settings).",
    ),
]
ForceFlag = Annotated[bool, typer.Option("--force", help="Also download models that are complete.")]


@app.command("list")
def list_models(home_path: HomeFlag = None, as_json: JsonFlag = False) -> None:
    """List every model and where it is stored, and the engine that the settings select."""
    home = open_home(home_path, read_only=True, must_exist=False)
    embeddings = [embedding_object(model) for model in named_models(home).values()]
    models = models_object(home.resolved_settings.parsing)
    result = {"home": str(home.layout.home), **models, "embeddings": embeddings}
    if as_json:
        print_json(result)
        return
    for model in result["models"]:
        say(_line(model))
    for model in embeddings:
        say(_embedding_line(model))
    say(engine_line(result["engine"]))


@app.command("pull")
def pull_models(
    names: NamesArgument = None,
    home_path: HomeFlag = None,
    force: ForceFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Download Docling's models into parsing.artifacts_path (default: the hub's cache), and the models
    named in the settings of embeddings and chunks into the hub's cache."""
    home = open_home(home_path, read_only=True, must_exist=False)
    docling, named = _select(names or [], named_models(home))
    parsing = home.resolved_settings.parsing
    location = model_location(parsing.artifacts_path)
    before = engine_object(parsing)["chosen"]
    embeddings, failures, goes_on = _fetch_named(named, force=force, is_quiet=as_json)
    models: list[dict[str, Any]] = []
    if goes_on:
        models, further = _fetch(docling, location, force=force, is_quiet=as_json)
        failures += further
    result: dict[str, Any] = {
        "into": str(location.path),
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
    elif docling:
        say(engine_line(result["engine"]))
        if result["engine"]["chosen"] != before:
            say("The next run reads PDFs and images again with this engine; see `ingest plan`.")
    return 1 if failures else 0


def _fetch_named(
    named: list[NamedModel], *, force: bool, is_quiet: bool
) -> tuple[list[dict[str, Any]], list[str], bool]:
    """Fetch the models that the settings name; the last value is false if the hub cannot be reached."""
    models: list[dict[str, Any]] = []
    failures: list[str] = []
    for model in named:
        try:
            fetched = _fetch_one(model, force=force, is_quiet=is_quiet)
        except HubUnreachable as error:
            return models, [*failures, str(error)], False
        except ModelNotFetched as error:
            failures.append(str(error))
            continue
        if fetched["fault"]:
            failures.append(fetched["fault"])
            continue
        models.append(fetched)
        if not is_quiet:
            say(_embedding_line(fetched))
    return models, failures, True


def _fetch_one(model: NamedModel, *, force: bool, is_quiet: bool) -> dict[str, Any]:
    is_forced = force and model.is_on_hub
    stored = {} if is_forced else embedding_object(model)
    if not model.is_on_hub or (stored and stored["is_present"]):
        return stored
    if not is_quiet:
        say(f"{model.name}: fetching {model.model} from {hub_name()} into the hub's cache {hub_cache()} …")
    fetch(model.model, model.setting, with_bar=sys.stderr.isatty() and not is_quiet)
    return embedding_object(model)


def _fetch(
    docling: list[DoclingModel], location: ModelLocation, *, force: bool, is_quiet: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """Fetch Docling's models; stop at the first failure, since the next would fail in the same way."""
    models: list[dict[str, Any]] = []
    for model in docling:
        stored = location.find(model)
        if not stored.is_complete or force:
            if not is_quiet:
                say(f"{model.name}: fetching {model.repo} ({model.revision}) from {hub_name()} to {location}")
            try:
                stored = fetch_model(model, location, with_bar=sys.stderr.isatty() and not is_quiet)
            except ModelNotFetched as error:
                return models, [str(error)]
        models.append(docling_model_object(stored))
        if not is_quiet:
            say(f"{model.name}: stored in {stored.path} ({stored.size_bytes / 2**20:.0f} MiB).")
    return models, []


def _select(names: list[str], named: dict[str, NamedModel]) -> tuple[list[DoclingModel], list[NamedModel]]:
    """Return the models to fetch: Docling's, and those that the settings name."""
    for name in names:
        if name not in _NAMES:
            raise ConfigError(f"{name}: unknown model; choose from {', '.join(_NAMES)}.")
    for name in names:
        if name in _SETTINGS and name not in named:
            raise ConfigError(f"{name}: {_SETTINGS[name]} names no model; set it first.")
    docling = [model for name, model in _DOCLING.items() if name in names or not names]
    return docling, [model for name, model in named.items() if name in names or not names]


def _line(model: dict[str, Any]) -> str:
    head = f"{model['name']:<12} {model['for']}: "
    if not model["is_present"]:
        return f"{head}not found ({model['path'] or model['source']}: {model['fault']})"
    revision = f" {model['revision'][:12]}" if model["revision"] else ""
    return f"{head}{model['source']}{revision}, {model['size_bytes'] / 2**20:.1f} MiB, in {model['path']}"


def _embedding_line(model: dict[str, Any]) -> str:
    """Return the line about a model that the settings name."""
    head = f"{model['name']:<12} {model['for']}: "
    if model["fault"]:
        return f"{head}{'cannot be used' if model['is_present'] else 'not found'} ({model['fault']})"
    facts = [model["model_id"] or model["model"]]
    if model["provider"]:
        facts[0] += f" by {model['provider']}"
    facts += [f"{model['dim']} dimensions"] if model["dim"] else []
    facts += [f"reads {model['max_tokens']} tokens"] if model["max_tokens"] else []
    if model["path"]:
        facts.append(f"{model['where']}, {model['size_bytes'] / 2**20:.1f} MiB, in {model['path']}")
    return head + ", ".join(facts)
