"""What generated Construct codecs import: one name for all of it."""

from codecgen.runtime.arrays import Array, Compressed
from codecgen.runtime.bits import Bit, Bits
from codecgen.runtime.enums import Enumeration
from codecgen.runtime.fields import Field, Rule, end_of, minus, ordered, plus, value_at
from codecgen.runtime.layout import Choice, Layout, Lazy
from codecgen.runtime.nullable import Nullable
from codecgen.runtime.primitives import (
    Boolean,
    Bytes,
    Codec,
    EnumField,
    Float32,
    Float64,
    Integer,
    Text,
    Uuid,
    Varint,
    wrap,
)

__all__ = [
    "Array",
    "Bit",
    "Bits",
    "Boolean",
    "Bytes",
    "Choice",
    "Codec",
    "Compressed",
    "EnumField",
    "Enumeration",
    "Field",
    "Float32",
    "Float64",
    "Integer",
    "Layout",
    "Lazy",
    "Nullable",
    "Rule",
    "Text",
    "Uuid",
    "Varint",
    "end_of",
    "minus",
    "ordered",
    "plus",
    "value_at",
    "wrap",
]
