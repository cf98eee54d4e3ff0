"""Types of resolved values: what a field holds, and what an expression gives."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import (
    ArrayType,
    BitMember,
    BytesType,
    ChoiceType,
    ScalarType,
    StructType,
    TagsType,
)


@dataclass(frozen=True, slots=True)
class Type:
    """Type of a value. ``kind`` is int, float, bool, enum, bytes, text, uuid, bits, array, layout, tags or
    null.
    """

    kind: str
    enum: str | None = None
    nullable: bool = False

    def __str__(self) -> str:
        words = {
            "int": "a number",
            "float": "a number with a fraction",
            "bool": "true or false",
            "enum": f'a value of the enum "{self.enum}"',
            "text": "text",
            "uuid": "a uuid",
            "bits": "a set of bits",
            "array": "an array",
            "layout": "a layout",
            "tags": "a section of tagged fields",
        }
        return words.get(self.kind, self.kind)

    def or_null(self, nullable: bool = True) -> Type:
        """Return the type as nullable if ``nullable`` is True, and unchanged otherwise."""
        return replace(self, nullable=True) if nullable else self

    def not_null(self) -> Type:
        """Return the type as not nullable."""
        return replace(self, nullable=False)


INT, BOOL, NULL = Type("int"), Type("bool"), Type("null", nullable=True)


def bit_type(m: BitMember) -> Type:
    """Return the type of bits: their enum if they have one, a boolean for a single bit that is not
    reserved, else a number.
    """
    if m.enum is not None:
        return Type("enum", m.enum)
    return BOOL if m.width == 1 and not m.reserved else INT


def bytes_type(type_: BytesType) -> Type:
    """Return the type of a field of bytes or text, nullable if it has a null length."""
    return Type("text" if type_.text else "bytes", None, type_.null is not None)


def held_type(type_: ArrayType | StructType | ChoiceType | TagsType) -> Type:
    """Return the type of a field that holds several values: array, tags or layout."""
    if isinstance(type_, ArrayType):
        return Type("array")
    return Type("tags" if isinstance(type_, TagsType) else "layout")


def scalar_type(type_: ScalarType, nullable: bool = False) -> Type:
    """Return the type of a scalar field in expressions: an enum if it has one, else int, float,
    bool or uuid, as its values in Python.
    """
    if type_.enum is not None:
        return Type("enum", type_.enum, nullable)
    return Type(SCALARS[type_.name].python.lower(), None, nullable)
