"""Where the checksum of an entry lies and which bytes it covers, by the generated layout."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.runtime.checksums import Crc
from codecgen.runtime.construct import Layout
from codecgen.runtime.fields import Field
from codecgen.runtime.located_bytes import Session, Source


class NoRepairError(Exception):
    """The checksum of a layout cannot name wrong bytes. The message says why."""


@dataclass(frozen=True, slots=True)
class SealedEntry:
    """The checksum of an entry of one size.

    Attributes:
        crc: Parameters of the checksum.
        field: The field that holds it.
        start: First byte of the field in the entry.
        end: End of the field.
        ranges: Covered bytes in the order of the checksum: first byte, end, and whether they count as zeros.
    """

    crc: Crc
    field: Field
    start: int
    end: int
    ranges: tuple[tuple[int, int, bool], ...]

    @property
    def length(self) -> int:
        """Return the number of covered bytes."""
        return sum(end - start for start, end, _ in self.ranges)

    def stored(self, data: bytes | memoryview) -> int:
        """Return the checksum that an entry states."""
        source = Source(data, Session(strict=False), pos=self.start, end=self.end)
        value: int = self.field.codec.read(source, None)
        return value & (1 << self.crc.width) - 1

    def computed(self, data: bytes | memoryview) -> int:
        """Return the checksum of the bytes of an entry that it covers, with zeros in place of
        fields that count as zero. The stored checksum is not compared.
        """
        assert self.field.checksum is not None
        view = memoryview(data)
        if len(self.ranges) == 1 and not self.ranges[0][2]:
            return self.field.checksum(view[self.ranges[0][0] : self.ranges[0][1]])
        parts = [
            bytes(end - start) if zero else view[start:end] for start, end, zero in self.ranges
        ]
        return self.field.checksum(b"".join(parts))

    def is_valid(self, data: bytes | memoryview) -> bool:
        """Return whether the stored checksum is that of the bytes."""
        return self.stored(data) == self.computed(data)

    def encode(self, checksum: int) -> bytes:
        """Return the bytes of the checksum field for the number ``checksum``, which is not
        negative; a signed field gets the negative number with the same bits.
        """
        codec = self.field.codec
        value = checksum
        if getattr(codec, "signed", False) and checksum >> self.crc.width - 1:
            value -= 1 << self.crc.width
        return codec.write(value, None, Session(strict=False))

    def find_byte(self, index: int) -> int | None:
        """Return the index in the entry of the byte that has ``index`` among the bytes that the
        checksum covers. Return None if it lies in a field that counts as zero. Raise IndexError if
        fewer bytes are covered.
        """
        for start, end, zero in self.ranges:
            if index < end - start:
                return None if zero else start + index
            index -= end - start
        raise IndexError(index)

    def is_covered(self, byte: int) -> bool:
        """Return whether the checksum covers a byte of the entry, or the byte is one of its own."""
        inside = any(start <= byte < end and not zero for start, end, zero in self.ranges)
        return inside or self.start <= byte < self.end


def find_seal(layout: Layout, size: int) -> SealedEntry:
    """Return where the checksum of an entry of ``layout`` with ``size`` bytes lies, and which bytes
    it covers. Raise NoRepairError if the layout has not exactly one checksum, or it is no CRC or is
    changed before it is stored. Raise it too if its place or what it covers is not known before the
    entry is decoded, or the entry is too short for it.
    """
    fields = layout.related.checksums
    if len(fields) != 1:
        count = len(fields) or "no"
        raise NoRepairError(
            f"{layout.full_name} has {count} checksums, and wrong bytes are located by exactly one: nothing is repaired"
        )
    [field] = fields
    if not isinstance(field.algorithm, Crc):
        title = "its checksum" if field.algorithm is None else field.algorithm.title
        raise NoRepairError(
            f"{title} is not a CRC, so that wrong bytes cannot be located by it: nothing is repaired"
        )
    if field.mask is not None:
        raise NoRepairError(
            "the checksum is stored masked, so that wrong bytes cannot be located by it: nothing is repaired"
        )
    start, end = _locate_field(layout, field.name, size)
    zeros = sorted(_locate_field(layout, name, size) for name in field.zero)
    ranges: list[tuple[int, int, bool]] = []
    for first, last in field.covers:
        at = _locate_field(layout, first, size)[0]
        stop = size if last is None else _locate_field(layout, last, size)[1]
        for zero_start, zero_end in zeros:
            if at <= zero_start and zero_end <= stop:
                ranges += [(at, zero_start, False), (zero_start, zero_end, True)]
                at = zero_end
        ranges.append((at, stop, False))
    if start < 0 or size < end or any(not 0 <= a <= b <= size for a, b, _ in ranges):
        raise NoRepairError("the entry is too short to contain its checksum: nothing is repaired")
    return SealedEntry(field.algorithm, field, start, end, tuple(r for r in ranges if r[0] < r[1]))


def _locate_field(layout: Layout, name: str, size: int) -> tuple[int, int]:
    """Return the index of the first byte of a field, and the one after its last, in an entry of
    ``size`` bytes. Raise NoRepairError for a tagged field, and unless two of three parts have fixed
    sizes: all fields before it, the field itself, and all after it. Optional fields have none. The
    indexes are not compared with ``size``; the first may be negative.
    """
    if layout.is_fixed(name):
        at = layout.offset_of(name)
        return at, at + layout.size_of(name)
    if name in layout.by_name and layout.by_name[name].tag is None:
        in_order = [f for f in layout.fields if f.tag is None]
        index = in_order.index(layout.by_name[name])
        try:
            start = layout.offset_of(name)
        except KeyError:
            start = None
        after = in_order[index + 1 :]
        if all(f.codec.size is not None and f.when is None for f in after):
            end = size - sum(f.codec.size or 0 for f in after)
            own = in_order[index].codec.size
            if start is None and own is not None and in_order[index].when is None:
                start = end - own
            if start is not None:
                return start, end
    raise NoRepairError(
        f"the position of {name} is not known before the entry is decoded: nothing is repaired"
    )
