"""Lines of Python, and what the parts of target arrow tell each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from codecgen.plan import LayoutPlan
from codecgen.plan.columns import Leaf
from codecgen.schema.expression import Expression
from codecgen.schema.model import INTEGERS, Field, Span
from codecgen.targets.arrow.primitives import imports, names_in
from codecgen.targets.pycode import WIDTH, Call, call, docstring, string
from codecgen.targets.pycode import Code as Tree


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
    def both(self, *conditions: str) -> Iterator[None]:
        """A block for when all of some conditions hold, in lines that are not too long."""
        head = f"if {' and '.join(conditions)}:"
        if 4 * self.depth + len(head) > WIDTH:
            self.add("if (")
            for i, condition in enumerate(conditions):
                self.add(f"    {'and ' if i else ''}{condition}")
            head = "):"
        with self.block(head):
            yield

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


@dataclass(frozen=True, slots=True)
class Check:
    """What a check is about: a field or a rule with its place in YAML, or a column (by its index), or both."""

    name: str = ""
    place: Span | Expression | None = None
    column: int | None = None


class Checks:
    """Numbers for what kernels check, in the order in which these name it: the same wherever the YAML has it."""

    def __init__(self) -> None:
        self.found: list[Check] = []

    def number(self, check: Check) -> int:
        """The number of a check, from 0 on."""
        if check not in self.found:
            self.found.append(check)
        return self.found.index(check)


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


def kernel_module(text: str, slots: Mapping[str, Mapping[str, int]], *doc: str) -> str:
    """A module of kernels, with the primitives that these call, and the places of numbers that they name."""
    used = names_in(text)
    head = f"from __future__ import annotations\n\nfrom typing import Any\n\n{imports(used)}"
    parts = [f'{docstring(*doc)}\n\n{head}\n__all__ = ["JIT", "KERNELS"]\n']
    for title, places in slots.items():
        kept = sorted((place, name) for name, place in places.items() if name in used)
        parts.append(f"# {title}\n" + "".join(f"{name} = {place}\n" for place, name in kept))
    return "\n".join(parts) + "\n\n" + text.lstrip("\n")


def tuple_of(items: list[Tree]) -> Call:
    """A tuple of Python."""
    return Call("", tuple(("", item) for item in items), "()")


def place_of(check: Check) -> Tree:
    """Where YAML has what a check is about, as the description of a view says it."""
    if check.place is None:
        return "None"
    return call("Place", string(check.name), string(check.place.file), str(check.place.line))
