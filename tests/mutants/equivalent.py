"""The list of mutants that mean the same as the schemas, with the reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

LIST = Path(__file__).parent / "equivalent.yaml"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some mutants mean the same. In their names ``*`` stands for any text."""

    why: str
    names: tuple[str, ...]

    def covers(self, name: str) -> bool:
        return any(_matches(pattern, name) for pattern in self.names)


def _matches(pattern: str, name: str) -> bool:
    parts = map(re.escape, pattern.split("*"))
    return re.fullmatch(".*".join(parts), name) is not None


def read(path: Path = LIST) -> list[Reason]:
    """The reasons of a file."""
    found = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return [Reason(entry["why"].strip(), tuple(entry["mutants"])) for entry in found]


def reason(name: str, reasons: Iterable[Reason]) -> str | None:
    """Why a mutant means the same; None when it is not listed."""
    return next((one.why for one in reasons if one.covers(name)), None)


def unused(names: Iterable[str], reasons: Iterable[Reason]) -> list[str]:
    """Patterns that no mutant has."""
    every = list(names)
    return [p for one in reasons for p in one.names if not any(_matches(p, n) for n in every)]
