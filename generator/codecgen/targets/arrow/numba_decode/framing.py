"""Where entries end: after a length at a fixed place, after a fixed number of bytes, or with their last field."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.schema.model import Field
from codecgen.targets.arrow.checks import Unsupported


@dataclass(frozen=True, slots=True)
class Framing:
    """How the end of an entry is found.

    Attributes:
        entry: The layout.
        length: Field with the length, None if there is none.
        uncounted: Bytes before those that the length counts.
        size: Constant size of entries. If it and ``length`` are None, an entry ends where its fields end.
    """

    entry: LayoutPlan
    length: FieldPlan | None = None
    uncounted: int = 0
    size: int | None = None

    @property
    def open(self) -> bool:
        """True if the end of an entry is known only after its fields were read."""
        return self.length is None and self.size is None

    @property
    def blamed(self) -> Field:
        """The field to name when there are too few bytes."""
        return (self.entry.fields[0] if self.length is None else self.length).field


def framing_of(entry: LayoutPlan) -> Framing:
    """Return how the end of an entry is found: by the first length field whose range ends with the
    entry; without such a field by the constant size. Without both, or if that length has no fixed
    offset and size, it is found only by reading the fields (``open``). Raise Unsupported if that
    length, at a fixed offset, is optional, counts itself, or measures from no fixed offset.
    """
    last = (None, entry.fields[-1].name)
    found = (m for m in entry.fields if m.measures is not None and m.measures.last in last)
    f = next(found, None)
    if f is None or f.measures is None:
        return Framing(entry, size=entry.size)
    first = entry.field(f.measures.first)
    if f.offset is None or f.size is None or first is None:
        return Framing(entry)
    if f.when is not None:
        raise Unsupported("an entry whose length may be left out", f.field)
    if f.own_bytes:
        raise Unsupported("a length that counts itself", f.field)
    if first.offset is None:
        raise Unsupported("a length that begins at no fixed place", f.field)
    return Framing(entry, f, first.offset)
