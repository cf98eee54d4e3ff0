"""One module of fast parsers and builders: its imports, constants and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from codecgen.plan import LayoutPlan, Plan
from codecgen.targets.construct.homes import Home, class_name, import_line, symbol
from codecgen.targets.construct.module_scope import RUNTIME, ModuleScope
from codecgen.targets.python_source import docstring

FAST_RUNTIME = "codecgen.runtime.fast_path"


_OWN_NAMES = frozenset(
    [
        *["Any", "FastPath", "InArray", "Irregular", "List", "SECOND_BYTES", "SEQUENCES"],
        *["Session", "Struct"],
    ]
)
"""Names in a module of fast parsers and builders that a layout or an enum may have too."""

_STANDARD = {
    "collections": {"deque"},
    "itertools": {"repeat", "starmap"},
    "struct": {"Struct", "pack", "unpack_from"},
    "typing": {"Any"},
    "uuid": {"UUID"},
}
"""Names of the standard library that functions use, by module."""


class Unsupported(Exception):
    """Raised for an operation that fast parsers do not have."""


def short_name(layout: LayoutPlan) -> str:
    """Return the name of a layout in one version, as names of constants have it."""
    return symbol(layout.name, layout.version).lower()


def function_name(layout: LayoutPlan) -> str:
    """Return the name of the function that parses a layout in one version."""
    return f"parse_{short_name(layout)}"


def array_function_name(layout: LayoutPlan) -> str:
    """Return the name of the function that parses an array of a layout in one version."""
    return f"parse_each_{short_name(layout)}"


def builder_name(layout: LayoutPlan) -> str:
    """Return the name of the function that builds a layout in one version."""
    return f"build_{short_name(layout)}"


def full_name(layout: LayoutPlan) -> str:
    """Return the name of a layout, with ``@`` and the version if it has one."""
    return layout.name if layout.version is None else f"{layout.name}@{layout.version}"


class FastFunctions(Protocol):
    """Knows which layouts of a plan have a fast parser and a fast builder, and where these are."""

    plan: Plan

    def home(self, layout: str) -> Home:
        """Return the module of the fast parsers and builders of a layout."""

    def depth(self, layout: LayoutPlan) -> int | None:
        """Return the number of nested levels of layouts and arrays in a layout that another one
        holds, itself included. Return None if the other one cannot call its fast parser.
        """

    def is_element(self, layout: LayoutPlan) -> bool:
        """Return whether the fast parser of the layout, if it has one, parses a whole array."""

    def is_linked(self, layout: LayoutPlan) -> bool:
        """Return whether the layout is an element of an array that derives values for each."""

    def has_builder(self, layout: LayoutPlan) -> bool:
        """Return whether the fast builder of a layout that holds another one, ``layout``, can call
        that of the other.
        """


class FastModule:
    """Imports, constants and tables of one generated module of fast parsers and builders, which its
    functions share. A fast parser reads regular bytes of one layout version, a fast builder writes
    regular values.
    """

    def __init__(self, functions: FastFunctions, scope: ModuleScope) -> None:
        self.functions = functions
        self.scope = scope
        self.fast_runtime: set[str] = {"Irregular"}
        self.standard: set[str] = set()
        self.building = False
        self.constants: dict[str, str] = {}
        self.tables: dict[str, str] = {}

    def snapshot(self) -> tuple[object, ...]:
        """Return a copy of the imports, constants and tables that the module has so far, as the
        argument of :meth:`restore`.
        """
        imports = {home: set(names) for home, names in self.scope.imports.items()}
        return (
            *(set(self.fast_runtime), set(self.standard), dict(self.constants), dict(self.tables)),
            *(imports, set(self.scope.runtime)),
        )

    def restore(self, known: tuple[Any, ...]) -> None:
        """Forget what was imported and defined since ``known`` was the state of the module."""
        self.fast_runtime, self.standard, self.constants, self.tables = known[:4]
        self.scope.imports, self.scope.runtime = known[4:]

    def table(self, name: str, cases: Mapping[str, str]) -> str:
        """Define a dict of functions by key, from the code of both, below all functions, and return
        its name. It replaces a table of the same name.
        """
        lines = [f"    {key}: {value}," for key, value in cases.items()]
        self.tables[name] = "\n".join([f"{name} = {{", *lines, "}"])
        return name

    def constant(self, name: str, text: str) -> str:
        """Define a constant of the module whose value is the expression ``text``, and return its
        name: ``name``, with underscores appended until no constant of that name has another value.
        A second call with the same name and value returns the same constant.
        """
        while self.constants.get(name, text) != text:
            name += "_"
        self.constants[name] = text
        return name

    def use(self, name: str) -> str:
        """Import a name of the runtime of fast parsers, and return it."""
        self.fast_runtime.add(name)
        return name

    def refer(self, thing: str, name: str) -> str:
        """Return the name by which this module knows ``name`` of the declaration ``thing``, and
        import it: ``_name`` if the module uses ``name`` itself (such as ``Struct`` or ``List``),
        otherwise ``name``, or a unique alias if another schema directory declares it. Raise
        KeyError for an unknown declaration.
        """
        if name not in _OWN_NAMES:
            return self.scope.refer(thing, name)
        self.scope.imports.setdefault(self.scope.homes[thing], set()).add(f"{name} as _{name}")
        return f"_{name}"

    def layout(self, layout: LayoutPlan) -> str:
        """Return the name of the codec of a layout."""
        return self.refer(layout.name, symbol(layout.name, layout.version))

    def parsed_class(self, layout: LayoutPlan) -> str:
        """Return the name of the class of a layout's parsed values, and import it."""
        return self.refer(layout.name, self.scope.classes[layout.name, layout.version])

    def function(self, layout: LayoutPlan) -> str:
        """Return the name of the fast parser of a layout version, and import it if another module
        defines it. Raise Unsupported if the layout has no fast parser, can hold itself, or has
        compressed arrays.
        """
        if self.functions.depth(layout) is None:
            raise Unsupported
        return self.imported(layout, function_name(layout))

    def array_function(self, layout: LayoutPlan) -> str:
        """Return the name of the fast parser of arrays of a layout version, and import it if
        another module defines it. Raise Unsupported if the layout has no fast parser, can hold
        itself, or has compressed arrays. The caller checks that arrays hold the layout.
        """
        if self.functions.depth(layout) is None:
            raise Unsupported
        return self.imported(layout, array_function_name(layout))

    def builder(self, layout: LayoutPlan) -> str:
        """Return the name of the fast builder of a layout, and import it if it is in another
        module. Raise Unsupported if the layout has no fast builder or can hold itself.
        """
        if not self.functions.has_builder(layout):
            raise Unsupported
        return self.imported(layout, builder_name(layout))

    def imported(self, layout: LayoutPlan, name: str) -> str:
        """Return ``name``, a fast function of a layout, and import it if it is in another module.
        The caller checks that the layout has this function.
        """
        home = self.functions.home(layout.name)
        if home != self.scope.home:
            self.scope.imports.setdefault(home, set()).add(name)
        return name

    def members(self, enum: str, only: tuple[str, ...] | None) -> str:
        """Define a constant whose value is a dict of an enum's members by number, and return its
        name. ``only`` limits the members to these names; None includes all. Import the enum.
        """
        name = self.refer(enum, class_name(enum))
        among = name
        if only is not None:
            among = f"({''.join(f'{name}.{value.upper()}, ' for value in only).rstrip()})"
        short = enum.rpartition(".")[2]
        return self.constant(f"_{short}", f"{{member.value: member for member in {among}}}")

    def unpacker(self, codes: str, endian: str, method: str = "unpack_from") -> str:
        """Define a constant, the method ``unpack_from`` or ``iter_unpack`` of a ``Struct`` with the
        format ``codes``, and return its name. The byte order is little-endian if ``endian`` is
        "little", otherwise big-endian.
        """
        self.standard.add("Struct")
        order = "<" if endian == "little" else ">"
        name = f"{method.removesuffix('_from')}_{'le_' if order == '<' else ''}{codes}"
        return self.constant(name, f'Struct("{order}{codes}").{method}')

    def packer(self, codes: str, endian: str, method: str = "pack") -> str:
        """Define a constant, the method ``pack`` or ``pack_into`` of a ``Struct`` with the format
        ``codes``, and return its name. The byte order is little-endian if ``endian`` is "little",
        otherwise big-endian.
        """
        self.standard.add("Struct")
        order = "<" if endian == "little" else ">"
        name = f"{method}_{'le_' if order == '<' else ''}{codes}"
        return self.constant(name, f'Struct("{order}{codes}").{method}')

    def text(self, header: str, parts: Sequence[str]) -> str:
        """Return the source of the module: the docstring ``header``, imports, constants, and
        ``parts``, the texts of its functions and, last, of the table of fast parsers. Tables that
        functions use come directly before the last part.
        """
        groups = [docstring(header), "# fmt: off", "from __future__ import annotations"]
        names = self.standard | ({"Any"} if self.building else set())
        standard = [
            f"from {home} import {', '.join(imported)}"
            for home, known in _STANDARD.items()
            if (imported := sorted(names & known))
        ]
        self.scope.imports.pop(self.scope.home, None)
        if standard:
            groups.append("\n".join(standard))
        first = []
        if self.scope.runtime:
            first.append(import_line(RUNTIME, self.scope.runtime))
        first.append(import_line(FAST_RUNTIME, self.fast_runtime))
        first.append("from codecgen.runtime.located_bytes import Session")
        for home in sorted(self.scope.imports):
            first.append(import_line(".".join(home), self.scope.imports[home]))
        groups.append("\n".join(first))
        if self.constants:
            groups.append("\n".join(f"{name} = {text}" for name, text in self.constants.items()))
        return (
            "\n\n".join(groups)
            + "\n\n\n"
            + "\n\n\n".join([*parts[:-1], "\n\n".join([*self.tables.values(), parts[-1]])])
            + "\n"
        )
