"""What is wrong with a setting, in one line: where it was set, what was expected, what was given."""

import os
import re
from typing import Any, get_args

from pydantic import BaseModel


def explain(fault: Any, settings: type[BaseModel], file: object) -> str:
    """One of the faults that a validation of the settings found."""
    path = ".".join(str(part) for part in fault["loc"])
    variable = _variable_for(fault["loc"])
    where = f"{file}: {path}" if variable is None else variable
    if variable is not None and variable.upper() != _variable_name(fault["loc"]):
        where = f"{variable}: {path}"
    if fault["type"] == "extra_forbidden":
        return f"{where}: no such setting; known here: {', '.join(_known_keys(settings, fault['loc'][:-1]))}."
    expected = re.sub(r"^(Input should|Value error, should|Value should)", "should", fault["msg"])
    return f"{where}: {expected}; got {_shown(fault['input'])}."


def _shown(given: object) -> str:
    """What was given; of an address with a name and a password, neither."""
    return re.sub(r"//[^/@\s'\"]*@", "//…@", repr(given))


def _variable_name(location: tuple[Any, ...]) -> str:
    return "INGEST_" + "__".join(str(part) for part in location).upper()


def _variable_for(location: tuple[Any, ...]) -> str | None:
    """The environment variable that set a key, itself or a whole section as JSON; None when none did."""
    given = {name.upper(): name for name in os.environ}
    names = [_variable_name(location[:length]) for length in range(len(location), 0, -1)]
    return next((given[name] for name in names if name in given), None)


def _known_keys(settings: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    """The keys of a section; below a map of sections, those of its values."""
    found: Any = settings
    for part in location:
        fields = getattr(found, "model_fields", None)
        found = get_args(found)[-1] if fields is None else getattr(fields.get(str(part)), "annotation", None)
    return sorted(getattr(found, "model_fields", {}))
