"""Read settings: defaults, then `ingest.toml`, then `INGEST_*` variables. Each error takes one line."""

import difflib
import functools
import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsError

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.layout import Layout
from ingest_assets.settings.tree import Settings

_NOT_SETTINGS = {"INGEST_HOME"}


def explain(error: Any, settings: type[BaseModel], file: object) -> str:
    """Return one line about an invalid setting: where it is set, what is expected, and its value."""
    path = ".".join(str(part) for part in error["loc"])
    variable = _variable_for(error["loc"])
    where = f"{file}: {path}" if variable is None else variable
    if variable is not None and variable.upper() != _variable_name(error["loc"]):
        where = f"{variable}: {path}"
    if error["type"] == "extra_forbidden":
        known = _known_keys(settings, error["loc"][:-1])
        close = difflib.get_close_matches(str(error["loc"][-1]), known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}."
        return f"{where}: no such setting; {hint}"
    expected = re.sub(r"^(Input should|Value error, should|Value should)", "should", error["msg"])
    # hide the user name and password of a URL
    got = re.sub(r"//[^/@\s'\"]*@", "//…@", repr(error["input"]))
    return f"{where}: {expected}; got {got}."


def _variable_name(location: tuple[Any, ...]) -> str:
    return "INGEST_" + "__".join(str(part) for part in location).upper()


def _variable_for(location: tuple[Any, ...]) -> str | None:
    """Return the environment variable that set a key or, as JSON, its section; None if there is none."""
    variables = {name.upper(): name for name in os.environ}
    names = [_variable_name(location[:length]) for length in range(len(location), 0, -1)]
    return next((variables[name] for name in names if name in variables), None)


def _known_keys(settings: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    """Return the keys of a section; in a map of sections, the keys of its values."""
    section: Any = settings
    for part in location:
        fields = getattr(section, "model_fields", None)
        section = (
            get_args(section)[-1] if fields is None else getattr(fields.get(str(part)), "annotation", None)
        )
    return sorted(getattr(section, "model_fields", {}))


class _CompleteSettings(Settings):
    """Settings from init values only, which already include the environment variables."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *others: PydanticBaseSettingsSource,
        **named: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the init values as the only source."""
        return (init_settings,)


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return `INGEST_HOME`, else the nearest parent folder with a home's files, else the current folder."""
    configured = environ.get("INGEST_HOME")
    if configured:
        return Path(configured).expanduser().resolve()
    current = Path.cwd()
    for folder in (current, *current.parents):
        layout = Layout(folder)
        is_project = layout.instance_file.is_file() and (folder / "ingest_assets").is_dir()
        if layout.settings_file.is_file() or layout.ledger.is_file() or is_project:
            return folder
    return current


def read_settings(home: Path) -> Settings:
    """Return the current settings of a home folder; raise `ConfigError` with one line per invalid setting."""
    file = Layout(home).settings_file
    variables = frozenset(
        (name, value) for name, value in os.environ.items() if name.upper().startswith("INGEST_")
    )
    return _settings(file, _read_text(file), variables)


@functools.lru_cache(maxsize=8)
def _settings(file: Path, text: str, _environment: frozenset[tuple[str, str]]) -> Settings:
    """Parse and validate the settings; cached, because each step reads them."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not valid TOML ({error}); correct the file.") from None
    _reject_unknown_variables()
    try:
        return Settings(**values)
    except ValidationError as failure:
        raise ConfigError("\n".join(explain(error, Settings, file) for error in failure.errors())) from None
    except SettingsError as error:
        name = re.search(r'field "(\w+)"', str(error))
        variable = f"INGEST_{name[1].upper()}" if name else "INGEST_*"
        got = os.environ.get(variable, "")
        raise ConfigError(
            f"{variable}: must be a JSON object; to set one key, use {variable}__KEY. Got {got!r}."
        ) from None


def settings_to_json(settings: Settings) -> str:
    """Return JSON for `settings_from_json`, with explicit keys only, so that defaults still apply per stage.

    The ledger's URL is omitted: it can contain a password, and such a home has its own ledger.
    """
    return settings.model_dump_json(exclude_unset=True, exclude={"intake": {"ledger"}})


def settings_from_json(text: str) -> Settings:
    """Return the settings from `settings_to_json`, without reading files or variables."""
    return _CompleteSettings(**json.loads(text))


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not valid TOML ({error}); correct the file.") from None
    except OSError as error:
        raise ConfigError(
            f"{file}: cannot be read ({error.strerror}); check the file's permissions."
        ) from None


def _reject_unknown_variables() -> None:
    known = {f"INGEST_{name.upper()}" for name in Settings.model_fields} | _NOT_SETTINGS
    for variable in sorted(os.environ):
        if variable.startswith("INGEST_") and variable.split("__")[0].upper() not in known:
            raise ConfigError(
                f"{variable}: no such setting; sections are {', '.join(sorted(Settings.model_fields))} "
                "(for example INGEST_CHUNKS__MAX_TOKENS)."
            )
