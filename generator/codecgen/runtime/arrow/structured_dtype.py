"""A layout of fixed size as a NumPy dtype: many of them, one after the other, are then one array."""

from __future__ import annotations

from typing import Any

import numpy as np

from codecgen.runtime.bits import Bits
from codecgen.runtime.errors import CodecError
from codecgen.runtime.layout import Layout
from codecgen.runtime.primitives import (
    STRUCT_CODES,
    Boolean,
    Codec,
    EnumField,
    Float64,
    Integer,
)

_ORDER = {"big": ">", "little": "<"}


def structured(layout: Layout) -> Any:
    """Return a structured NumPy dtype with the fields of a layout, nested for nested layouts. Enums
    and bits are their numbers, booleans bytes; uuids, bytes and numbers of other than 1, 2, 4 or 8 bytes are voids. Raise
    CodecError at the first field that is optional or has no fixed size.

    No value is checked.
    """
    fields = []
    for f in layout.fields:
        try:
            if f.when is not None:
                raise CodecError(
                    "the field exists only under a condition (`when`), so that a NumPy dtype cannot have it"
                )
            fields.append((f.name, _kind(f.codec)))
        except CodecError as error:
            raise layout.related.locate(error, f) from None
    return np.dtype(fields)


def _kind(codec: Codec) -> Any:
    """Return the dtype of a codec, as a NumPy type string or, for a layout, a structured dtype.
    Raise CodecError if its size varies, or a field of the layout is optional.
    """
    if isinstance(codec, Layout):
        return structured(codec)
    if isinstance(codec, EnumField | Bits):
        return _kind(codec.base)
    if isinstance(codec, Integer) and codec.size in STRUCT_CODES:
        return f"{_ORDER[codec.endian]}{'i' if codec.signed else 'u'}{codec.size}"
    if isinstance(codec, Float64):
        return f"{_ORDER[codec.endian]}f{codec.size}"
    if codec.size is None:
        raise CodecError("the field has no fixed size, so that a NumPy dtype cannot have it")
    return "u1" if isinstance(codec, Boolean) else f"V{codec.size}"
