"""Programs for the kernel of Avro values: instructions compiled from a writer's schema, for the columns of a shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kafka_log.read.schemas import avro_kernel as kernel
from kafka_log.read.schemas.avro_types import RECORDS, Types, unwrap
from kafka_log.read.schemas.shapes import JSON, NULL, Shape

Form = Literal["null", "constant", "number", "bytes", "struct", "list"]

_ROWS = 0
"""Level of the rows. Each list has a level for its elements."""

_RANGES = {"int": (-(1 << 31), (1 << 31) - 1), "long": (-(1 << 63), (1 << 63) - 1)}
_EXACT = 1 << 53
"""Largest integer that pyarrow converts to float64, of either sign."""

_MAX_TEXT = 100
"""Maximum bytes of a text that comes from the schema: symbols and defaults. All parts of the values that are decoded at once have
less than 2 GiB of them."""


class OnlyFastavroError(Exception):
    """Raised for a schema that has no program, so fastavro decodes its values. ``reason`` names
    what programs do not decode.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"programs do not decode {reason}: fastavro decodes the values")
        self.reason = reason


@dataclass
class Column:
    """Arrow column that a program writes.

    Attributes:
        shape: Shape of the column.
        form: How it is made: of nulls, of a ``constant``, of numbers with the NumPy type ``dtype``, of bytes, or of ``parts``.
        level: Level to which its values belong. It has as many values as the level has elements.
        slot: Number of its validity in :attr:`Program.slots`; None if no value is null.
        code: Number of the instruction that writes it, if there is one.
        parts: Members of a struct; the elements of a list; keys and values of a map.
        symbols: Texts for which the numbers stand, if it is a column of an enum.
    """

    shape: Shape
    form: Form
    level: int
    slot: int | None
    code: int = 0
    dtype: str = ""
    constant: Any = None
    parts: tuple[Column, ...] = ()
    symbols: tuple[str, ...] | None = None


@dataclass
class Program:
    """Compiled schema.

    Attributes:
        code: Instructions of the kernel, with numbers in place of addresses (int64, a row for each).
        column: The column of values.
        levels: Number of levels.
        slots: Level and instruction of each validity. Slot 0 is that of the rows, without an instruction.
        counted: Instructions that count bytes.
        limits: Limits of decimals for each instruction that has them.
    """

    code: Any
    column: Column
    levels: int
    slots: Sequence[tuple[int, int]]
    counted: Sequence[int]
    limits: Mapping[int, Sequence[int]]


@dataclass(frozen=True)
class _Place:
    """Where values go: their level, and the slot of their validity. Values that are not ``kept`` are checked only."""

    level: int
    slot: int | None
    kept: bool = True


