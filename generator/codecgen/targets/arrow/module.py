"""A module of kernels: constants, functions, and the primitives that these call."""

from __future__ import annotations

import builtins

from codecgen.diagnostics import Span
from codecgen.schema.model import Field
from codecgen.targets.arrow.checks import Check, Checks
from codecgen.targets.arrow.code_tree import Function, Global, Num, globals_of
from codecgen.targets.arrow.function_printer import Names, function_text, pruned
from codecgen.targets.arrow.primitive_imports import NAMES, imports
from codecgen.targets.python_source import docstring

_MODULE = ("Any", "KERNELS", "JIT", "annotations")


class KernelModule:
    """Collects the constants and functions of a generated module of kernels (numba functions), and
    gives them distinct names.
    """

    def __init__(self) -> None:
        self.names = Names({*NAMES, *_MODULE})
        self.groups: list[tuple[str, list[tuple[str, int]]]] = []
        self.functions: list[Function] = []
        self.checks = Checks()

    def group(self, title: str) -> None:
        """Begin a group of constants under the comment ``title``."""
        self.groups.append((title, []))

    def constant(self, wanted: str, value: int) -> Global:
        """Add a constant to the last group. Return it by its name, which begins with ``wanted``."""
        name = self.names.new(wanted)
        self.groups[-1][1].append((name, value))
        return Global(name)

    def name(self, wanted: str) -> str:
        """Return a new name for a function, ``wanted`` if it is free."""
        return self.names.new(wanted)

    def check(self, f: Field, place: Span | None = None, name: str = "") -> Num:
        """Return the number that a kernel returns if the check of a field or rule fails, from 1 on. The same check has the same number."""
        return Num(self.checks.number(Check(name or f.name, place or f.span)) + 1)

    def text(self, kernels: list[str], doc: str, *docs: str) -> str:
        """Return the source of the module: a docstring with the paragraphs ``doc`` and ``docs``,
        imports, constants, functions and ``kernels``, the lines of the table of entry points.
        Assignments without effect and unused constants are removed, also from the functions
        themselves. Raise LookupError if a function uses a name that nothing defines, or has no
        decorator.

        Args:
            kernels: Lines of the table of entry points.
            doc: First paragraph of its docstring.
            docs: Further paragraphs.
        """
        for function in self.functions:
            function.body = pruned(function.body)
        used = {name for function in self.functions for name in globals_of(function.body)}
        used |= {function.decorator for function in self.functions}
        taken = frozenset(self.names.taken)
        unknown = used - taken - set(dir(builtins))
        if unknown:
            raise LookupError(
                f"kernels use {', '.join(sorted(unknown))}, which nothing defines: this is a defect of codecgen"
            )
        parts = [
            docstring(doc, *docs),
            "from __future__ import annotations",
            f"from typing import Any\n\n{imports(used)}".rstrip("\n"),
            '__all__ = ["JIT", "KERNELS"]',
        ]
        for title, constants in self.groups:
            lines = [f"{name} = {value}" for name, value in constants if name in used]
            if lines:
                parts.append("\n".join([f"# {title}", *lines]))
        text = "\n\n".join(parts)
        text += "".join(f"\n\n\n{function_text(f, taken)}" for f in self.functions)
        return text + "\n\n\n" + "\n".join(kernels) + "\n"
