"""Scalar types: one record for each type of number, boolean and uuid.

Nothing else says how large a type is. Targets declare which of them they can express, and refuse the others (C023).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["integer", "varint", "vlq", "bijective_vlq", "float", "bool", "uuid"]

_VARIABLE: tuple[Kind, ...] = ("varint", "vlq", "bijective_vlq")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type that a field can have without further keys.

    Attributes:
        kind: ``integer`` has a fixed size. ``varint`` and ``vlq`` have 7 bits in each byte: ``varint`` the low bits first
            (if it is signed, in zigzag), ``vlq`` the high bits first. In ``bijective_vlq`` each byte that another one
            follows also counts 1, so that no number has two encodings.
        bits: The bits of a value.
        signed: Whether it holds negative numbers.
    """

    name: str
    kind: Kind
    bits: int
    signed: bool = False

    @property
    def width(self) -> int:
        """Return the size in bytes of a value without variable-length encoding."""
        return self.bits // 8

    @property
    def is_variable(self) -> bool:
        """Return whether numbers have 7 bits in each byte, so that their size varies."""
        return self.kind in _VARIABLE

    @property
    def min_size(self) -> int:
        """Return the minimum encoded size in bytes."""
        return 1 if self.is_variable else self.width

    @property
    def max_size(self) -> int:
        """Return the maximum encoded size in bytes."""
        return -(-self.bits // 7) if self.is_variable else self.width

    @property
    def python(self) -> Literal["int", "float", "bool", "UUID"]:
        """Return the name of the Python type of the values: ``float``, ``bool``, ``UUID``, or
        ``int`` for all integers, of fixed or variable length.
        """
        match self.kind:
            case "float":
                return "float"
            case "bool":
                return "bool"
            case "uuid":
                return "UUID"
        return "int"

    @property
    def fits_int64(self) -> bool:
        """Return whether a signed 64-bit integer holds all values. False for floats and uuids."""
        return self.python in ("int", "bool") and self.bits < 64 + self.signed


def _by_name(*scalars: Scalar) -> dict[str, Scalar]:
    """Return the types by name."""
    return {scalar.name: scalar for scalar in scalars}


SCALARS: Mapping[str, Scalar] = _by_name(
    Scalar("i8", "integer", 8, signed=True),
    Scalar("i16", "integer", 16, signed=True),
    Scalar("i24", "integer", 24, signed=True),
    Scalar("i32", "integer", 32, signed=True),
    Scalar("i64", "integer", 64, signed=True),
    Scalar("u8", "integer", 8),
    Scalar("u16", "integer", 16),
    Scalar("u24", "integer", 24),
    Scalar("u32", "integer", 32),
    Scalar("u64", "integer", 64),
    Scalar("varint", "varint", 32, signed=True),
    Scalar("varlong", "varint", 64, signed=True),
    Scalar("uvarint", "varint", 32),
    Scalar("uvarlong", "varint", 64),
    Scalar("vlq32", "vlq", 32),
    Scalar("vlq64", "vlq", 64),
    Scalar("bijective_vlq32", "bijective_vlq", 32),
    Scalar("bijective_vlq64", "bijective_vlq", 64),
    Scalar("f32", "float", 32),
    Scalar("f64", "float", 64),
    Scalar("bool", "bool", 8),
    Scalar("uuid", "uuid", 128),
)
"""Every type by its name in the schema language."""

COMPACT = Scalar("compact", "varint", 32)
"""The type of a length or a count that is an unsigned varint of the number plus one; 0 is null."""

INTEGERS = tuple(name for name, scalar in SCALARS.items() if scalar.kind == "integer")
VARINTS = tuple(name for name, scalar in SCALARS.items() if scalar.is_variable)
LENGTHS = (*INTEGERS, *VARINTS, COMPACT.name)
"""The words for what can hold a length or a count."""


def find_scalar(name: object) -> Scalar | None:
    """Return the type ``name``, including ``compact``, or None if there is none."""
    return COMPACT if name == COMPACT.name else SCALARS.get(name) if isinstance(name, str) else None


def is_integer(name: object) -> bool:
    """Return whether a name is that of an integer type of fixed size."""
    return _kind_of(name) == "integer"


def is_varint(name: object) -> bool:
    """Return whether a name is that of a variable-length integer type other than ``compact``."""
    return _kind_of(name) in _VARIABLE and name != COMPACT.name


def is_float(name: object) -> bool:
    """Return whether a name is that of a floating-point type."""
    return _kind_of(name) == "float"


def fixed_size(name: object) -> int | None:
    """Return the size of a type in bytes, or None if it varies or the type is unknown."""
    scalar = find_scalar(name)
    return None if scalar is None or scalar.min_size != scalar.max_size else scalar.width


def _kind_of(name: object) -> str:
    """Return the kind of a type, or ``""`` if the type is unknown."""
    scalar = find_scalar(name)
    return "" if scalar is None else scalar.kind
