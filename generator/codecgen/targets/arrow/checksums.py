"""The checksum of bytes in memory, as kernels compute it."""

from __future__ import annotations

from codecgen.runtime.checksums import CHECKSUMS
from codecgen.schema.model import Field
from codecgen.targets.arrow.code_tree import Call, Expr, Global, Num


def computed_checksum(f: Field, start: Expr, size: Expr, *, written: bool = False) -> Expr:
    """Return the expression for the number that the checksum field ``f`` stores for ``size`` bytes at
    ``start``: the checksum, changed by the ``mask`` of the field if it has one. With ``written``,
    for bytes that the kernel itself writes, the call counts as one with side effects, so that it is
    never removed. Raise AssertionError if ``f`` is no checksum.
    """
    assert f.checksum is not None
    value = Call(Global(f.checksum), (start, size), (), not written)
    mask = f.mask
    if mask is None:
        return value
    keep = -1 if mask.keep is None else mask.keep
    numbers = (CHECKSUMS[f.checksum].width, mask.rotate_right, _signed(mask.add), _signed(keep))
    return Call(Global("masked"), (value, *map(Num, numbers)), (), not written)


def _signed(value: int) -> int:
    """Return a number of 64 bits with the highest one as its sign."""
    return value - (1 << 64) if value >> 63 == 1 else value


__all__ = ["computed_checksum"]
