"""The source of one fast parser or builder while it is printed: its lines and local variables."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Callable

from codecgen.plan import LayoutPlan
from codecgen.targets.construct.fast_module import FastModule, short_name
from codecgen.targets.python_source import string

RESERVED = frozenset(
    [
        *keyword.kwlist,
        *dir(builtins),
        *["end_of", "look_up", "max_of", "min_of", "minus", "ordered", "plus"],
        *["value_at", "wrap"],
    ]
)
"""Names that no field of a layout gets as its local variable, in parsers and builders."""


class FunctionSource:
    """Lines and local variables of the fast parser or builder of one layout version, which the
    printers of its parts share. The printed Python function raises Irregular, or any other
    exception, for what it leaves to the field-by-field codec.

    Attributes:
        lines: The lines so far.
        indent: The number of levels by which the next line is indented.
        always_null: Fields that the function handles only if they are null.
        bits_used: Names of words and of their bits that expressions use.
    """

    def __init__(
        self,
        module: FastModule,
        layout: LayoutPlan,
        reserved: frozenset[str],
        prefixes: tuple[str, ...],
        bits_used: set[tuple[str, str]],
    ) -> None:
        self._module = module
        self._layout = layout
        self._field_names = frozenset(fp.name for fp in layout.values)
        self._prefixes = prefixes
        self._taken = set(reserved)
        self._variables: dict[str, str] = {}  # keys of those that hold no field begin with a blank
        self.bits_used = bits_used
        self.lines: list[str] = []
        self.indent = 1
        self.always_null: set[str] = set()

    def emit(self, *lines: str) -> None:
        """Append lines."""
        self.lines += self.indented(lines)

    def emit_raise_if(self, condition: str) -> None:
        """Append the lines that raise Irregular under a condition."""
        self.emit(f"if {condition}:", "    raise Irregular")

    def indented(self, lines: tuple[str, ...] | list[str]) -> list[str]:
        """Return lines with the indentation of the next line."""
        return [f"{'    ' * self.indent}{line}" for line in lines]

    def local(self, name: str) -> str:
        """Return the local variable of a field, the same for each call. It is the field's name,
        after ``field_`` if it begins with one of ``prefixes``, with underscores appended until it
        is unique.
        """
        if name not in self._variables:
            wanted = f"field_{name}" if name.startswith(self._prefixes) else name
            while wanted in self._taken:
                wanted += "_"
            self._variables[name] = wanted
            self._taken.add(wanted)
        return self._variables[name]

    def temporary(self, name: str) -> str:
        """Return the local variable of a value that is no field, the same for each call: ``name``,
        with underscores appended until no variable, field or reserved word has it.
        """
        key = f" {name}"
        if key not in self._variables:
            while name in self._taken or name in self._field_names:
                name += "_"
            self._variables[key] = name
            self._taken.add(name)
        return self._variables[key]

    def bit(self, word: str, member: str) -> str:
        """Return the local variable of a named bit of the field ``word``, and note in ``bits_used``
        that the function uses it.
        """
        self.bits_used.add((word, member))
        return self.temporary(f"{word}_{member}")

    def bits_used_of(self, word: str) -> list[str]:
        """Return the local variables of the bits of a field that expressions use, by name of bit."""
        return [self.bit(name, member) for name, member in sorted(self.bits_used) if name == word]

    def field_codec(self, name: str) -> str:
        """Return the expression for a field of the layout's codec."""
        return f"{self._module.layout(self._layout)}.by_name[{string(name)}]"

    def constant(self, name: str, text: str) -> str:
        """Define a constant of the module whose value is the expression ``text``, and return its
        name: that of the layout version, then ``name``, made unique by underscores.
        """
        return self._module.constant(f"_{short_name(self._layout)}_{name}", text)

    def table(self, name: str, cases: dict[str, str]) -> str:
        """Define a dict of functions by key, from the code of both, below all functions, and return
        its name: that of the layout version, then ``name``.
        """
        return self._module.table(f"_{short_name(self._layout)}_{name}", cases)

    def save(self) -> Callable[[], None]:
        """Return a function that takes back the lines, variables, imports and constants that are
        added from now on, and resets the indentation. ``bits_used`` and ``always_null`` stay.
        """
        module, count = self._module.snapshot(), len(self.lines)
        variables, taken, indent = dict(self._variables), set(self._taken), self.indent

        def undo() -> None:
            self._module.restore(module)
            del self.lines[count:]
            self._variables, self._taken, self.indent = variables, taken, indent

        return undo
