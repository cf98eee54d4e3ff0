"""A module of kernels: constants, functions, and the primitives that these call."""

from __future__ import annotations

from codecgen.schema.model import Field, Span
from codecgen.targets.arrow.code import Check, Checks
from codecgen.targets.arrow.primitives import NAMES
from codecgen.targets.arrow.printing import Names, function_text, pruned
from codecgen.targets.arrow.tree import Function, Global, Num, globals_of

_MODULE = ("Any", "KERNELS", "JIT")


class KernelModule:
    """Gathers what a module of kernels is made of. Names are given here, so that none meets another."""

    def __init__(self) -> None:
        self.names = Names({*NAMES, *_MODULE})
        self.constants: list[tuple[str, int] | None] = []
        self.functions: list[Function] = []
        self.checks = Checks()

    def constant(self, wanted: str, value: int) -> Global:
        """A number of the module by its name."""
        name = self.names.new(wanted)
        self.constants.append((name, value))
        return Global(name)

    def gap(self) -> None:
        """An empty line between constants."""
        self.constants.append(None)

    def name(self, wanted: str) -> str:
        """A name for a function."""
        return self.names.new(wanted)

    def check(self, f: Field, place: Span | None = None, name: str = "") -> Num:
        """The number that a kernel gives for what a field, or a rule, says."""
        return Num(self.checks.number(Check(name or f.name, place or f.span)) + 1)

    def text(self) -> str:
        """Constants and functions."""
        for function in self.functions:
            function.body = pruned(function.body)
        used = {name for function in self.functions for name in globals_of(function.body)}
        kept = [c for c in self.constants if c is None or c[0] in used]
        lines = ["" if c is None else f"{c[0]} = {c[1]}" for c in kept]
        taken = frozenset(self.names.taken)
        parts = [function_text(function, taken) for function in self.functions]
        return "\n".join(lines) + "".join(f"\n\n\n{part}" for part in parts) + "\n"