@dataclass
class Compiler:
    """Compiler of a schema in fastavro's form.

    Args:
        writer: Named types of the writer's schema.
        reader: Named types of the schema to which values are resolved.
    """

    writer: Types
    reader: Types = field(default_factory=dict)
    _code: list[list[int]] = field(default_factory=list)
    _slots: list[tuple[int, int]] = field(default_factory=lambda: [(_ROWS, 0)])
    _counted: list[int] = field(default_factory=list)
    _limits: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _levels: int = 1
    _depth: int = 0

    def compile(self, schema: Any, resolved: Any, own: Shape, target: Shape) -> Program:
        """Return the program that decodes values of the Avro schema ``schema``, which have the
        shape ``own``, resolved to the schema ``resolved`` (None: not resolved), into a column of
        the shape ``target``. Raise OnlyFastavroError if only fastavro decodes them. Use a Compiler
        once.

        Args:
            schema: The writer's schema.
            resolved: The schema to which values are resolved; None without one.
            own: Shape of the values.
            target: Shape of the column.
        """
        column = self._value(schema, resolved, own, target, _Place(_ROWS, 0))
        self._emit(kernel.END, _Place(_ROWS, 0))
        code = np.array(self._code, np.int64)
        return Program(code, column, self._levels, self._slots, self._counted, self._limits)

    def _emit(self, code: int, at: _Place, *fields: int) -> int:
        """Append an instruction with its fields from 3 on, and return its number."""
        row = [code, at.level, 0, *fields]
        self._code.append(row + [0] * (kernel.FIELDS - len(row)))
        return len(self._code) - 1

    def _value(self, schema: Any, resolved: Any, own: Shape, target: Shape, at: _Place) -> Column:
        """Append the instructions for the type ``schema``, resolved to the type ``resolved`` (None:
        not resolved), and return its column. ``own`` is the shape of the values, ``target`` that of
        the column; with ``at.kept`` False values are checked and not kept. Raise OnlyFastavroError
        for JSON columns, and for types or resolutions that only fastavro decodes.
        """
        if own == JSON or target == JSON:
            raise OnlyFastavroError("a column of JSON texts")
        schema, resolved = unwrap(schema, self.writer), unwrap(resolved, self.reader)
        if isinstance(schema, list):
            return self._union(schema, resolved, own, target, at)
        if isinstance(resolved, list):
            if schema["type"] == "null":
                raise OnlyFastavroError("null that is resolved to a union")
            resolved = unwrap(_sole_branch(resolved), self.reader)
        if resolved is not None:
            _check_resolution(schema, resolved)
        kind = schema["type"]
        if kind == "null":
            return Column(target, "null", at.level, at.slot)
        if kind in RECORDS:
            return self._record(schema, resolved, own, target, at)
        if kind in ("array", "map"):
            return self._list(schema, resolved, own, target, at)
        if kind == "enum":
            return self._enum(schema, target, at)
        if not at.kept:
            return self._checked(schema, at)
        return self._scalar(schema, resolved is not None, own, target, at)

    def _union(
        self, schema: list[Any], resolved: Any, own: Shape, target: Shape, at: _Place
    ) -> Column:
        """Compile a union of null and another type, in any order, or of one type, and return the
        other type's column. Raise OnlyFastavroError for several types, if it is resolved to
        anything but a union with null, if it is resolved and has one type only (``resolved`` None:
        it is not), or if the other type cannot be compiled.
        """
        if resolved is not None and (
            len(schema) == 1 or not isinstance(resolved, list) or "null" not in resolved
        ):
            raise OnlyFastavroError("a union that is resolved to another type")
        if len(schema) == 1:
            self._emit(kernel.BRANCH, at)
            return self._value(schema[0], resolved, own, target, at)
        if len(schema) != 2 or schema.count("null") != 1:
            raise OnlyFastavroError("a union of several types")
        number = self._emit(kernel.NULLABLE, at, 0, 0, schema.index("null"))
        if at.kept:
            self._slots.append((at.level, number))
            at = _Place(at.level, len(self._slots) - 1)
        to = None if resolved is None else _sole_branch(resolved)
        column = self._value(_sole_branch(schema), to, own, target, at)
        self._code[number][6] = len(self._code)
        return column

    def _record(self, schema: Any, resolved: Any, own: Shape, target: Shape, at: _Place) -> Column:
        """Compile a record, and return its struct column: instructions in the order of the writer's
        fields, columns in that of ``target``. Fields that the reader lacks are checked and not
        kept. Columns without a field of the writer are null, or with a reader have the default of
        its field. Raise OnlyFastavroError if a default is missing or not plain, or if only fastavro
        decodes or resolves a field, also one that is not kept.
        """
        found: dict[str, Column] = {}
        reader_fields = {} if resolved is None else {f["name"]: f for f in resolved["fields"]}
        unseen = _Place(at.level, None, kept=False)
        for f in schema["fields"]:
            name = f["name"]
            if not at.kept or (resolved is not None and name not in reader_fields):
                self._value(f["type"], None, NULL, NULL, unseen)
                continue
            to = None if resolved is None else reader_fields[name]["type"]
            found[name] = self._value(f["type"], to, own.members[name], target.members[name], at)
        for name, shape in target.members.items():
            if name not in found and resolved is None:
                found[name] = Column(shape, "null", at.level, at.slot)
            elif name not in found:
                found[name] = _default_column(reader_fields[name], shape, at)
        parts = tuple(found[name] for name in target.members)
        return Column(target, "struct", at.level, at.slot, parts=parts)

    def _list(self, schema: Any, resolved: Any, own: Shape, target: Shape, at: _Place) -> Column:
        """Compile an array or a map, with its items or keys and values, and return its list column.
        ``resolved`` is the type to which it is resolved, None if it is not; ``own`` is the shape of
        the values, ``target`` that of the column; ``at`` says at which level and slot the values
        lie, and whether they are kept. Raise OnlyFastavroError if it lies inside 64 other lists or
        more, or the items cannot be compiled.
        """
        is_map = schema["type"] == "map"
        name = "values" if is_map else "items"
        number = self._emit(kernel.LIST, at)
        inner = _Place(self._levels, None, at.kept)
        self._levels += 1
        self._depth += 1
        if self._depth > kernel.MAX_LISTS:
            raise OnlyFastavroError("lists in many others")
        parts = [self._bytes(kernel.KEY, Shape(pa.string()), inner)] if is_map else []
        to = None if resolved is None else resolved[name]
        parts.append(self._value(schema[name], to, own.item or NULL, target.item or NULL, inner))
        self._emit(kernel.NEXT, inner)
        self._depth -= 1
        self._code[number][6] = len(self._code)
        return Column(target, "list", at.level, at.slot, number, "<i4", None, tuple(parts))

    def _enum(self, schema: Any, target: Shape, at: _Place) -> Column:
        """Compile an enum, and return its column of symbols, which the kernel reads as their
        numbers. Raise OnlyFastavroError if the values are kept and a symbol has more than 100
        bytes.
        """
        symbols = tuple(schema["symbols"])
        if at.kept and not all(map(_is_short, symbols)):
            raise OnlyFastavroError("an enum with long symbols")
        number = self._emit(kernel.INTEGER, at, 0, len(symbols) - 1, 4)
        return Column(target, "number", at.level, at.slot, number, "<i4", symbols=symbols)

    def _bytes(self, code: int, target: Shape, at: _Place, size: int = 0) -> Column:
        """Append the instruction ``code`` for a text, a map key or bytes, and return its column of
        the shape ``target``. ``size`` is the number of bytes of a fixed type, 0 for values with a
        length before them.
        """
        number = self._emit(code, at, 0, 0, size)
        if at.kept:
            self._counted.append(number)
        return Column(target, "bytes", at.level, at.slot, number, "<i4")

    def _checked(self, schema: Any, at: _Place) -> Column:
        """Append the instruction that checks and skips values of a primitive or fixed type that are
        not kept, and return a column of nulls, which nobody uses.
        """
        kind = schema["type"]
        if kind in _RANGES:
            self._emit(kernel.INTEGER, at, *_RANGES[kind])
        else:
            self._emit(_CODES[kind], at, 0, 0, int(schema.get("size", 0)))
        return Column(NULL, "null", at.level, at.slot)

    def _scalar(
        self, schema: Any, is_resolved: bool, own: Shape, target: Shape, at: _Place
    ) -> Column:
        """Compile a primitive or fixed type, and return its column. ``own`` is the shape of the
        values; ``is_resolved`` says that a reader's schema is given. Raise OnlyFastavroError if the
        column's type (``target``) cannot hold them as they are, except that numbers may be widened.
        """
        kind, to = schema["type"], target.type
        if own.type != to and own.type not in _NUMBERS:
            raise OnlyFastavroError(f"{own.type} in a column of {to}")
        if pa.types.is_decimal(to):
            return self._decimal(schema, target, at)
        if kind in _RANGES:
            return self._integer(kind, is_resolved, target, at)
        if to not in _COLUMNS[kind]:
            raise OnlyFastavroError(f"{kind} in a column of {to}")
        if kind in ("bytes", "string", "fixed"):
            return self._bytes(_CODES[kind], target, at, int(schema.get("size", 0)))
        number = self._emit(_CODES[kind], at)
        return Column(target, "number", at.level, at.slot, number, _DTYPES[kind])

    def _integer(self, kind: str, is_resolved: bool, target: Shape, at: _Place) -> Column:
        """Compile an int or a long (``kind``), and return its column. The kernel rejects values
        outside the type, times outside a day, and, unless ``is_resolved``, longs in a column of
        doubles that a double does not hold exactly. Raise OnlyFastavroError if the column is
        narrower or of 32-bit floats.
        """
        to = target.type
        least, most = _RANGES[kind]
        width = 4 if kind == "int" else 8
        if to == pa.float64():
            if not is_resolved:
                least, most = max(least, -_EXACT), min(most, _EXACT)
        elif to == pa.float32() or to.bit_width < 8 * width:
            raise OnlyFastavroError(f"{kind} in a column of {to}")
        else:
            width = to.bit_width // 8
        if pa.types.is_time(to):
            least, most = 0, (86_400_000 if to.unit == "ms" else 86_400_000_000) - 1
        number = self._emit(kernel.INTEGER, at, least, most, width)
        return Column(target, "number", at.level, at.slot, number, f"<i{width}")

    def _decimal(self, schema: Any, target: Shape, at: _Place) -> Column:
        """Compile bytes or a fixed type with a decimal, and return its column. The kernel rejects
        numbers with more digits than the column's precision. Raise OnlyFastavroError for a
        precision of more than 38 digits.
        """
        if not pa.types.is_decimal128(target.type):
            raise OnlyFastavroError("a decimal of more than 38 digits")
        number = self._emit(kernel.DECIMAL, at, 0, 0, int(schema.get("size", -1)))
        end = 10**target.type.precision
        self._limits[number] = (*_words(end), *_words(-end))
        return Column(target, "number", at.level, at.slot, number, "V16")


