"""Prints the simple parts of fast parsers: runs of fixed-size values, varints, bits, bytes and text."""

from __future__ import annotations

import builtins
import keyword
from dataclasses import replace

from codecgen.plan import FieldPlan, LayoutPlan, Plan, nodes
from codecgen.plan.nodes import FieldValue, Value
from codecgen.schema.scalars import COMPACT, SCALARS, Scalar
from codecgen.schema.types import ZERO_TERMINATED, ArrayType, BitsType, BytesType, ScalarType
from codecgen.targets.construct.expressions import PythonExpressions
from codecgen.targets.construct.fast_module import FastModule, Unsupported
from codecgen.targets.python_source import Code, string

_WIDTH_OF_CODE = {"b": 1, "h": 2, "i": 4, "q": 8, "f": 4, "d": 8}
_CODE_OF_WIDTH = {width: code for code, width in _WIDTH_OF_CODE.items() if code not in "fd"}
_CODE_OF_KIND = {("float", 4): "f", ("float", 8): "d", ("bool", 1): "B"}


def struct_code(scalar: Scalar) -> str:
    """Return the code of :mod:`struct` for a scalar of fixed size; ``6s``, with the number of bytes, for a scalar that
    :mod:`struct` does not have.
    """
    if scalar.kind == "integer" and scalar.width in _CODE_OF_WIDTH:
        code = _CODE_OF_WIDTH[scalar.width]
        return code if scalar.signed else code.upper()
    return _CODE_OF_KIND.get((scalar.kind, scalar.width), f"{scalar.width}s")


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


class LocalExpressions(PythonExpressions):
    """Prints values of schema expressions as Python expressions on the local variables of a fast
    parser.
    """

    def __init__(
        self, function: FunctionPrinter, *, bits: int | None, full: str | None, item: str
    ) -> None:
        super().__init__(lambda enum: enum, bits=bits)
        self.item = item
        self.function_of = function
        self.full = full
        """The array that is known to have elements."""

    def text(self, value: Value) -> str:
        """Return the Python expression for a value from local variables. Enum values become
        numbers. The first, last, largest or smallest number of an array that has elements is read
        directly. Raise TypeError for nodes without an expression, Unsupported for a field that the
        layout lacks.
        """
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
        """Return the expression for a value as text or Code. If ``bits`` is set, a sum that cannot
        be null is wrapped by inline arithmetic, a nullable sum by a call of ``wrap``; any other
        value becomes its expression. Raise TypeError or Unsupported if ``text`` does not support a
        part of the value.
        """
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
        """Return whether ``array`` is the layout's own array ``full``, which has elements, and
        ``inner`` is a field that is an integer in every element and never absent.
        """
        if array.owner != "own" or array.holders or array.field.name != self.full:
            return False
        return isinstance(inner, FieldValue) and self.function_of.is_number_of_all(array, inner)

    def path_text(self, owner: str, names: tuple[str, ...], may_end: bool) -> str:
        """Return the expression for a field: the variable of the element or of the layout's field,
        with the other names as subscripts. With ``may_end`` and other names, return a call of
        ``value_at``, which gives None if an outer field is None. Raise Unsupported if the layout
        lacks the field.
        """
        if owner == "item":
            start, rest = self.item, names
        else:
            start, rest = self.function_of.local_path(names)
        if may_end and rest:
            return f"{self.use_helper('value_at')}({', '.join((start, *map(string, rest)))})"
        return start + "".join(f"[{string(name)}]" for name in rest)


