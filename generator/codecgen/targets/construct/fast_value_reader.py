"""Prints how fast parsers read single values: numbers, bits, bytes and text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from codecgen.plan import FieldPlan, Plan
from codecgen.schema.scalars import COMPACT, SCALARS, Scalar
from codecgen.schema.types import FROM_OUTSIDE, ZERO_TERMINATED, BitsType, BytesType, ScalarType
from codecgen.targets.construct.fast_function import FunctionSource
from codecgen.targets.construct.fast_module import FastModule, Unsupported
from codecgen.targets.construct.fast_struct_runs import UnpackedRun, struct_code
from codecgen.targets.python_source import string


@dataclass
class Windows:
    """The open windows of a fast parser: field ranges with a length, and arrays.

    Attributes:
        ends: Variables that hold the ends of the windows, the innermost last; ``end`` is the end of
            the data that the function is given.
        reaches_end: For each window of a field range, whether it reaches the end of the layout.
    """

    ends: list[str] = field(default_factory=lambda: ["end"])
    reaches_end: list[bool] = field(default_factory=list)

    @property
    def end(self) -> str:
        """The variable that holds the end of the innermost window."""
        return self.ends[-1]


class ValueReader:
    """Prints the statements of a fast parser that read numbers, bytes and text into variables.
    Values of fixed size wait in ``run``. The function raises Irregular, or any other exception, for
    bytes that it leaves to the field-by-field parser.
    """

    def __init__(
        self,
        plan: Plan,
        module: FastModule,
        source: FunctionSource,
        run: UnpackedRun,
        windows: Windows,
    ) -> None:
        self.plan = plan
        self.module = module
        self.source = source
        self.run = run
        self.windows = windows

    # ------------------------------------------------------------ numbers

    def number(self, fp: FieldPlan, name: str) -> None:
        """Print the reading of a number of the type ``name``, any scalar type but ``compact``, into
        the variable of its field. A number with an enum becomes its member (an unknown one raises
        KeyError, or stays a number if the enum keeps it), a word of bits a Parsed of named bits.
        The function raises Irregular for a negative zigzag varint that measures a range.
        """
        target = self.source.local(fp.name)
        type_ = fp.field.type
        if isinstance(type_, BitsType):
            # the sign is one of the bits
            word = self.source.temporary(f"{fp.name}_word")
            self.scalar(word, replace(SCALARS[name], signed=False), fp.field.endian)
            self.bits(fp, type_, word)
            return
        if fp.measures is not None and is_zigzag(name):
            self.unsigned_varint(target, SCALARS[name])
            self.source.emit_raise_if(f"{target} & 1")  # a negative length
            self.source.emit(f"{target} >>= 1")
            return
        self.scalar(target, SCALARS[name], fp.field.endian)
        if isinstance(type_, ScalarType) and type_.enum is not None:
            self.run.emit_after(f"{target} = {self.member(target, type_.enum, type_.only)}")

    def member(self, number: str, enum: str, only: tuple[str, ...] | None) -> str:
        """Return the expression for the member of an enum with a number."""
        if self.plan.model.enums[enum].keep_unknown:
            return f"{self.module.members(enum, None)}.get({number}, {number})"
        return f"{self.module.members(enum, only)}[{number}]"

    def scalar(self, target: str, scalar: Scalar, endian: str) -> None:
        """Print the reading of a scalar of any type into the variable ``target``. A varint or VLQ
        is read at once; other scalars join the pending run. The function raises Irregular for a
        bool that is neither 0 nor 1. ``endian`` does not affect varints and VLQs.
        """
        if scalar.is_variable:
            self.varint(target, scalar)
            return
        code = struct_code(scalar)
        self.run.append(target, code, endian)
        if scalar.kind == "bool":
            self.run.emit_after(
                f"if {target} > 1:", "    raise Irregular", f"{target} = {target} == 1"
            )
        elif scalar.kind == "uuid":
            self.module.standard.add("UUID")
            self.run.emit_after(f"{target} = UUID(bytes={target})")
        elif code.endswith("s"):
            signed = ", signed=True" if scalar.signed else ""
            self.run.emit_after(f'{target} = int.from_bytes({target}, "{endian}"{signed})')

    def varint(self, target: str, scalar: Scalar) -> None:
        """Print the reading of a varint or VLQ into the variable ``target``, with zigzag decoding
        if the type is signed (no VLQ is). The pending run is printed before. The function raises
        Irregular for a number that is too long, too large or not in its shortest form.
        """
        raw = "raw" if scalar.signed else target
        self.unsigned_varint(raw, scalar)
        if scalar.signed:
            self.source.emit(f"{target} = raw >> 1", "if raw & 1:", f"    {target} = ~{target}")

    def unsigned_varint(self, target: str, scalar: Scalar) -> None:
        """Print the reading of a varint or VLQ of at most ``scalar.max_size`` bytes into the
        variable ``target``, without zigzag decoding. Its first byte joins the pending run, which is
        printed. The function raises Irregular for a number that is too long, too large or not in
        its shortest form, IndexError or struct.error if the data end.
        """
        self.run.append(target, "B", "big")
        self.run.flush()
        mask = f"0x{(1 << scalar.bits) - 1:X}"
        if scalar.kind != "varint":
            read, step = self.module.use("read_vlq"), int(scalar.kind == "bijective_vlq")
            self.source.emit(
                f"if {target} > 127:",
                f"    {target}, pos = {read}(data, pos - 1, {scalar.max_size}, {mask}, {step})",
            )
            return
        read, second = self.module.use("read_varint"), self.module.use("SECOND_BYTES")
        self.source.emit(
            f"if {target} > 127:",
            f"    more = {second}[data[pos]]",
            "    if more is None:",
            f"        {target}, pos = {read}(data, pos - 1, {scalar.max_size}, {mask})",
            "    else:",
            f"        {target} += more",
            "        pos += 1",
        )

    def bits(self, fp: FieldPlan, type_: BitsType, word: str) -> None:
        """Print, after the pending run, the assignment of the named bits of ``word``, an int, to
        the variable of the field, as a Parsed: bools for single bits, enum members, otherwise
        integers (0 for reserved bits). The function raises Irregular if a reserved bit is set,
        KeyError for a number that an enum lacks and does not keep. Bits that expressions use also
        get variables.
        """
        target = self.source.local(fp.name)
        reserved = sum(((1 << m.width) - 1) << m.low for m in type_.members if m.reserved)
        if reserved:
            self.run.emit_after(f"if {word} & {reserved:#x}:", "    raise Irregular")
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
            if (fp.name, m.name) in self.source.bits_used:
                local = self.source.bit(fp.name, m.name)
                self.run.emit_after(f"{local} = {text}")
                text = local
            items.append(f"{target}[{string(m.name)}] = {text}")
        self.run.emit_after(f"{target} = {self.module.use('Parsed')}()", *items)

    # ------------------------------------------------------------ bytes

    def bytes_field(self, fp: FieldPlan, type_: BytesType, after: int | None) -> None:
        """Print the reading of bytes or text into the variable of its field. Bytes without a length
        of their own end ``after`` bytes before the end of the window; the function raises Irregular
        if that is passed already. For these, raise Unsupported if ``after`` is None, that is, if
        the following fields vary in size. Raise Unsupported also if a value from outside gives the
        length.
        """
        target = self.source.local(fp.name)
        if type_.length == FROM_OUTSIDE:
            raise Unsupported
        if type_.length == "rest":
            if after is None:
                raise Unsupported
            self.run.flush()
            stop = f"{self.windows.end} - {after}" if after else self.windows.end
            self.source.emit(f"stop = {stop}")
            self.source.emit_raise_if("stop < pos")
            self.slice(target, type_)
        else:
            self.data(target, type_, fp.field.endian)

    def data(self, target: str, type_: BytesType, endian: str) -> None:
        """Print the reading of bytes or text into the variable ``target``: of fixed size in the
        pending run (trailing zeros are removed if it is padded), up to a zero byte, or after a
        length, whose null number gives None. The function raises Irregular if a length is negative
        or exceeds the window, ValueError if there is no zero byte or text is not UTF-8. Bytes that
        take the rest are printed by :meth:`bytes_field`, and raise KeyError here.
        """
        if isinstance(type_.length, int):
            self.run.append(target, f"{type_.length}s", endian)
            decode = ".decode()" if type_.text else ""
            strip = '.rstrip(b"\\0")' if type_.padded else ""
            if decode or strip:
                self.run.emit_after(f"{target} = {target}{strip}{decode}")
            return
        if type_.length == ZERO_TERMINATED:
            self.run.flush()
            decode = ".decode()" if type_.text else ""
            self.source.emit(
                f"stop = data.index(0, pos, {self.windows.end})",
                f"{target} = data[pos:stop]{decode}",
                "pos = stop + 1",
            )
            return
        null, plus = type_.null, 1 if type_.length == COMPACT.name else 0
        if is_zigzag(type_.length) and null in (None, -1):
            self.unsigned_varint("raw", SCALARS[type_.length])
            if null is None:
                self.source.emit_raise_if("raw & 1")
            else:
                self.source.emit("if raw & 1:", "    if raw != 1:", "        raise Irregular")
                self.source.emit(f"    {target} = None", "else:")
                self.source.indent += 1
            self.source.emit("stop = pos + (raw >> 1)")
            self.source.emit_raise_if(f"stop > {self.windows.end}")
            self.slice(target, type_)
            if null is not None:
                self.source.indent -= 1
            return
        self.length(type_.length, endian)
        self.run.flush()
        if null is not None:
            self.source.emit(f"if size == {null}:", f"    {target} = None", "else:")
            self.source.indent += 1
        self.source.emit(f"stop = pos + size{f' - {plus}' if plus else ''}")
        negative = (plus and null != 0) or not _is_unsigned(type_.length)
        self.source.emit_raise_if(
            f"{f'size < {plus} or ' if negative else ''}stop > {self.windows.end}"
        )
        self.slice(target, type_)
        if null is not None:
            self.source.indent -= 1

    def slice(self, target: str, type_: BytesType) -> None:
        """Print the bytes up to ``stop`` as a value."""
        self.source.emit(
            f"{target} = data[pos:stop]{'.decode()' if type_.text else ''}", "pos = stop"
        )

    def length(self, name: str, endian: str, target: str = "size") -> None:
        """Print the reading of a length or a count, as it is written, into a variable."""
        self.scalar(target, COMPACT if name == COMPACT.name else SCALARS[name], endian)


def is_zigzag(name: str) -> bool:
    """Return whether a type is a signed varint."""
    return name != COMPACT.name and SCALARS[name].kind == "varint" and SCALARS[name].signed


def _is_unsigned(name: str) -> bool:
    """Return whether the numbers of a type are not negative."""
    return name == COMPACT.name or not SCALARS[name].signed