_CODES = {
    "boolean": kernel.BOOLEAN,
    "float": kernel.FLOAT,
    "double": kernel.DOUBLE,
    "bytes": kernel.BYTES,
    "string": kernel.TEXT,
    "fixed": kernel.FIXED,
}
_DTYPES = {"boolean": "u1", "float": "<f4", "double": "<f8"}
_COLUMNS = {
    "boolean": (pa.bool_(),),
    "float": (pa.float32(), pa.float64()),
    "double": (pa.float64(),),
    "bytes": (pa.binary(),),
    "string": (pa.string(),),
    "fixed": (pa.binary(),),
}
"""Columns that hold values of a type as they are."""

_NUMBERS = (pa.int32(), pa.int64(), pa.float32())
"""Types of values that also a column of another type holds."""

_PROMOTED = {
    "int": ("int", "long", "double"),
    "long": ("long", "double"),
    "float": ("float", "double"),
}
"""Types to which numbers are resolved by the kernel."""


def _sole_branch(union: list[Any]) -> Any:
    """Return the only branch of a union beside null. Raise OnlyFastavroError if there are others,
    or there is none.
    """
    others = [branch for branch in union if branch != "null"]
    if len(others) != 1:
        raise OnlyFastavroError("values that are resolved to a union of several types")
    return others[0]


