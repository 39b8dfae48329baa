"""Reading settings: defaults, then `ingest.toml`, then `INGEST_*` variables; each fault in one line."""

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


def explain(fault: Any, settings: type[BaseModel], file: object) -> str:
    """What is wrong with a setting in one line: where it was set, what was expected, what was given."""
    path = ".".join(str(part) for part in fault["loc"])
    variable = _variable_for(fault["loc"])
    where = f"{file}: {path}" if variable is None else variable
    if variable is not None and variable.upper() != _variable_name(fault["loc"]):
        where = f"{variable}: {path}"
    if fault["type"] == "extra_forbidden":
        return f"{where}: no such setting; known here: {', '.join(_known_keys(settings, fault['loc'][:-1]))}."
    expected = re.sub(r"^(Input should|Value error, should|Value should)", "should", fault["msg"])
    # of an address with a name and a password, neither is shown
    got = re.sub(r"//[^/@\s'\"]*@", "//…@", repr(fault["input"]))
    return f"{where}: {expected}; got {got}."


def _variable_name(location: tuple[Any, ...]) -> str:
    return "INGEST_" + "__".join(str(part) for part in location).upper()


def _variable_for(location: tuple[Any, ...]) -> str | None:
    """The environment variable that set a key, itself or a whole section as JSON; None when none did."""
    given = {name.upper(): name for name in os.environ}
    names = [_variable_name(location[:length]) for length in range(len(location), 0, -1)]
    return next((given[name] for name in names if name in given), None)


def _known_keys(settings: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    """The keys of a section; below a map of sections, those of its values."""
    section: Any = settings
    for part in location:
        fields = getattr(section, "model_fields", None)
        section = (
            get_args(section)[-1] if fields is None else getattr(fields.get(str(part)), "annotation", None)
        )
    return sorted(getattr(section, "model_fields", {}))


class _CompleteSettings(Settings):
    """Settings that the environment has had its say in already."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *others: PydanticBaseSettingsSource,
        **named: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is given."""
        return (init_settings,)


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`INGEST_HOME`, or the nearest folder upwards that holds a home's files, or the current folder."""
    given = environ.get("INGEST_HOME")
    if given:
        return Path(given).expanduser().resolve()
    here = Path.cwd()
    for folder in (here, *here.parents):
        layout = Layout(folder)
        is_project = layout.instance_file.is_file() and (folder / "ingest_assets").is_dir()
        if layout.settings_file.is_file() or layout.ledger.is_file() or is_project:
            return folder
    return here


def read_settings(home: Path) -> Settings:
    """The settings of a home folder as they are now; raises `ConfigError` with one line per fault."""
    file = Layout(home).settings_file
    ours = frozenset(
        (name, value) for name, value in os.environ.items() if name.upper().startswith("INGEST_")
    )
    return _settings(file, _read_text(file), ours)


@functools.lru_cache(maxsize=8)
def _settings(file: Path, text: str, _environment: frozenset[tuple[str, str]]) -> Settings:
    """Every step asks for them: what was checked is kept for as long as file and variables are the same."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not valid TOML ({error}); correct the file.") from None
    _refuse_unknown_variables()
    try:
        return Settings(**values)
    except ValidationError as error:
        raise ConfigError("\n".join(explain(fault, Settings, file) for fault in error.errors())) from None
    except SettingsError as error:
        name = re.search(r'field "(\w+)"', str(error))
        variable = f"INGEST_{name[1].upper()}" if name else "INGEST_*"
        got = os.environ.get(variable, "")
        raise ConfigError(
            f"{variable}: should be a JSON object, or name one key of it; got {got!r}."
        ) from None


def settings_to_json(settings: Settings) -> str:
    """For `settings_from_json`. Holds only what was set: what a stage leaves open must stay open.

    Not the ledger's URL: it may hold a password, and a home with settings of its own has its own ledger.
    """
    return settings.model_dump_json(exclude_unset=True, exclude={"intake": {"ledger"}})


def settings_from_json(text: str) -> Settings:
    """Settings made by `settings_to_json`, whatever the files and variables say now."""
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


def _refuse_unknown_variables() -> None:
    known = {f"INGEST_{name.upper()}" for name in Settings.model_fields} | _NOT_SETTINGS
    for variable in sorted(os.environ):
        if variable.startswith("INGEST_") and variable.split("__")[0].upper() not in known:
            raise ConfigError(
                f"{variable}: no such setting; sections are {', '.join(sorted(Settings.model_fields))} "
                "(for example INGEST_CHUNKS__MAX_TOKENS)."
            )
