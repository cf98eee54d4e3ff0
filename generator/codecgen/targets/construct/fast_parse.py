"""Fast parsers of layouts: for each version one function that parses regular bytes, printed from its read program."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Mapping, Sequence
from typing import Any

from codecgen.plan import FieldPlan, LayoutPlan, Plan, nodes
from codecgen.plan.nodes import DerivedValue, FieldValue, Value, ends_read
from codecgen.plan.read_ops import (
    Absent,
    Bytes,
    Choose,
    Close,
    Elements,
    Mark,
    Number,
    Open,
    Padding,
    ReadOp,
    Require,
    Struct,
    Tags,
    Verify,
    When,
)
from codecgen.plan.read_program import read_program
from codecgen.schema.model import Layout
from codecgen.schema.scalars import COMPACT, SCALARS, Scalar
from codecgen.schema.types import (
    ZERO_TERMINATED,
    ArrayType,
    BitsType,
    BytesType,
    ChoiceType,
    ScalarType,
    StructType,
)
from codecgen.targets.construct.class_names import Classes
from codecgen.targets.construct.expressions import PythonExpressions
from codecgen.targets.construct.homes import Home, class_name, import_line, symbol
from codecgen.targets.construct.module_scope import RUNTIME, ModuleScope
from codecgen.targets.python_source import Code, docstring, string

FAST_RUNTIME = "codecgen.runtime.fast_path"

_CODES = {
    "i8": "b",
    "i16": "h",
    "i32": "i",
    "i64": "q",
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "Q",
    "f32": "f",
    "f64": "d",
    "bool": "B",
    "uuid": "16s",
    "i24": "3s",
    "u24": "3s",
}
"""Codes of :mod:`struct` for scalars of fixed size."""

_RESERVED = frozenset(
    [
        *keyword.kwlist,
        *dir(builtins),
        *["data", "pos", "end", "session", "raw", "byte", "item", "index", "start", "stop", "tag"],
        *["count", "size", "numbers", "section", "within", "at", "tags"],
        *["end_of", "max_of", "min_of", "minus", "ordered", "plus", "value_at", "wrap"],
        *["link_elements", "read_varint", "open_section", "default_value"],
    ]
)
"""Names that the fields of a layout do not get as local variables."""


class Unsupported(Exception):
    """Raised for an operation that fast parsers do not have."""


class FastModules:
    """Names of the modules and functions of fast parsers, and the layouts that have one."""

    def __init__(self, plan: Plan, homes: Mapping[str, Home], classes: Classes) -> None:
        self.plan = plan
        self.homes = homes
        self.classes = classes
        self._depths: dict[tuple[str, int | None], int | None] = {}
        names = {"/".join(home) for home in homes.values()}
        self._suffix = "_fast"
        while any("/".join(home) + self._suffix in names for home in homes.values()):
            self._suffix += "_"

    def home(self, layout: str) -> Home:
        """Return the module of the fast parsers of a layout."""
        *package, module = self.homes[layout]
        return (*package, module + self._suffix)

    def depth(self, layout: LayoutPlan) -> int | None:
        """Return how many layouts and arrays lie in each other in a layout, or None if it has no fast parser."""
        key = layout.name, layout.version
        if key not in self._depths:
            self._depths[key] = None  # a layout that holds itself
            if layout.name in self.plan.model.layouts and "." not in layout.name:
                scope = ModuleScope(
                    self.plan,
                    layout.layout.span.file,
                    self.home(layout.name),
                    self.homes,
                    self.classes,
                )
                try:
                    function = LayoutFunction(self, FastModule(self, scope), layout)
                    function.text()
                except (Unsupported, TypeError):
                    return None
                self._depths[key] = function.depth
        return self._depths[key]

    def emit(self, file: str, layouts: Sequence[Layout], header: str) -> tuple[str, str] | None:
        """Return the name and the source of the module with the fast parsers of a file, or None if it has none."""
        plans = [p for layout in layouts for p in self.plan.versions[layout.name]]
        wanted = [p for p in plans if self.depth(p) is not None]
        if not wanted:
            return None
        home = self.home(wanted[0].name)
        module = FastModule(self, ModuleScope(self.plan, file, home, self.homes, self.classes))
        functions = [LayoutFunction(self, module, p).text() for p in wanted]
        paths = [
            f"    {string(_full_name(p))}: FastPath({_function_name(p)}, depth={self.depth(p)}),"
            for p in wanted
        ]
        table = "\n".join(["FAST_PATHS = {", *paths, "}"])
        module.fast_runtime.add("FastPath")
        return ".".join(home), module.text(header, [*functions, table])


def _function_name(layout: LayoutPlan) -> str:
    """Return the name of the function that parses a layout in one version."""
    return f"parse_{symbol(layout.name, layout.version).lower()}"


def _full_name(layout: LayoutPlan) -> str:
    """Return the name of a layout, with ``@`` and the version if it has one."""
    return layout.name if layout.version is None else f"{layout.name}@{layout.version}"


class FastModule:
    """Imports and constants of one module of fast parsers, which its functions share."""

    def __init__(self, modules: FastModules, scope: ModuleScope) -> None:
        self.modules = modules
        self.scope = scope
        self.fast_runtime: set[str] = {"Irregular"}
        self.standard: set[str] = set()
        self.linking = False
        self.constants: dict[str, str] = {}
        self.tables: dict[str, str] = {}

    def snapshot(self) -> tuple[object, ...]:
        """Return what the module imports and defines so far, for :meth:`restore`."""
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
        """Return the name of a table of functions by key, which is defined below all functions."""
        lines = [f"    {key}: {value}," for key, value in cases.items()]
        self.tables[name] = "\n".join([f"{name} = {{", *lines, "}"])
        return name

    def constant(self, name: str, text: str) -> str:
        """Return the name of a constant of the module whose value is the expression ``text``."""
        while self.constants.get(name, text) != text:
            name += "_"
        self.constants[name] = text
        return name

    def use(self, name: str) -> str:
        """Import a name of the runtime of fast parsers, and return it."""
        self.fast_runtime.add(name)
        return name

    def layout(self, layout: LayoutPlan) -> str:
        """Return the name of the codec of a layout."""
        return self.scope.refer(layout.name, symbol(layout.name, layout.version))

    def function(self, layout: LayoutPlan) -> str:
        """Return the name of the fast parser of a layout; raise Unsupported if it has none."""
        if self.modules.depth(layout) is None:
            raise Unsupported
        name = _function_name(layout)
        home = self.modules.home(layout.name)
        if home != self.scope.home:
            self.scope.imports.setdefault(home, set()).add(name)
        return name

    def members(self, enum: str, only: tuple[str, ...] | None) -> str:
        """Return the constant that has the members of an enum by number; all, or those of ``only``."""
        name = self.scope.refer(enum, class_name(enum))
        among = name
        if only is not None:
            among = f"({''.join(f'{name}.{value.upper()}, ' for value in only).rstrip()})"
        short = enum.rpartition(".")[2]
        return self.constant(f"_{short}", f"{{member.value: member for member in {among}}}")

    def unpacker(self, codes: str, endian: str) -> str:
        """Return the constant that unpacks a run of fixed-size values."""
        self.standard.add("Struct")
        order = "<" if endian == "little" else ">"
        name = f"unpack_{'le_' if order == '<' else ''}{codes}"
        return self.constant(name, f'Struct("{order}{codes}").unpack_from')

    def text(self, header: str, parts: Sequence[str]) -> str:
        """Return the source of the module."""
        groups = [docstring(header), "# fmt: off", "from __future__ import annotations"]
        standard = []
        if names := sorted(self.standard - {"UUID"}):
            standard.append(f"from struct import {', '.join(names)}")
        if "UUID" in self.standard:
            standard.append("from uuid import UUID")
        self.scope.imports.pop(self.scope.home, None)
        if standard:
            groups.append("\n".join(standard))
        first = []
        if self.scope.runtime:
            first.append(import_line(RUNTIME, self.scope.runtime))
        first.append(import_line(FAST_RUNTIME, self.fast_runtime))
        first.append("from codecgen.runtime.located_bytes import Session")
        if self.linking:
            first.append("from codecgen.runtime.parsed import link_elements")
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


class LocalExpressions(PythonExpressions):
    """Prints values of the plan from the local variables of a fast parser."""

    def __init__(
        self, function: LayoutFunction, *, bits: int | None, full: str | None, item: str
    ) -> None:
        super().__init__(lambda enum: enum, bits=bits)
        self.item = item
        self.function_of = function
        self.full = full
        """The array that is known to have elements."""

    def text(self, value: Value) -> str:
        """Return the expression for a value; members of enums are numbers."""
        match value:
            case nodes.Word(_, _, number):
                return str(number)
            case nodes.ElementValue():
                return self.item
            case nodes.VersionValue(_, field):
                return self.function_of.local(field)
            case nodes.EndValue(end, array, inner) if self.is_simple_end(array, inner):
                return self.function_of.end_text(end, array.field.name, inner.names)  # type: ignore[union-attr]
        return super().text(value)

    def code(self, value: Value) -> Code:
        """Return a value as code. A sum that cannot be null wraps in place."""
        if not isinstance(value, nodes.Sum) or self.bits is None or value.type.nullable:
            return super().code(value)
        bits, self.bits = self.bits, None
        inner = self.sum_text(value)
        self.bits = bits
        half = 1 << (bits - 1)
        return f"(({inner} + {half:#x} & {(1 << bits) - 1:#x}) - {half:#x})"

    def is_simple_end(
        self, array: FieldValue, inner: FieldValue | nodes.BitValue | nodes.ElementValue
    ) -> bool:
        """Return whether the array has elements, and every element a number ``inner``."""
        if array.owner != "own" or array.holders or array.field.name != self.full:
            return False
        return isinstance(inner, FieldValue) and self.function_of.is_number_of_all(array, inner)

    def path_text(self, owner: str, names: tuple[str, ...], may_end: bool) -> str:
        """Return the expression for a field by its names."""
        if owner == "item":
            start, rest = self.item, names
        else:
            start, rest = self.function_of.local_path(names)
        if may_end and rest:
            return f"{self.use_helper('value_at')}({', '.join((start, *map(string, rest)))})"
        return start + "".join(f"[{string(name)}]" for name in rest)


class LayoutFunction:
    """Prints the fast parser of one layout in one version."""

    def __init__(self, modules: FastModules, module: FastModule, layout: LayoutPlan) -> None:
        self.plan = modules.plan
        self.modules = modules
        self.module = module
        self.layout = layout
        self.depth = 1
        self.program = read_program(self.plan, layout)
        self.bits_used: set[tuple[str, str]] = set()
        self.begin()

    def begin(self) -> None:
        """Forget what was printed."""
        self.lines: list[str] = []
        self.indent = 1
        self.run: list[tuple[str, str]] = []
        self.run_endian: str | None = None
        self.verified: set[str] = set()
        self.always_null: set[str] = set()
        self.checks: list[str] = []
        self.locals: dict[str, str] = {}
        self.ends: list[str] = ["end"]
        self.reaches_end: list[bool] = []
        self.maxima: dict[tuple[str, str, str], str] = {}

    # ------------------------------------------------------------ the whole

    def text(self) -> str:
        """Return the source of the function; raise Unsupported if an operation is not supported."""
        for _ in range(2):  # the second time it is known which bits are used
            self.begin()
            self.body()
        parsed = self.module.scope.refer(
            self.layout.name, self.module.scope.classes[self.layout.name, self.layout.version]
        )
        signature = "(data: bytes, pos: int, end: int, session: Session)"
        head = f"def {_function_name(self.layout)}{signature} -> tuple[{parsed}, int]:"
        if len(head) > 100:
            head = (
                f"def {_function_name(self.layout)}(\n    data: bytes, pos: int, end: int, session: Session\n"
                f") -> tuple[{parsed}, int]:"
            )
        title = (
            f"Parse ``{_full_name(self.layout)}``. Raise an exception if the bytes are not regular."
        )
        return "\n".join([head, docstring(title, indent=4), *self.lines])

    def body(self) -> None:
        """Print the lines of the function."""
        layout = self.layout
        if any(isinstance(op, Open) and op.when is not None for op in self.program.ops):
            raise Unsupported
        self.covered = self.checksum_places()
        if any(isinstance(op, Padding) for op in self.program.ops):
            self.emit("start = pos")
        for op in self.program.ops:
            self.op(op)
        self.flush()
        if not self.program.ops or not isinstance(self.program.ops[-1], Close):
            self.refuse_if("pos > end")
        for fp in layout.fields:
            if fp.covers and fp.name not in self.verified:
                self.verify(fp, self.covered[fp.name])
        self.rules()
        self.result()

    def result(self) -> None:
        """Print the construction of the value."""
        layout = self.layout
        parsed = self.module.scope.refer(
            layout.name, self.module.scope.classes[layout.name, layout.version]
        )
        names = [fp.name for fp in layout.in_order if not _is_tags(fp)]
        for fp in layout.in_order:
            if _is_tags(fp):
                names += [t.name for t in layout.fields if t.field.tag is not None]
                names.append(fp.name)
        if [n for n in names if n in {fp.name for fp in layout.in_order}] != [
            fp.name for fp in layout.in_order
        ]:
            raise Unsupported  # fields follow the section of tagged fields
        items = [f"{string(name)}: {self.local(name)}" for name in names]
        linked = self.linked_arrays()
        one = f"{parsed}({{{', '.join(items)}}})"
        value = self.temporary("parsed")
        start = f"{value} = " if linked else "return "
        after = "" if linked else ", pos"
        if len(start + one + after) + 4 <= 100:
            self.emit(f"{start}{one}{after}")
        else:
            self.emit(f"{start}{parsed}(")
            self.emit("    {")
            for item in items:
                self.emit(f"        {item},")
            self.emit("    }")
            self.emit(f"){after}")
        for name in linked:
            self.module.linking = True
            of_each = self.module.constant(
                f"_{_short(layout)}_{name}_values",
                f"{self.module.layout(layout)}.by_name[{string(name)}].of_each",
            )
            self.emit(f"link_elements({self.local(name)}, {value}, {of_each})")
        if linked:
            self.emit(f"return {value}, pos")

    def linked_arrays(self) -> list[str]:
        """Return the arrays whose elements have derived values. Raise Unsupported if the values of an array depend on other
        elements, and fields follow the array.
        """
        out: dict[str, None] = {}
        for value in self.layout.derived:
            array = value.derived.array
            if array is None or self.layout.field(array) is None:
                continue
            out[array] = None
            if _depends_on_others(value) and self.layout.fields[-1].name != array:
                raise Unsupported
        return list(out)

    # ------------------------------------------------------------ printing

    def emit(self, *lines: str) -> None:
        """Append lines."""
        self.lines += [f"{'    ' * self.indent}{line}" for line in lines]

    def refuse_if(self, condition: str) -> None:
        """Print that the function gives up under a condition."""
        self.emit(f"if {condition}:", "    raise Irregular")

    @property
    def end(self) -> str:
        """Return the variable that holds the end of the innermost window."""
        return self.ends[-1]

    def local(self, name: str) -> str:
        """Return the local variable of a field, or of another thing with a unique name."""
        if name not in self.locals:
            wanted = f"field_{name}" if name.startswith(("parse_", "unpack_")) else name
            taken = {*self.locals.values(), *_RESERVED}
            while wanted in taken:
                wanted += "_"
            self.locals[name] = wanted
        return self.locals[name]

    def temporary(self, name: str) -> str:
        """Return the local variable of something that is no field."""
        key = f" {name}"
        if key not in self.locals:
            taken = {*self.locals.values(), *_RESERVED, *(fp.name for fp in self.layout.fields)}
            while name in taken:
                name += "_"
            self.locals[key] = name
        return self.locals[key]

    def local_path(self, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return the variable that holds the first of ``names``, and the names that remain."""
        fp = self.layout.field(names[0])
        if fp is None:
            raise Unsupported
        if isinstance(fp.field.type, BitsType) and len(names) == 2:
            self.bits_used.add((names[0], names[1]))
            return self.temporary(f"{names[0]}_{names[1]}"), ()
        return self.local(names[0]), names[1:]

    def expression(
        self, value: Value, bits: int | None = None, full: str | None = None, item: str = "item"
    ) -> str:
        """Return the expression for a value."""
        printer = LocalExpressions(self, bits=bits, full=full, item=item)
        text = printer.text(value)
        self.module.scope.runtime |= printer.helpers
        return text

    # ------------------------------------------------------------ runs of fixed size

    def append_run(self, name: str, code: str, endian: str) -> None:
        """Add a value of fixed size to the run that is unpacked at once."""
        sized = code not in ("b", "B") and not code.endswith("s")
        if self.run and sized and self.run_endian not in (None, endian):
            self.flush()
        if not self.run:
            self.run_endian = None
        if sized:
            self.run_endian = endian
        self.run.append((name, code))

    def flush(self) -> None:
        """Print the run, and the checks of its values."""
        if self.run:
            codes = "".join(code for _, code in self.run)
            names = ", ".join(name for name, _ in self.run)
            size = sum(_size_of_code(code) for _, code in self.run)
            if codes in ("B", "b"):
                self.emit(f"{names} = data[pos]", "pos += 1")
                if codes == "b":
                    self.emit(f"if {names} > 127:", f"    {names} -= 256")
            else:
                unpack = self.module.unpacker(codes, self.run_endian or "big")
                targets = f"({names},)" if len(self.run) == 1 else names
                self.emit(f"{targets} = {unpack}(data, pos)", f"pos += {size}")
            self.run = []
        checks, self.checks = self.checks, []
        self.emit(*checks)

    def later(self, *lines: str) -> None:
        """Print lines after the run."""
        if self.run:
            self.checks += lines
        else:
            self.emit(*lines)

    # ------------------------------------------------------------ operations

    def op(self, op: ReadOp) -> None:
        """Print an operation."""
        if isinstance(
            op, Number | Bytes | Padding | Elements | Struct | Choose | Tags | When | Absent
        ):
            self.mark_place(op.field, False)
        match op:
            case Number(fp, name):
                self.number(fp, name)
            case Bytes(fp, type_, after):
                self.bytes_field(fp, type_, after)
            case Padding(fp, multiple):
                self.flush()
                self.emit(f"stop = pos + (start - pos) % {multiple}")
                self.refuse_if(f"stop > {self.end} or any(data[pos:stop])")
                self.emit("pos = stop", f"{self.local(fp.name)} = None")
            case Require(fp, condition, why):
                if why not in ("enum", "reserved"):
                    self.require(fp, condition)
            case When():
                self.when(op)
            case Absent(fp):
                self.absent(fp)
            case Open(length, _, last):
                self.flush()
                self.open_window(length, last)
            case Close(length):
                self.flush()
                self.refuse_if(f"pos != {self.ends.pop()}")
                self.reaches_end.pop()
            case Mark() | Verify():
                pass  # see :meth:`mark_place`
            case Elements():
                self.elements(op)
            case Struct(fp, held):
                self.struct(fp, held)
            case Choose():
                self.choose(op)
            case Tags():
                self.tags(op)
        if isinstance(
            op, Number | Bytes | Padding | Elements | Struct | Choose | Tags | When | Absent
        ):
            self.mark_place(op.field, True)

    def require(self, fp: FieldPlan, condition: Value) -> None:
        """Print a requirement."""
        text = self.expression(nodes.negate(condition))
        self.later(f"if {text}:", "    raise Irregular")

    def when(self, op: When) -> None:
        """Print a field that is there under a condition. If it is not supported, the function gives up where it is there."""
        self.flush()
        condition = self.expression(op.condition)
        before = len(self.lines), dict(self.locals), self.depth, list(self.ends), self.indent
        known = self.module.snapshot()
        self.emit(f"if {condition}:")
        self.indent += 1
        try:
            for inner in op.then:
                self.op(inner)
            self.flush()
        except Unsupported:
            self.module.restore(known)
            del self.lines[before[0] :]
            self.run, self.checks = [], []
            _, self.locals, self.depth, self.ends, self.indent = before
            self.refuse_if(condition)
            self.absent(op.field)
            self.always_null.add(op.field.name)
            return
        self.indent -= 1
        self.emit("else:")
        self.indent += 1
        self.absent(op.field)
        self.indent -= 1

    def absent(self, fp: FieldPlan) -> None:
        """Print that a field is null."""
        self.later(f"{self.local(fp.name)} = None")
        for name, member in sorted(self.bits_used):
            if name == fp.name:
                self.later(f"{self.local_path((name, member))[0]} = None")

    # ------------------------------------------------------------ numbers

    def number(self, fp: FieldPlan, name: str) -> None:
        """Print the reading of a number."""
        target = self.local(fp.name)
        type_ = fp.field.type
        if isinstance(type_, BitsType):
            unsigned = f"u{name[1:]}"  # the sign is one of the bits
            self.scalar(target, SCALARS[unsigned], fp.field.endian)
            self.bits(fp, type_)
            return
        self.scalar(target, SCALARS[name], fp.field.endian)
        if isinstance(type_, ScalarType) and type_.enum is not None:
            self.later(f"{target} = {self.member(target, type_.enum, type_.only)}")

    def member(self, number: str, enum: str, only: tuple[str, ...] | None) -> str:
        """Return the expression for the member of an enum with a number."""
        if self.plan.model.enums[enum].keep_unknown:
            return f"{self.module.members(enum, None)}.get({number}, {number})"
        return f"{self.module.members(enum, only)}[{number}]"

    def scalar(self, target: str, scalar: Scalar, endian: str) -> None:
        """Print the reading of a scalar into a variable."""
        if scalar.kind == "varint":
            self.varint(target, scalar)
            return
        self.append_run(target, _CODES[scalar.name], endian)
        if scalar.kind == "bool":
            self.later(f"if {target} > 1:", "    raise Irregular", f"{target} = {target} == 1")
        elif scalar.kind == "uuid":
            self.module.standard.add("UUID")
            self.later(f"{target} = UUID(bytes={target})")
        elif scalar.bits == 24:
            signed = ", signed=True" if scalar.signed else ""
            self.later(f'{target} = int.from_bytes({target}, "{endian}"{signed})')

    def varint(self, target: str, scalar: Scalar) -> None:
        """Print the reading of a varint into a variable."""
        raw = "raw" if scalar.signed else target
        self.unsigned_varint(raw, scalar)
        if scalar.signed:
            self.emit(f"{target} = raw >> 1 ^ -(raw & 1)")

    def unsigned_varint(self, target: str, scalar: Scalar) -> None:
        """Print the reading of a varint into a variable, before zigzag. The run may include its first byte."""
        most, mask = (5, "0xFFFFFFFF") if scalar.bits == 32 else (10, "0xFFFFFFFFFFFFFFFF")
        read = self.module.use("read_varint")
        self.append_run(target, "B", "big")
        self.flush()
        self.emit(
            f"if {target} > 127:",
            "    byte = data[pos]",
            "    if 0 < byte < 128:",
            f"        {target} += (byte << 7) - 128",
            "        pos += 1",
            "    else:",
            f"        {target}, pos = {read}(data, pos - 1, {most}, {mask})",
        )

    def bits(self, fp: FieldPlan, type_: BitsType) -> None:
        """Print the construction of named bits from a number."""
        word = self.local(fp.name)
        reserved = sum(((1 << m.width) - 1) << m.low for m in type_.members if m.reserved)
        if reserved:
            self.later(f"if {word} & {reserved:#x}:", "    raise Irregular")
        items = []
        for m in type_.members:
            mask = (1 << m.width) - 1
            part = f"{word} >> {m.low} & {mask}" if m.low else f"{word} & {mask}"
            if m.reserved:
                text = "0"
            elif m.enum is not None:
                text = self.member(
                    f"({part})" if self.plan.model.enums[m.enum].keep_unknown else part,
                    m.enum,
                    m.only,
                )
            elif m.width == 1:
                text = f"{word} & {1 << m.low} != 0"
            else:
                text = part
            if (fp.name, m.name) in self.bits_used:
                local = self.local_path((fp.name, m.name))[0]
                self.later(f"{local} = {text}")
                text = local
            items.append(f"{string(m.name)}: {text}")
        parsed = self.module.use("Parsed")
        one = f"{word} = {parsed}({{{', '.join(items)}}})"
        if len(one) <= 88:
            self.later(one)
        else:
            self.later(
                f"{word} = {parsed}(",
                "    {",
                *(f"        {item}," for item in items),
                "    }",
                ")",
            )

    # ------------------------------------------------------------ bytes

    def bytes_field(self, fp: FieldPlan, type_: BytesType, after: int | None) -> None:
        """Print the reading of bytes or text."""
        target = self.local(fp.name)
        if type_.length == "rest":
            if after is None:
                raise Unsupported
            self.flush()
            stop = f"{self.end} - {after}" if after else self.end
            self.emit(f"stop = {stop}")
            self.refuse_if("stop < pos")
            self.slice(target, type_)
        else:
            self.data(target, type_, fp.field.endian)

    def data(self, target: str, type_: BytesType, endian: str) -> None:
        """Print the reading of bytes or text that say where they end."""
        if isinstance(type_.length, int):
            self.append_run(target, f"{type_.length}s", endian)
            decode = ".decode()" if type_.text else ""
            strip = '.rstrip(b"\\0")' if type_.padded else ""
            if decode or strip:
                self.later(f"{target} = {target}{strip}{decode}")
            return
        if type_.length == ZERO_TERMINATED:
            self.flush()
            decode = ".decode()" if type_.text else ""
            self.emit(
                f"stop = data.index(0, pos, {self.end})",
                f"{target} = data[pos:stop]{decode}",
                "pos = stop + 1",
            )
            return
        null, plus = type_.null, 1 if type_.length == COMPACT.name else 0
        if self.is_zigzag(type_.length) and null in (None, -1):
            self.unsigned_varint("raw", SCALARS[type_.length])
            if null is not None:
                self.emit("if raw == 1:", f"    {target} = None", "else:")
                self.indent += 1
            self.emit("stop = pos + (raw >> 1)")
            self.refuse_if(f"raw & 1 or stop > {self.end}")
            self.slice(target, type_)
            if null is not None:
                self.indent -= 1
            return
        self.length(type_.length, endian)
        self.flush()
        if null is not None:
            self.emit(f"if size == {null}:", f"    {target} = None", "else:")
            self.indent += 1
        self.emit(f"stop = pos + size{f' - {plus}' if plus else ''}")
        negative = plus or not self.is_unsigned(type_.length)
        self.refuse_if(f"{f'size < {plus} or ' if negative else ''}stop > {self.end}")
        self.slice(target, type_)
        if null is not None:
            self.indent -= 1

    def slice(self, target: str, type_: BytesType) -> None:
        """Print the bytes up to ``stop`` as a value."""
        self.emit(f"{target} = data[pos:stop]{'.decode()' if type_.text else ''}", "pos = stop")

    def is_zigzag(self, name: str) -> bool:
        """Return whether a type is a signed varint."""
        return name != COMPACT.name and SCALARS[name].kind == "varint" and SCALARS[name].signed

    def is_unsigned(self, name: str) -> bool:
        """Return whether the numbers of a type are not negative."""
        return name == COMPACT.name or not SCALARS[name].signed

    def length(self, name: str, endian: str, target: str = "size") -> None:
        """Print the reading of a length or a count, as it is written, into a variable."""
        self.scalar(target, COMPACT if name == COMPACT.name else SCALARS[name], endian)

    # ------------------------------------------------------------ arrays

    def elements(self, op: Elements) -> None:
        """Print the reading of an array."""
        fp, type_ = op.field, op.type
        if op.any_version or type_.nesting is not None or isinstance(op.element, ChoiceType):
            raise Unsupported
        if isinstance(op.element, LayoutPlan):
            one = self.modules.depth(op.element)
            if one is None:
                raise Unsupported
            self.depth = max(self.depth, 2 + one)
            if _min_size(op.element) == 0:
                raise Unsupported
        else:
            self.depth = max(self.depth, 2)
            if isinstance(op.element, BytesType) and op.element.length in (0, "rest"):
                raise Unsupported
        target = self.local(fp.name)
        endian = fp.field.endian
        limit = "session.limits.elements"
        number: str | None = None
        null_test: str | None = None
        plus = 0
        if type_.fixed is not None:
            self.flush()
            number = str(type_.fixed)
        elif type_.count is not None:
            number = "count"
            if self.is_zigzag(type_.count) and type_.null is None:
                self.unsigned_varint("count", SCALARS[type_.count])
                self.refuse_if("count & 1")
                self.emit("count >>= 1")
            else:
                self.length(type_.count, endian, "count")
                self.flush()
            plus = 1 if type_.count == COMPACT.name else 0
            if type_.null is not None:
                null_test = f"count == {type_.null}"
        elif type_.counted_by is not None:
            self.flush()
            number = self.local(type_.counted_by)
            if type_.null is not None:
                null_test = f"{number} == {type_.null}"
        else:
            self.flush()
        if type_.length is not None:
            if null_test is not None or number is not None:
                raise Unsupported
            self.length(type_.length, endian, "size")
            self.flush()
            if type_.null is not None:
                null_test = f"size == {type_.null}"
        if null_test is not None:
            self.emit(f"if {null_test}:", f"    {target} = None", "else:")
            self.indent += 1
        if plus:
            self.emit("count -= 1")
        check: str | None = None
        if type_.fixed is not None:
            check = f"{number} > {limit}" if type_.fixed > 63 else None
        elif number is not None and type_.compression is not None:
            check = f"{number} < {type_.at_least} or {number} > {limit}"
        elif number is not None:
            many = f"{number} > 63 and ({number} > {limit} or {number} > {self.end} - pos)"
            check = f"{number} < {type_.at_least} or ({many})"
        may_be_empty = type_.fixed is None and type_.at_least == 0 and type_.compression is None
        if check is not None and not may_be_empty:
            self.refuse_if(check)
            check = None
        if type_.length is not None:
            self.emit("within = pos + size")
            self.refuse_if(f"size < 0 or within > {self.end}")
            self.ends.append("within")
        if type_.compression is not None:
            self.compressed(op, target, number)
        else:
            self.loop(target, op, number, "data", "pos", self.end, check)
        if number is None and type_.at_least:
            self.refuse_if(f"len({target}) < {type_.at_least}")
        if number is None:
            self.refuse_if(f"len({target}) > {limit}")
        if type_.length is not None:
            self.refuse_if("pos != within")
            self.ends.pop()
        if null_test is not None:
            self.indent -= 1
        if type_.compression is not None and type_.length is None:
            self.refuse_if(f"pos != {self.end}")  # nothing follows a null or empty array

    def compressed(self, op: Elements, target: str, number: str | None) -> None:
        """Print the reading of a section that may be compressed."""
        fp = op.field
        if fp.codec is None:
            raise Unsupported
        known = self.module.constant(
            f"_{_short(self.layout)}_{fp.name}_compression",
            f"{self.module.layout(self.layout)}.by_name[{string(fp.name)}].codec.compressed",
        )
        if isinstance(fp.codec, nodes.BitValue | nodes.FieldValue):
            by = self.expression(fp.codec)
        else:
            raise Unsupported
        if number is not None:
            self.emit(f"if {number} == 0:", f"    {target} = {self.module.use('List')}()", "else:")
            self.indent += 1
        opened = self.module.use("open_section")
        self.emit(f"section, at, stop = {opened}({known}, {by}, data, pos, {self.end}, session)")
        self.loop(target, op, number, "section", "at", "stop")
        self.refuse_if("at != stop")
        self.emit(f"pos = {self.end}")
        if number is not None:
            self.indent -= 1

    def loop(
        self,
        target: str,
        op: Elements,
        number: str | None,
        data: str,
        pos: str,
        end: str,
        check: str | None = None,
    ) -> None:
        """Print the loop over the elements of an array in ``data`` from ``pos`` to ``end``. If the array is not empty, the
        function gives up under the condition ``check``.
        """
        element = op.element
        list_ = self.module.use("List")
        if (
            isinstance(element, ScalarType)
            and element.enum is None
            and number is not None
            and data == "data"
            and SCALARS[element.name].kind in ("integer", "float")
            and SCALARS[element.name].bits != 24
        ):
            scalar = SCALARS[element.name]
            if check is not None:
                self.refuse_if(check)
            self.module.standard.add("unpack_from")
            order = "<" if op.field.field.endian == "little" else ">"
            self.emit(
                f'{target} = {list_}(unpack_from(f"{order}{{{number}}}{_CODES[scalar.name]}", data, pos))',
                f"pos += {number} * {scalar.width}" if scalar.width > 1 else f"pos += {number}",
            )
            return
        item = self.temporary(f"{op.field.name}_item")
        self.emit(f"{target} = {list_}()")
        if check is not None:
            self.emit(f"if {number}:")
            self.indent += 1
            self.refuse_if(check)
        if op.field.until is not None:
            self.emit("while True:")
        elif number is None:
            self.emit(f"while {pos} < {end}:")
        else:
            self.emit(f"for _ in range({number}):")
        self.indent += 1
        self.ends.append(end)
        if isinstance(element, LayoutPlan):
            function = self.module.function(element)
            self.emit(f"{item}, {pos} = {function}({data}, {pos}, {end}, session)")
        elif data != "data":
            raise Unsupported
        elif isinstance(element, ScalarType):
            self.scalar(item, SCALARS[element.name], op.field.field.endian)
            self.flush()
            if element.enum is not None:
                self.emit(f"{item} = {self.member(item, element.enum, element.only)}")
        elif isinstance(element, BytesType):
            self.data(item, element, op.field.field.endian)
            self.flush()
        self.ends.pop()
        self.emit(f"{target}.append({item})")
        if op.field.until is not None:
            self.emit(f"if {self.expression(op.field.until, item=item)}:", "    break")
        self.indent -= 1
        if check is not None:
            self.indent -= 1

    # ------------------------------------------------------------ layouts in layouts

    def struct(self, fp: FieldPlan, held: LayoutPlan) -> None:
        """Print the reading of a layout in the place of a field."""
        type_ = fp.field.type
        if not isinstance(type_, StructType) or len(self.plan.held(type_.layout, self.layout)) > 1:
            raise Unsupported
        function = self.module.function(held)
        self.depth = max(self.depth, 1 + (self.modules.depth(held) or 0))
        target = self.local(fp.name)
        if type_.present is None or type_.null is None:
            self.flush()
            self.emit(f"{target}, pos = {function}(data, pos, {self.end}, session)")
            return
        self.scalar("size", SCALARS[type_.present], fp.field.endian)
        self.flush()
        self.emit(
            f"if size == {type_.null}:",
            f"    {target} = None",
            "elif size == 1:",
            f"    {target}, pos = {function}(data, pos, {self.end}, session)",
            "else:",
            "    raise Irregular",
        )

    def choose(self, op: Choose) -> None:
        """Print the reading of one of several layouts."""
        fp, type_ = op.field, op.type
        if not isinstance(type_, ChoiceType) or fp.given is None or any(op.steps):
            raise Unsupported
        cases: dict[str, str] = {}
        for number, held in op.cases:
            depth = self.modules.depth(held)
            if fp.held_version is not None and held.version is None:
                continue
            key = str(number) if fp.held_version is None else f"({number}, {held.version})"
            if key in cases or number is None:
                raise Unsupported
            if depth is not None:
                cases[key] = self.module.function(held)
                self.depth = max(self.depth, 1 + depth)
        if not cases:
            raise Unsupported
        known = self.module.table(f"_{_short(self.layout)}_{fp.name}_parsers", cases)
        key = self.expression(fp.given)
        if fp.held_version is not None:
            key = f"{key}, {self.expression(fp.held_version)}"
        target = self.local(fp.name)
        end = self.end
        if type_.length is not None:
            self.length(type_.length, fp.field.endian)
            self.flush()
            if type_.null is not None:
                self.emit(f"if size == {type_.null}:", f"    {target} = None", "else:")
                self.indent += 1
            end = self.temporary("within")
            self.emit(f"{end} = pos + size")
            self.refuse_if(f"size < 0 or {end} > {self.end}")
        self.flush()
        self.emit(f"{target}, pos = {known}[{key}](data, pos, {end}, session)")
        if type_.length is not None:
            self.refuse_if(f"pos != {end}")
            if type_.null is not None:
                self.indent -= 1

    # ------------------------------------------------------------ tagged fields

    def tags(self, op: Tags) -> None:
        """Print the reading of a section of tagged fields."""
        section = self.local(op.field.name)
        for fp, _ in op.known:
            self.default(fp)
        other = f", {op.other}" if op.other else ""
        list_ = self.module.use("List")
        count = self.temporary("tag_count")
        self.append_run(count, "B", "big")
        self.flush()
        if not op.known:
            read = self.module.use("read_unknown_tags")
            self.emit(
                f"if {count}:",
                f"    {section}, pos = {read}(data, pos - 1, {self.end}{other})",
                "else:",
                f"    {section} = {list_}()",
            )
            return
        read = self.module.use("read_tags")
        within, begin = self.temporary("within_tag"), self.temporary("begin_tag")
        self.emit(f"{section} = {list_}()", f"if {count}:")
        self.indent += 1
        self.emit(
            f"tags, pos = {read}(data, pos - 1, {self.end}{other})",
            f"for tag, {begin}, {within} in tags:",
        )
        self.indent += 1
        word = "if"
        for fp, ops in op.known:
            self.emit(f"{word} tag == {fp.field.tag}:")
            self.indent += 1
            self.emit(f"pos = {begin}")
            self.ends.append(within)
            for inner in ops:
                if not isinstance(inner, Require):  # readers do not check them in tagged fields
                    self.op(inner)
            self.flush()
            self.ends.pop()
            default = self.module.constant(
                f"_{_short(self.layout)}_{fp.name}_default_bytes",
                f"{self.module.use('default_of')}({self.field_of(fp)})",
            )
            self.refuse_if(f"pos != {within} or data[{begin}:pos] == {default}")
            self.indent -= 1
            word = "elif"
        unknown = f'{{"tag": tag, "data": data[{begin}:{within}]}}'
        self.emit(
            "else:",
            f"    {section}.append({self.module.use('TaggedField')}({unknown}))",
            f"    pos = {within}",
        )
        self.indent -= 2

    def field_of(self, fp: FieldPlan) -> str:
        """Return the expression for a field of the codec."""
        return f"{self.module.layout(self.layout)}.by_name[{string(fp.name)}]"

    def default(self, fp: FieldPlan) -> None:
        """Print the default of a tagged field."""
        target, type_ = self.local(fp.name), fp.field.type
        plain = fp.default is None and not fp.field.filled
        if isinstance(type_, ArrayType) and plain:
            self.emit(f"{target} = {self.module.use('List')}()")
            return
        call = f"{self.module.use('default_value')}({self.field_of(fp)})"
        if isinstance(type_, ScalarType | BytesType):
            self.emit(
                f"{target} = {self.module.constant(f'_{_short(self.layout)}_{fp.name}_default', call)}"
            )
        elif isinstance(type_, StructType) and type_.null is not None and plain:
            self.emit(f"{target} = None")
        else:
            self.emit(f"{target} = {call}")

    # ------------------------------------------------------------ windows and checksums

    def open_window(self, length: FieldPlan, last: str | None) -> None:
        """Print the end of the bytes that a length measures, and the checksums over them."""
        size, own = self.local(length.name), length.own_bytes
        end = self.temporary(f"{length.name}_end")
        self.emit(f"{end} = pos + {size}{f' - {own}' if own else ''}")
        self.refuse_if(f"{size} < {own} or {end} > {self.end}")
        self.ends.append(end)
        self.reaches_end.append(last is None)

    def checksum_places(self) -> dict[str, list[tuple[str, str]]]:
        """Return the checksums that are verified, with the names of the first and last fields that they cover."""
        out: dict[str, list[tuple[str, str]]] = {}
        last = self.layout.in_order[-1].name if self.layout.in_order else ""
        for fp in self.layout.fields:
            if not fp.covers:
                continue
            if any(part.zero for part in fp.covers) or fp.field.zero:
                raise Unsupported
            out[fp.name] = [(part.first, part.last or last) for part in fp.covers]
        return out

    def mark_place(self, fp: FieldPlan, after: bool) -> None:
        """Print that the position before or after a field is noted, if a checksum covers bytes from or to there."""
        for name, parts in self.covered.items():
            for i, (first, last) in enumerate(parts):
                if fp.name == (last if after else first):
                    self.flush()
                    if self.is_verified_ahead(name, after):
                        self.verify_ranges(name, [f"data[pos:{self.end}]"])
                        self.verified.add(name)
                        continue
                    if name in self.verified:
                        continue
                    place = self.temporary(f"{name}_{'to' if after else 'from'}_{i}")
                    self.emit(f"{place} = pos")

    def is_verified_ahead(self, name: str, after: bool) -> bool:
        """Return whether a checksum before a field covers all bytes from the field to the end of an open window."""
        parts = self.covered[name]
        fields = [fp.name for fp in self.layout.in_order]
        to_end = len(parts) == 1 and parts[0][1] == fields[-1]
        known = to_end and bool(self.reaches_end) and self.reaches_end[-1]
        return known and not after and fields.index(name) < fields.index(parts[0][0])

    def verify_ranges(self, name: str, ranges: list[str]) -> None:
        """Print the comparison of a checksum with the bytes of some ranges."""
        compute = self.module.constant(
            f"_{_short(self.layout)}_{name}",
            f"{self.module.use('checksum_of')}({self.module.layout(self.layout)}.by_name[{string(name)}])",
        )
        stored = self.local(name)
        covered = ranges[0] if len(ranges) == 1 else f'b"".join([{", ".join(ranges)}])'
        fp = self.layout.field(name)
        there = f"{stored} is not None and " if fp is not None and fp.when is not None else ""
        self.refuse_if(f"{there}{compute}({covered}) != {stored}")

    def verify(self, fp: FieldPlan, parts: list[tuple[str, str]]) -> None:
        """Print the comparison of a checksum with the bytes between places that were noted."""
        ranges = [
            f"data[{self.temporary(f'{fp.name}_from_{i}')}:{self.temporary(f'{fp.name}_to_{i}')}]"
            for i in range(len(parts))
        ]
        self.verify_ranges(fp.name, ranges)

    # ------------------------------------------------------------ rules

    def is_number_of_all(self, array: FieldValue, inner: FieldValue) -> bool:
        """Return whether every element of an array is of one layout, which always has the number ``inner``."""
        fp = self.layout.field(array.field.name)
        type_ = None if fp is None else fp.field.type
        if inner.holders or not isinstance(type_, ArrayType) or fp is None:
            return False
        held = self.plan.held_by(type_, self.layout)
        found = held[0].field(inner.field.name) if len(held) == 1 else None
        if found is None or found.when is not None or found.field.tag is not None:
            return False
        return isinstance(found.field.type, ScalarType) and SCALARS[found.field.type.name].kind in (
            "integer",
            "varint",
        )

    def end_text(self, end: str, array: str, names: tuple[str, ...]) -> str:
        """Return the expression for the first, last, largest or smallest number of the elements of an array."""
        items = self.local(array)
        if end in ("first", "last"):
            return f"{items}[{0 if end == 'first' else -1}][{string(names[0])}]"
        return self.maxima.setdefault(
            (end, array, names[0]), self.temporary(f"{end}_{array}_{names[0]}")
        )

    def rules(self) -> None:
        """Print the rules of the layout."""
        around: str | None = None
        position = 0
        for rule in self.layout.rules:
            array = rule.elements_of
            if array in self.always_null:
                continue
            if array != around:
                if around is not None:
                    self.insert_maxima(position)
                    self.indent -= 1
                around = array
                if array is not None:
                    self.emit(f"if {self.local(array)}:")
                    self.indent += 1
                    position = len(self.lines)
                    self.maxima = {}
            self.emit(f"# rule {rule.name}")
            if rule.condition is not None:
                text = self.expression(nodes.Negation(rule.condition), bits=64, full=array)
                self.refuse_if(text)
            elif rule.ascending is not None and rule.array is not None:
                fp = rule.array
                value = FieldValue(fp.field, rule.ascending.type)
                if not self.is_number_of_all(value, rule.ascending):
                    position_of = next(i for i, r in enumerate(self.layout.rules) if r is rule)
                    rules = f"{self.module.layout(self.layout)}.related.rules"
                    items = f"{{{string(fp.name)}: {self.local(fp.name)}}}"
                    self.refuse_if(f"{rules}[{position_of}].find_breach({items}) is not None")
                    continue
                name = rule.ascending.field.name
                self.emit(f"numbers = [item[{string(name)}] for item in {self.local(fp.name)}]")
                self.refuse_if("sorted(set(numbers)) != numbers")
        if around is not None:
            self.insert_maxima(position)
            self.indent -= 1

    def insert_maxima(self, position: int) -> None:
        """Insert the lines that compute the largest and smallest numbers that the rules use."""
        lines = [
            f"{local} = {end}([item[{string(name)}] for item in {self.local(array)}])"
            for (end, array, name), local in self.maxima.items()
        ]
        self.lines[position:position] = [f"{'    ' * self.indent}{line}" for line in lines]
        self.maxima = {}


