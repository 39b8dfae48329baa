"""What groups of commands share: help when called alone, and flags that several of their commands take."""

import inspect
from collections.abc import Callable
from typing import Any

import typer

from ingest_assets.cli.output import say


def group(help_text: str) -> typer.Typer:
    """A group that lists its commands when none is given."""
    app = typer.Typer(help=help_text)

    def help_alone(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            say(context.get_help())

    app.callback(invoke_without_command=True)(help_alone)
    return app


def taking(shared: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function with the flags of `shared` before its own; what `shared` makes of them comes first."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        flags = list(inspect.signature(shared).parameters.values())
        own = list(inspect.signature(function).parameters.values())[1:]

        def called(**values: Any) -> Any:
            of_shared = {flag.name: values.pop(flag.name) for flag in flags}
            return function(shared(**of_shared), **values)

        called.__signature__ = inspect.Signature([*flags, *own])  # type: ignore[attr-defined]
        called.__name__, called.__doc__ = function.__name__, function.__doc__
        return called

    return decorate
