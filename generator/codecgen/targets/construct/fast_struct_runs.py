"""Runs of fixed-size values that a fast parser unpacks, or a fast builder packs, by one call of :mod:`struct`."""

from __future__ import annotations

from codecgen.schema.scalars import Scalar
from codecgen.targets.construct.fast_function import FunctionSource
from codecgen.targets.construct.fast_module import FastModule

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


def size_of_code(code: str) -> int:
    """Return the number of bytes of a code of :mod:`struct`."""
    if code.endswith("s"):
        return int(code[:-1])
    return _WIDTH_OF_CODE[code.lower()]


class StructValues:
    """Values of fixed size in one byte order. A value is a variable to unpack into or an expression
    to pack, with its :mod:`struct` code.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.codes: list[str] = []
        self._endian: str | None = None

    @property
    def endian(self) -> str:
        """The byte order of the values: ``big`` if none of them has one."""
        return self._endian or "big"

    @property
    def size(self) -> int:
        """The number of bytes of the values."""
        return sum(map(size_of_code, self.codes))

    def accepts(self, code: str, endian: str) -> bool:
        """Return whether a value has the byte order of the values so far. Codes of one byte and of
        bytes have none.
        """
        return not _has_order(code) or self._endian in (None, endian)

    def add(self, text: str, code: str, endian: str) -> None:
        """Append a value that is accepted."""
        if _has_order(code):
            self._endian = endian
        self.texts.append(text)
        self.codes.append(code)


class UnpackedRun:
    """Values of fixed size that a fast parser has yet to unpack, and the lines that follow them.
    :meth:`flush` prints both.

    Attributes:
        is_unpacked: Whether a loop over all elements of an array unpacks the values, so that only
            the lines after them are printed.
        unpacked: The values that such a loop unpacks.
    """

    def __init__(self, source: FunctionSource, module: FastModule) -> None:
        self._source = source
        self._module = module
        self._values = StructValues()
        self._lines_after: list[str] = []
        self.is_unpacked = False
        self.unpacked = StructValues()

    def append(self, variable: str, code: str, endian: str) -> None:
        """Add a variable and its :mod:`struct` code to the pending values. First print these if a
        number among them has another byte order.
        """
        if not self._values.accepts(code, endian):
            self.flush()
        self._values.add(variable, code, endian)

    def emit_after(self, *lines: str) -> None:
        """Add lines that are printed after the pending values. If no value is pending, print them
        at once.
        """
        if self._values.texts:
            self._lines_after += lines
        else:
            self._source.emit(*lines)

    def flush(self) -> None:
        """Print the unpacking of the pending values, if there are any, then the lines after them,
        and clear both. With ``is_unpacked``, move the values to ``unpacked`` instead of printing
        them. One or two bytes are read by index, which is faster than :mod:`struct`.
        """
        values, lines = self._values, self._lines_after
        self.clear()
        if self.is_unpacked:
            self.unpacked = values if values.texts else self.unpacked
        elif values.texts:
            self._print_unpacking(values)
        self._source.emit(*lines)

    def clear(self) -> None:
        """Discard the pending values and the lines after them."""
        self._values, self._lines_after = StructValues(), []

    def _print_unpacking(self, values: StructValues) -> None:
        """Print the assignment of the values from ``pos`` on to their variables."""
        source, codes, names = self._source, "".join(values.codes), ", ".join(values.texts)
        if codes in ("B", "b", "BB"):
            for at, name in enumerate(values.texts):
                source.emit(f"{name} = data[pos{f' + {at}' if at else ''}]")
            source.emit(f"pos += {values.size}")
            if codes == "b":
                source.emit(f"if {names} > 127:", f"    {names} -= 256")
            return
        unpack = self._module.unpacker(codes, values.endian)
        targets = f"({names},)" if len(values.texts) == 1 else names
        source.emit(f"{targets} = {unpack}(data, pos)", f"pos += {values.size}")


class PackedRun:
    """Values of fixed size that a fast builder has yet to append to its bytes. :meth:`flush` prints
    that.

    Attributes:
        out: The variable of the bytes so far: ``out``, or those that a varint before them measures.
    """

    def __init__(self, source: FunctionSource, module: FastModule) -> None:
        self._source = source
        self._module = module
        self.out = "out"
        self.clear()

    def append(self, text: str, code: str, endian: str) -> None:
        """Add an expression and its :mod:`struct` code to the pending values. First print these if
        a number among them has another byte order.
        """
        if not self._values.accepts(code, endian):
            self.flush()
        self._values.add(text, code, endian)

    def require_int(self, text: str) -> None:
        """Let the function raise Irregular, before the pending values are packed, if the type of an
        expression is not int.
        """
        self._integers.append(text)

    def mark(self, variable: str) -> None:
        """Print the assignment of the position of the next byte to a variable: at once, or with the
        pending values if there are any.
        """
        before = self._values.size
        if before:
            self._positions.append((variable, before))
        else:
            self._source.emit(f"{variable} = len({self.out})")

    def flush(self) -> None:
        """Print the type checks and the packing of the pending values, if there are any, and clear
        them. The function raises Irregular for an integer whose type is not int, such as bool, and
        another exception for a number that does not fit.
        """
        source, values = self._source, self._values
        if not values.texts:
            return
        if self._integers:
            kinds = [f"type({name})" for name in self._integers]
            one = f"{kinds[0]} is not int"
            source.emit_raise_if(one if len(kinds) == 1 else f"not ({' is '.join(kinds)} is int)")
        for variable, before in self._positions:
            source.emit(f"{variable} = len({self.out}) + {before}")
        codes = "".join(values.codes)
        if codes == "B":
            source.emit(f"{self.out}.append({values.texts[0]})")
        elif all(code.endswith("s") for code in values.codes):
            source.emit(*(f"{self.out} += {text}" for text in values.texts))
        else:
            pack = self._module.packer(codes, values.endian)
            source.emit(f"{self.out} += {pack}({', '.join(values.texts)})")
        self.clear()

    def clear(self) -> None:
        """Discard the pending values, their type checks and their positions."""
        self._values = StructValues()
        self._integers: list[str] = []
        self._positions: list[tuple[str, int]] = []


def _has_order(code: str) -> bool:
    """Return whether the bytes of a :mod:`struct` code have an order."""
    return code not in ("b", "B") and not code.endswith("s")