class FunctionPrinter:
    """Prints the parts of a fast parser (a Python function, as source lines) that read numbers,
    bytes and text. Values of fixed size wait in a "run" until one ``unpack_from`` reads them, then
    their checks follow. The function raises Irregular, or any other exception, for bytes that it
    leaves to the field-by-field parser.

    Attributes:
        lines: The lines so far.
        run: Variables and codes of values of fixed size that are unpacked together.
        checks: Lines that follow the run.
        ends: Variables that hold the ends of the open windows, the innermost last.
        bits_used: Names of words and of their bits that expressions use.
    """

    def __init__(self, plan: Plan, module: FastModule, layout: LayoutPlan) -> None:
        self.plan = plan
        self.module = module
        self.layout = layout
        self.bits_used: set[tuple[str, str]] = set()
        self.begin()

    def begin(self) -> None:
        """Discard the printed lines, variables and pending values, so that the function is printed
        anew. ``bits_used`` stays.
        """
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
        """Return the local variable of a field, the same for each call. It is the field's name,
        after ``field_`` if it begins with ``parse_`` or ``unpack_``, with underscores appended
        until it is unique.
        """
        if name not in self.locals:
            wanted = f"field_{name}" if name.startswith(("parse_", "unpack_")) else name
            taken = {*self.locals.values(), *_RESERVED}
            while wanted in taken:
                wanted += "_"
            self.locals[name] = wanted
        return self.locals[name]

    def temporary(self, name: str) -> str:
        """Return the local variable of a value that is no field, the same for each call: ``name``,
        with underscores appended until no variable, field or reserved word has it.
        """
        key = f" {name}"
        if key not in self.locals:
            taken = {*self.locals.values(), *_RESERVED, *(fp.name for fp in self.layout.values)}
            while name in taken:
                name += "_"
            self.locals[key] = name
        return self.locals[key]

    def local_path(self, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return the variable that holds the field ``names[0]``, and the names after it. For a path
        of two names to a bit, return the bit's own variable and ``()``, and note the bit in
        ``bits_used``. Raise Unsupported if the layout lacks the field.
        """
        fp = self.layout.value(names[0])
        if fp is None:
            raise Unsupported
        if isinstance(fp.field.type, BitsType) and len(names) == 2:
            self.bits_used.add((names[0], names[1]))
            return self.temporary(f"{names[0]}_{names[1]}"), ()
        return self.local(names[0]), names[1:]

    def expression(
        self, value: Value, bits: int | None = None, full: str | None = None, item: str = "item"
    ) -> str:
        """Return the Python expression for a value, and import the runtime functions that it calls.
        Sums wrap in ``bits`` bits (None: not at all). ``full`` names an array that is known to have
        elements; ``item`` is the variable of an element. Raise TypeError or Unsupported if a part
        is not supported.
        """
        printer = LocalExpressions(self, bits=bits, full=full, item=item)
        text = printer.text(value)
        self.module.scope.runtime |= printer.helpers
        return text

    # ------------------------------------------------------------ runs of fixed size

    def append_run(self, name: str, code: str, endian: str) -> None:
        """Add a variable and its :mod:`struct` code to the pending run, whose values are unpacked
        at once. First print the pending run if a number in it has another byte order; codes of one
        byte and of bytes have none.
        """
        sized = code not in ("b", "B") and not code.endswith("s")
        if self.run and sized and self.run_endian not in (None, endian):
            self.flush()
        if not self.run:
            self.run_endian = None
        if sized:
            self.run_endian = endian
        self.run.append((name, code))

    def flush(self) -> None:
        """Print the unpacking of the pending run, if it has values, then the pending checks, and
        clear both. One byte is read by index, without :mod:`struct`.
        """
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
        """Add lines that are printed after the pending run of values, together with its checks. If
        no run is pending, print them at once.
        """
        if self.run:
            self.checks += lines
        else:
            self.emit(*lines)

    # ------------------------------------------------------------ numbers

    def number(self, fp: FieldPlan, name: str) -> None:
        """Print the reading of a number of the type ``name`` into the variable of its field. A
        number with an enum becomes its member (an unknown one raises KeyError, or stays a number if
        the enum keeps it), a word of bits a Parsed of named bits.
        """
        target = self.local(fp.name)
        type_ = fp.field.type
        if isinstance(type_, BitsType):
            # the sign is one of the bits
            self.scalar(target, replace(SCALARS[name], signed=False), fp.field.endian)
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
        """Print the reading of a scalar into the variable ``target``. A varint is read at once;
        other scalars join the pending run. The function raises Irregular for a bool that is neither
        0 nor 1. ``endian`` does not affect varints.
        """
        if scalar.kind == "varint":
            self.varint(target, scalar)
            return
        code = struct_code(scalar)
        self.append_run(target, code, endian)
        if scalar.kind == "bool":
            self.later(f"if {target} > 1:", "    raise Irregular", f"{target} = {target} == 1")
        elif scalar.kind == "uuid":
            self.module.standard.add("UUID")
            self.later(f"{target} = UUID(bytes={target})")
        elif code.endswith("s"):
            signed = ", signed=True" if scalar.signed else ""
            self.later(f'{target} = int.from_bytes({target}, "{endian}"{signed})')

    def varint(self, target: str, scalar: Scalar) -> None:
        """Print the reading of a varint into the variable ``target``, with zigzag decoding if the
        type is signed.
        """
        raw = "raw" if scalar.signed else target
        self.unsigned_varint(raw, scalar)
        if scalar.signed:
            self.emit(f"{target} = raw >> 1 ^ -(raw & 1)")

    def unsigned_varint(self, target: str, scalar: Scalar) -> None:
        """Print the reading of a varint of at most ``scalar.max_size`` bytes into the variable
        ``target``, without zigzag decoding. Its first byte joins the pending run, which is printed.
        """
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
            f"        {target}, pos = {read}(data, pos - 1, {scalar.max_size}, 0x{(1 << scalar.bits) - 1:X})",
        )

    def bits(self, fp: FieldPlan, type_: BitsType) -> None:
        """Print the replacement of a field's number by a Parsed of its named bits: bools for single
        bits, enum members, otherwise integers. The function raises Irregular if a reserved bit is
        set. Bits that expressions use also get variables.
        """
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
        """Print the reading of bytes or text into the variable of its field. Bytes without a length
        end ``after`` bytes before the end of the window; raise Unsupported if ``after`` is None,
        that is, if the following fields vary in size.
        """
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
        """Print the reading of bytes or text into the variable ``target``: of fixed size (trailing
        zeros are removed if it is padded), up to a zero byte, or after a length, whose null number
        gives None. The function raises Irregular if a length is negative or exceeds the window,
        ValueError if there is no zero byte or text is not UTF-8.
        """
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

    def is_number_of_all(self, array: FieldValue, inner: FieldValue) -> bool:
        """Return whether the array can hold only one layout in one version (also as the only case
        of a choice), and ``inner`` is an integer or varint directly in it, untagged and without a
        condition. Return False if several layouts or versions are possible, or if the array or the
        field is missing.
        """
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
        """Return the expression for the number ``names[0]`` of the first or last element of
        ``array`` (``end``), which must have elements. For ``max`` and ``min``, return a variable
        and note in ``maxima`` that it is to be assigned before.
        """
        items = self.local(array)
        if end in ("first", "last"):
            return f"{items}[{0 if end == 'first' else -1}][{string(names[0])}]"
        return self.maxima.setdefault(
            (end, array, names[0]), self.temporary(f"{end}_{array}_{names[0]}")
        )


def _size_of_code(code: str) -> int:
    """Return the number of bytes of a code of :mod:`struct`."""
    if code.endswith("s"):
        return int(code[:-1])
    return _WIDTH_OF_CODE[code.lower()]
