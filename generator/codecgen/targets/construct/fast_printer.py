"""Prints the simple parts of fast parsers: runs of fixed-size values, varints, bits, bytes and text."""

from __future__ import annotations

from dataclasses import replace

from codecgen.plan import FieldPlan
from codecgen.schema.scalars import COMPACT, SCALARS, Scalar
from codecgen.schema.types import FROM_OUTSIDE, ZERO_TERMINATED, BitsType, BytesType, ScalarType
from codecgen.targets.construct.fast_function import RESERVED, FunctionPrinter
from codecgen.targets.construct.fast_module import Unsupported
from codecgen.targets.python_source import string

_WIDTH_OF_CODE = {"b": 1, "h": 2, "i": 4, "q": 8, "f": 4, "d": 8}
_CODE_OF_WIDTH = {width: code for code, width in _WIDTH_OF_CODE.items() if code not in "fd"}
_CODE_OF_KIND = {("float", 4): "f", ("float", 8): "d", ("bool", 1): "B"}


def struct_code(scalar: Scalar) -> str:
    """Return the code of :mod:`struct` for a scalar of fixed size; ``B`` for a bool. Return ``3s``
    or ``16s``, with the number of bytes, for integers of other sizes and uuids, which :mod:`struct`
    does not have. A varint or VLQ gets such a code too, by its bits, which must not be used.
    """
    if scalar.kind == "integer" and scalar.width in _CODE_OF_WIDTH:
        code = _CODE_OF_WIDTH[scalar.width]
        return code if scalar.signed else code.upper()
    return _CODE_OF_KIND.get((scalar.kind, scalar.width), f"{scalar.width}s")


