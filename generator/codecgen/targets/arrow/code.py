"""Lines of Python, and what the parts of target arrow tell each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from codecgen.plan import LayoutPlan
from codecgen.plan.columns import Leaf
from codecgen.schema.model import INTEGERS, Field
from codecgen.targets.pycode import WIDTH


class Code:
    """Lines of Python."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def add(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def call(self, head: str, *arguments: str) -> None:
        """A call, in lines that are not too long."""
        text = ", ".join(arguments)
        if 4 * self.depth + len(head) + len(text) + 2 <= WIDTH:
            self.add(f"{head}({text})")
            return
        self.add(f"{head}(")
        self.add(f"    {text}")
        self.add(")")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.add(head)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.add("pass")
        self.depth -= 1


@dataclass(frozen=True, slots=True)
class Sinks:
    """Where fields of an element go: ``leaves`` by the name of the field, ``lists`` by that of an array."""

    leaves: Mapping[str, Leaf] = field(default_factory=dict)
    lists: Mapping[str, tuple[Leaf, Mapping[str, Leaf]]] = field(default_factory=dict)


class Unsupported(Exception):
    """What the target cannot express, and the field that asks for it."""

    def __init__(self, reason: str, f: Field) -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = f


def function_name(verb: str, entry: LayoutPlan) -> str:
    version = "" if entry.version is None else f"_v{entry.version}"
    return f"{verb}_{entry.name}{version}"


def integer_of(f: Field) -> tuple[int, bool]:
    """Bytes and sign of a field of fixed size."""
    name = str(getattr(f.type, "base", None) or getattr(f.type, "name", ""))
    if name not in INTEGERS or name == "u64":
        raise Unsupported("a number that is none of fixed size", f)
    return INTEGERS[name]
