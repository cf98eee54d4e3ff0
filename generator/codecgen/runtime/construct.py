"""Facade of the runtime for generated Construct modules."""

from codecgen.runtime.arrays import Array, Until
from codecgen.runtime.bits import Bit, Bits
from codecgen.runtime.byte_strings import Bytes, OuterLength, Text
from codecgen.runtime.checksums import Mask
from codecgen.runtime.chosen import Chosen
from codecgen.runtime.compressed_section import Compressed
from codecgen.runtime.enums import Enumeration
from codecgen.runtime.fields import (
    Field,
    Fill,
    Rule,
    end_of,
    look_up,
    max_of,
    min_of,
    minus,
    ordered,
    plus,
    value_at,
)
from codecgen.runtime.given import Given, Giving
from codecgen.runtime.layout import Choice, Layout, LayoutVersions, Lazy, VersionedLayout
from codecgen.runtime.lines_file import EachLine, LinesFile, LineValue, TextLine
from codecgen.runtime.nullable import Nullable
from codecgen.runtime.parsed import Derived
from codecgen.runtime.primitives import (
    Boolean,
    Codec,
    EnumField,
    Float32,
    Float64,
    Integer,
    Uuid,
    Varint,
    Vlq,
    wrap,
)
from codecgen.runtime.properties_file import PropertiesFile, Property
from codecgen.runtime.rules import LayoutRule
from codecgen.runtime.sensitive import Sensitive
from codecgen.runtime.tags import Tags
from codecgen.runtime.text_values import Base64Uuid, Decimal, RestOfLine, Word
from codecgen.runtime.zero_bytes import Padding, ZeroFilled, ZeroTerminated

__all__ = [
    "Array",
    "Base64Uuid",
    "Bit",
    "Bits",
    "Boolean",
    "Bytes",
    "Choice",
    "Chosen",
    "Codec",
    "Compressed",
    "Decimal",
    "Derived",
    "EachLine",
    "EnumField",
    "Enumeration",
    "Field",
    "Fill",
    "Float32",
    "Float64",
    "Given",
    "Giving",
    "Integer",
    "Layout",
    "LayoutRule",
    "LayoutVersions",
    "Lazy",
    "LineValue",
    "LinesFile",
    "Mask",
    "Nullable",
    "OuterLength",
    "Padding",
    "PropertiesFile",
    "Property",
    "RestOfLine",
    "Rule",
    "Sensitive",
    "Tags",
    "Text",
    "TextLine",
    "Until",
    "Uuid",
    "Varint",
    "VersionedLayout",
    "Vlq",
    "Word",
    "ZeroFilled",
    "ZeroTerminated",
    "end_of",
    "look_up",
    "max_of",
    "min_of",
    "minus",
    "ordered",
    "plus",
    "value_at",
    "wrap",
]