class ReadPrinter(FunctionPrinter):
    """Prints the parts of a fast parser (a Python function, as source lines) that read numbers,
    bytes and text. Values of fixed size wait in a "run" until one ``unpack_from`` reads them, then
    their checks follow. The function raises Irregular, or any other exception, for bytes that it
    leaves to the field-by-field parser.

    Attributes:
        run: Variables and codes of values of fixed size that are unpacked together.
        is_unpacked: Whether a loop over all elements of an array unpacks the run, so that only its
            checks are printed.
        unpacked: The run that such a loop unpacks.
        checks: Lines that follow the run.
        ends: Variables that hold the ends of the open windows, the innermost last.
    """

    reserved = RESERVED | {
        *["data", "pos", "end", "session", "raw", "more", "item", "index", "start", "stop", "tag"],
        *["count", "size", "numbers", "section", "within", "at", "tags"],
        *["items", "number"],
        *["link_elements", "read_varint", "read_vlq", "open_section", "default_value"],
        *["place", "set_place", "read_tags", "read_unknown_tags"],
    }
    prefixes = ("parse_", "unpack_")

    def begin(self) -> None:
        """Discard the printed lines, variables and pending values, so that the function is printed
        anew. ``bits_used`` stays.
        """
        super().begin()
        self.run: list[tuple[str, str]] = []
        self.run_endian: str | None = None
        self.is_unpacked = False
        self.unpacked: list[tuple[str, str]] = []
        self.verified: set[str] = set()
        self.checks: list[str] = []
        self.ends: list[str] = ["end"]
        self.reaches_end: list[bool] = []

    @property
    def end(self) -> str:
        """Return the variable that holds the end of the innermost window."""
        return self.ends[-1]

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
        clear both. With ``is_unpacked``, move the run to ``unpacked`` instead of printing it. One
        or two bytes are read by index, which is faster than :mod:`struct`.
        """
        if self.is_unpacked:
            self.unpacked = self.run or self.unpacked
        elif self.run:
            codes = "".join(code for _, code in self.run)
            names = ", ".join(name for name, _ in self.run)
            size = sum(size_of_code(code) for _, code in self.run)
            if codes in ("B", "b", "BB"):
                for at, (name, _) in enumerate(self.run):
                    self.emit(f"{name} = data[pos{f' + {at}' if at else ''}]")
                self.emit(f"pos += {size}")
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
        """Print the reading of a number of the type ``name``, any scalar type but ``compact``, into
        the variable of its field. A number with an enum becomes its member (an unknown one raises
        KeyError, or stays a number if the enum keeps it), a word of bits a Parsed of named bits.
        The function raises Irregular for a negative zigzag varint that measures a range.
        """
        target = self.local(fp.name)
        type_ = fp.field.type
        if isinstance(type_, BitsType):
            # the sign is one of the bits
            word = self.temporary(f"{fp.name}_word")
            self.scalar(word, replace(SCALARS[name], signed=False), fp.field.endian)
            self.bits(fp, type_, word)
            return
        if fp.measures is not None and self.is_zigzag(name):
            self.unsigned_varint(target, SCALARS[name])
            self.refuse_if(f"{target} & 1")  # a negative length
            self.emit(f"{target} >>= 1")
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
        """Print the reading of a scalar of any type into the variable ``target``. A varint or VLQ
        is read at once; other scalars join the pending run. The function raises Irregular for a
        bool that is neither 0 nor 1. ``endian`` does not affect varints and VLQs.
        """
        if scalar.is_variable:
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
        """Print the reading of a varint or VLQ into the variable ``target``, with zigzag decoding
        if the type is signed (no VLQ is). The pending run is printed before. The function raises
        Irregular for a number that is too long, too large or not in its shortest form.
        """
        raw = "raw" if scalar.signed else target
        self.unsigned_varint(raw, scalar)
        if scalar.signed:
            self.emit(f"{target} = raw >> 1", "if raw & 1:", f"    {target} = ~{target}")

    def unsigned_varint(self, target: str, scalar: Scalar) -> None:
        """Print the reading of a varint or VLQ of at most ``scalar.max_size`` bytes into the
        variable ``target``, without zigzag decoding. Its first byte joins the pending run, which is
        printed. The function raises Irregular for a number that is too long, too large or not in
        its shortest form, IndexError or struct.error if the data end.
        """
        self.append_run(target, "B", "big")
        self.flush()
        mask = f"0x{(1 << scalar.bits) - 1:X}"
        if scalar.kind != "varint":
            read, step = self.module.use("read_vlq"), int(scalar.kind == "bijective_vlq")
            self.emit(
                f"if {target} > 127:",
                f"    {target}, pos = {read}(data, pos - 1, {scalar.max_size}, {mask}, {step})",
            )
            return
        read, second = self.module.use("read_varint"), self.module.use("SECOND_BYTES")
        self.emit(
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
        target = self.local(fp.name)
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
            items.append(f"{target}[{string(m.name)}] = {text}")
        self.later(f"{target} = {self.module.use('Parsed')}()", *items)

    # ------------------------------------------------------------ bytes

    def bytes_field(self, fp: FieldPlan, type_: BytesType, after: int | None) -> None:
        """Print the reading of bytes or text into the variable of its field. Bytes without a length
        of their own end ``after`` bytes before the end of the window; the function raises Irregular
        if that is passed already. For these, raise Unsupported if ``after`` is None, that is, if
        the following fields vary in size. Raise Unsupported also if a value from outside gives the
        length.
        """
        target = self.local(fp.name)
        if type_.length == FROM_OUTSIDE:
            raise Unsupported
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
        """Print the reading of bytes or text into the variable ``target``: of fixed size in the
        pending run (trailing zeros are removed if it is padded), up to a zero byte, or after a
        length, whose null number gives None. The function raises Irregular if a length is negative
        or exceeds the window, ValueError if there is no zero byte or text is not UTF-8. Bytes that
        take the rest are printed by :meth:`bytes_field`, and raise KeyError here.
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
            if null is None:
                self.refuse_if("raw & 1")
            else:
                self.emit("if raw & 1:", "    if raw != 1:", "        raise Irregular")
                self.emit(f"    {target} = None", "else:")
                self.indent += 1
            self.emit("stop = pos + (raw >> 1)")
            self.refuse_if(f"stop > {self.end}")
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
        negative = (plus and null != 0) or not self.is_unsigned(type_.length)
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


def size_of_code(code: str) -> int:
    """Return the number of bytes of a code of :mod:`struct`."""
    if code.endswith("s"):
        return int(code[:-1])
    return _WIDTH_OF_CODE[code.lower()]