def _check_resolution(schema: Any, resolved: Any) -> None:
    """Raise OnlyFastavroError unless values of the type ``schema`` become values of ``resolved`` as
    they are, or as wider numbers (no int or long as float). Named types must also have equal names,
    sizes and symbols, and the reader's type no aliases. Parts of the types are not compared.
    """
    kind = schema["type"]
    if resolved["type"] not in _PROMOTED.get(kind, (kind,)):
        raise OnlyFastavroError(f"{kind} that is resolved to {resolved['type']}")
    if kind in ("record", "error", "enum", "fixed"):
        is_same = all(
            schema.get(name) == resolved.get(name) for name in ("name", "size", "symbols")
        )
        has_aliases = resolved.get("aliases") or any(
            f.get("aliases") for f in resolved.get("fields", ())
        )
        if not is_same or has_aliases:
            raise OnlyFastavroError("types with other names, symbols or sizes")


def _default_column(f: Mapping[str, Any], shape: Shape, at: _Place) -> Column:
    """Return the column of a reader's field that the writer does not have. Raise OnlyFastavroError
    unless its default is null, or a boolean, an int, a long, or a text of at most 100 bytes,
    each without a logical type.
    """
    if "default" not in f:
        raise OnlyFastavroError("a field without a default")
    default = f["default"]
    if default is None:
        return Column(shape, "null", at.level, at.slot)
    kinds = {pa.bool_(): bool, pa.int32(): int, pa.int64(): int, pa.string(): str}
    is_plain = type(default) is kinds.get(shape.type)
    if shape.type is None or not is_plain or not _is_short(default):
        raise OnlyFastavroError("a default that is not plain")
    return Column(shape, "constant", at.level, at.slot, constant=pa.scalar(default, shape.type))


def _is_short(text: Any) -> bool:
    """Return whether a value of a schema can be repeated for each row: a text of at most 100
    bytes in UTF-8, or any value that is no text. Return False for a text with a lone surrogate.
    """
    try:
        return not isinstance(text, str) or len(text.encode()) <= _MAX_TEXT
    except UnicodeEncodeError:
        return False


def _words(number: int) -> tuple[int, int]:
    """Return the low and the high word of a number of 128 bits, both signed."""
    low = number & (1 << 64) - 1
    return low - (1 << 64) if low >> 63 else low, number >> 64
