"""A mapping whose keys are known and whose values are looked up when they are asked for."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Lookup(Mapping[str, Value], Generic[Value]):
    """Keys cost nothing; a value is looked up each time, and never one that nobody wants."""

    keys_known: Collection[str]
    look_up: Callable[[str], Value]

    def __getitem__(self, key: str) -> Value:
        if key not in self.keys_known:
            raise KeyError(key)
        return self.look_up(key)

    def __contains__(self, key: object) -> bool:
        return key in self.keys_known

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys_known)

    def __len__(self) -> int:
        return len(self.keys_known)