def _short(layout: LayoutPlan) -> str:
    """Return the name of a layout for constants."""
    return symbol(layout.name, layout.version).lower()


def _is_tags(fp: FieldPlan) -> bool:
    """Return whether a field is a section of tagged fields."""
    return type(fp.field.type).__name__ == "TagsType"


def _size_of_code(code: str) -> int:
    """Return the number of bytes of a code of :mod:`struct`."""
    if code.endswith("s"):
        return int(code[:-1])
    return {"b": 1, "h": 2, "i": 4, "q": 8, "f": 4, "d": 8}[code.lower()]


def _min_size(layout: LayoutPlan) -> int:
    """Return a number of bytes that every value of a layout has at least: 0 or 1."""
    for fp in layout.in_order:
        if fp.when is not None:
            continue
        type_ = fp.field.type
        if isinstance(type_, ScalarType | BitsType) or _is_tags(fp):
            return 1
        if isinstance(type_, BytesType) and type_.length not in (0, "rest"):
            return 1
        if isinstance(type_, ArrayType) and type_.count is not None:
            return 1
    return 0


def _depends_on_others(value: DerivedValue) -> bool:
    """Return whether a value that is derived for an element depends on other elements of the array."""
    array = value.derived.array
    return any(end.array.field.name == array for end in ends_read(value.value))


__all__ = ["FastModules"]
