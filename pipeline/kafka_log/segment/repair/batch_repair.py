"""Repair of one batch whose checksum is wrong, or whose length or version is.

A candidate counts if the batch then decodes whole under ``strict``, which checks counts, deltas and all rules of its layout, and if
its offsets lie between those of the batches around it.

The probability of a wrong guess is that damage of another kind has a syndrome that one of the tried patterns has too: the number of
patterns divided by 2 to the power of the width of the checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits, Session, Source
from kafka_codecs import LOG_ENTRY
from kafka_log.segment.framing import HEADER_START, frame_of, layout_of
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.positioned_reads import SECTOR
from kafka_log.segment.reference import construct_engine
from kafka_log.segment.repair.error_patterns import count_pairs, find_windows
from kafka_log.segment.repair.sealed_entry import NoRepairError, SealedEntry, find_seal
from kafka_log.segment.versions import VERSIONS

CERTAIN = 2**-15
"""Maximum probability of a wrong guess for a repair that is called certain: one bit of at most 16 KiB with a checksum of 32 bits."""

LIKELY_BIT = 2**-8
"""Maximum probability of a wrong guess for one bit."""

LIKELY = 2**-12
"""Maximum probability of a wrong guess for other patterns, which are rarer to begin with."""

LEAST_ZEROS = 32
"""Minimum of zeros, up to both ends of a sector or of the batch, that count as bytes that were never written."""

MAX_ROOM = 1 << 27
"""Maximum number of bytes up to the next batch that are tried as one batch: a preallocated file has more zeros."""

Read = Callable[[int, int], bytes]


class Edit(NamedTuple):
    """A byte of a file that is changed."""

    byte: int
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class Repair:
    """Changes that make a damaged batch valid.

    Attributes:
        position: Position of the batch in the file.
        size: Size of the repaired batch in bytes.
        edits: Bytes to change, ascending.
        what: Noun phrase about the damage, such as ``one bit at byte 500``.
        probability: Maximum probability that the guess is wrong; None if no checksum tells it.
        is_certain: Whether nothing else explains the damage, and the probability is at most CERTAIN.
        first_offset: First offset of the repaired batch.
        last_offset: Last offset of the repaired batch.
        records: Number of its records.
        is_control: Whether they are control records.
    """

    position: int
    size: int
    edits: tuple[Edit, ...]
    what: str
    probability: float | None
    is_certain: bool
    first_offset: int
    last_offset: int
    records: int
    is_control: bool

    def describe(self) -> str:
        """Return the damage, old and new bytes in hex, whether the repair is certain or likely, and
        the probability of a wrong guess (None: that no checksum covers the bytes), as one phrase.
        There must be edits.
        """
        old, new = (bytes(column).hex(" ") for column in list(zip(*self.edits, strict=True))[1:])
        if self.probability is None:
            odds = "no checksum covers it, but the batches around leave one value"
        else:
            odds = f"a wrong guess has a probability of at most 1 in {int(1 / self.probability):,}"
        word = "certain" if self.is_certain else "likely"
        return f"{self.what}, {old} instead of {new} ({word}: {odds})"


@dataclass(frozen=True, slots=True)
class NoRepair:
    """Why a damaged batch of ``size`` bytes (0: unknown) at ``position`` is not repaired.

    ``is_ambiguous``: several repairs are possible.
    """

    position: int
    size: int
    reason: str
    is_ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The last offset before a batch and the first one after it, both excluded. None: unknown."""

    after: int | None = None
    before: int | None = None

    def admit(self, batch: Batch) -> bool:
        """Return whether a batch fits between the neighbors: its first offset is at least 0, above
        ``after``, and at most its last one, which is below ``before``. None for ``after`` or
        ``before`` is no bound.
        """
        first, last = offsets_of_batch(batch)
        fits = (self.after is None or self.after < first) and (
            self.before is None or last < self.before
        )
        return fits and 0 <= first <= last


def offsets_of_batch(batch: Batch) -> tuple[int, int]:
    """Return first and last offset of a batch."""
    first = batch.last_offset if batch.base_offset is None else batch.base_offset
    return first, batch.last_offset


class _Level(NamedTuple):
    """A kind of damage. ``patterns`` is the number of errors of this kind and the kinds before it, for each byte of a message."""

    patterns: int
    limit: float
    noun: str


_LEVELS = (
    _Level(8, LIKELY_BIT, "one bit"),
    _Level(36, LIKELY, "two bits of one byte"),
    _Level(255, LIKELY, "several bits of one byte"),
    _Level(255 + 2 * 769, LIKELY, "a burst of at most 8 bits"),  # first bit high, or first bit low
)
_UNREPAIRED = len(_LEVELS)
"""Level of other errors in two adjacent bytes: they only contradict."""

Flips = tuple[tuple[int, int], ...]
"""Bytes of an entry and their flipped bits, ascending."""


def repair_checksum(data: bytes, position: int, file: str, around: Neighbors) -> Repair | NoRepair:
    """Return the repair of the batch ``data`` with a wrong checksum, whose length and version are
    right, from the one error of a few bits that explains the checksum and without which the batch
    decodes under ``strict`` and fits between ``around``. Return NoRepair, with the reason, if there
    is none or several, the guess is not safe, a sector is all zeros, or the checksum names no bits.

    Args:
        data: All bytes of the batch.
        position: Its position in the file.
        file: Name of the file, for errors.
        around: Offsets around the batch.
    """
    layout = layout_of(LOG_ENTRY.peek(Source(data, Session(strict=False))))
    try:
        seal = find_seal(layout, len(data))
    except NoRepairError as error:
        return NoRepair(position, len(data), str(error))
    if _has_zeroed_sector(data, position):
        reason = "a sector of it holds only zeros, so more than a few bits are wrong"
        return NoRepair(position, len(data), reason)
    syndrome = seal.stored(data) ^ seal.computed(data)
    tries = _Tries(data, position, file, around)
    levels: list[list[Flips]] = [[] for _ in range(_UNREPAIRED + 1)]
    for flips in _list_errors(seal, data, syndrome):
        levels[_level_of(flips)].append(flips)
    for number, level in enumerate(_LEVELS):
        probability = level.patterns * (seal.length + seal.end - seal.start) / 2**seal.crc.width
        if probability > level.limit:
            break
        passed = [flips for flips in levels[number] if tries.decode(flips) is not None]
        if len(passed) > 1:
            reason = f"{len(passed)} errors explain the checksum, and the batch decodes with each"
            return NoRepair(position, len(data), reason, is_ambiguous=True)
        if not passed:
            continue
        is_alone = False
        if number or probability <= CERTAIN:  # what else explains the checksum decides
            is_pair = sum(bits.bit_count() for _, bits in passed[0]) == 2
            wider = [flips for found in levels[number + 1 :] for flips in found]
            is_alone = count_pairs(seal.crc, syndrome, seal.length) == is_pair and not any(
                tries.decode(flips) is not None for flips in wider
            )
        if number and not is_alone:
            reason = "several errors of a few bits explain the checksum"
            return NoRepair(position, len(data), reason, is_ambiguous=True)
        what = _describe_flips(level.noun, passed[0], layout, position)
        is_certain = number == 0 and is_alone
        return tries.repair(passed[0], what, probability, is_certain)
    return NoRepair(
        position,
        len(data),
        "no error of a few bits explains the checksum, or the guess is not safe",
    )


def repair_frame(
    read: Read, position: int, end: int, file: str, around: Neighbors, budget: list[int]
) -> Repair | NoRepair | None:
    """Return the repair of a batch at byte ``position`` whose length or version byte is wrong: with
    another one it ends at or before ``end``, its checksum is valid, it decodes under ``strict``,
    and it fits between ``around``. Return NoRepair if several others do that, None if none. Bytes
    read are taken from ``budget[0]``; candidates that exceed it are not tried.

    Args:
        read: Returns bytes of the file.
        position: Position of the batch.
        end: Where the next valid batch begins, or the file ends.
        file: Name of the file, for errors.
        around: Offsets around the batch.
        budget: Number of bytes over which checksums may be computed, which is reduced.
    """
    head = read(position, HEADER_START)
    found: list[Repair] = []
    tried = 0
    width = 0
    for flips, size in _list_frames(head, end - position):
        if size > budget[0]:
            continue
        budget[0] -= size
        data = read(position, size)
        layout = layout_of(LOG_ENTRY.peek(Source(_flip(data, flips), Session(strict=False))))
        with suppress(NoRepairError, CodecError):
            seal = find_seal(layout, size)
            tried, width = tried + 1, seal.crc.width
            if seal.is_valid(_flip(data, flips)):
                tries = _Tries(data, position, file, around)
                if tries.decode(flips) is not None:
                    at = position + flips[0][0]
                    what = f"wrong {_name_field(layout, flips[0][0])} at byte {at}"
                    found.append(tries.repair(flips, what, 0.0, is_certain=True))
    if len(found) > 1:
        reason = "its checksum is valid with several lengths or versions"
        return NoRepair(position, 0, reason, is_ambiguous=True)
    if not found:
        return None
    probability = tried / 2**width
    return replace(found[0], probability=probability, is_certain=probability <= CERTAIN)


def _list_frames(head: bytes, room: int) -> Iterator[tuple[Flips, int]]:
    """Yield, for an entry that begins with ``head``, changes of its length or of its version, each
    with the size of the entry then, which is at most ``room``. A changed length has one bit flipped,
    or fills ``room`` (up to 128 MiB). Yield nothing if ``head`` is shorter than HEADER_START or all
    zeros; no length if the version is unknown.
    """
    if len(head) < HEADER_START or not head.strip(b"\0"):
        return
    magic = LOG_ENTRY.peek(Source(head, Session(strict=False)))
    at = LOG_ENTRY.offset
    for version in VERSIONS:
        text = LOG_ENTRY.codec.write(version, None, Session(strict=False))
        flips = _difference(at, head[at : at + len(text)], text)
        if flips:
            with suppress(CodecError):
                size = frame_of(_flip(head, flips), 0, "").size
                if HEADER_START < size <= room:
                    yield flips, size
    length = LOG_ENTRY.cases[magic].length if magic in VERSIONS else None
    if length is None:
        return
    old = head[length.offset : length.end]
    order: Literal["big", "little"] = "big" if length.endian == "big" else "little"
    stored = int.from_bytes(old, order)
    numbers = {stored ^ 1 << bit for bit in range(8 * length.size)}
    if room <= MAX_ROOM:
        numbers.add(room - length.before)
    for number in sorted(numbers - {stored}):
        size = length.before + number
        if HEADER_START < size <= room and number < 1 << 8 * length.size:
            new = number.to_bytes(length.size, order)
            yield _difference(length.offset, old, new), size


def _difference(at: int, old: bytes, new: bytes) -> Flips:
    """Return the flipped bits between two texts of one length that begin at byte ``at``."""
    pairs = enumerate(zip(old, new, strict=True), at)
    return tuple((byte, a ^ b) for byte, (a, b) in pairs if a != b)


def _flip(data: bytes, flips: Flips) -> bytes:
    """Return a copy of ``data`` with bits flipped: each of ``flips`` is the index of a byte, and
    the bits that are inverted in it.
    """
    changed = bytearray(data)
    for byte, bits in flips:
        changed[byte] ^= bits
    return bytes(changed)


def _list_errors(seal: SealedEntry, data: bytes, syndrome: int) -> Iterator[Flips]:
    """Yield each error within two adjacent bytes that explains the wrong checksum of ``data``:
    first one in the stored checksum itself, if that differs so little from the computed one, then
    those in the bytes that it covers. ``syndrome`` is the stored checksum XOR the computed one.
    """
    own = _difference(seal.start, data[seal.start : seal.end], seal.encode(seal.computed(data)))
    if len(own) == 1 or (len(own) == 2 and own[1][0] == own[0][0] + 1):
        yield own
    for window in find_windows(seal.crc, syndrome, seal.length):
        bytes_ = ((window.last - 1, window.before), (window.last, window.flipped))
        placed = [(seal.find_byte(index), bits) for index, bits in bytes_ if bits]
        if all(byte is not None for byte, _ in placed):
            yield tuple((byte, bits) for byte, bits in placed if byte is not None)


def _level_of(flips: Flips) -> int:
    """Return the index in _LEVELS of the kind of damage that an error of one or two bytes belongs
    to. It is 0 for one bit, 1 for two bits and 2 for more bits of one byte, 3 for bits of two bytes
    within a span of at most 8 bits. Return _UNREPAIRED for a longer span.
    """
    if len(flips) == 1:
        return min(flips[0][1].bit_count() - 1, 2)
    (_, before), (_, after) = flips
    spans = (
        _span(before << 8 | after),
        _span(_reverse(before) << 8 | _reverse(after)),
    )
    return 3 if min(spans) <= 8 else _UNREPAIRED


def _span(number: int) -> int:
    """Return the number of bits from the highest to the lowest one that is set."""
    return (number // (number & -number)).bit_length()


def _reverse(byte: int) -> int:
    """Return a byte with the order of its bits reversed."""
    return int(f"{byte:08b}"[::-1], 2)


def _describe_flips(noun: str, flips: Flips, layout: Layout, position: int) -> str:
    """Return a noun phrase about an error with its place in the file, and its field if it lies at a fixed place."""
    first = flips[0][0]
    name = _name_field(layout, first)
    return f"{noun} at byte {position + first}" + (f", in {name}" if name else "")


def _name_field(layout: Layout, byte: int) -> str:
    """Return the name of the field at a byte of an entry, "" if no field at a fixed place has it."""
    for f in layout.fields:
        if layout.is_fixed(f.name):
            start = layout.offset_of(f.name)
            if start <= byte < start + layout.size_of(f.name):
                return f.name
    return ""


def _has_zeroed_sector(data: bytes, position: int) -> bool:
    """Return whether a sector of the file (512 bytes), as far as it lies in the batch, holds only
    zeros, at least LEAST_ZEROS (32).
    """
    at = 0
    while at < len(data):
        end = at + SECTOR - (position + at) % SECTOR
        part = data[at:end]
        if len(part) >= LEAST_ZEROS and not part.strip(b"\0"):
            return True
        at = end
    return False


class _Tries:
    """Candidates for one batch, decoded at most once each."""

    def __init__(self, data: bytes, position: int, file: str, around: Neighbors) -> None:
        self._data = data
        self._position = position
        self._file = file
        self._around = around
        self._known: dict[Flips, Batch | None] = {}

    def decode(self, flips: Flips) -> Batch | None:
        """Return the batch that the bytes are after the bits ``flips`` are flipped; None if it is
        not valid under ``strict``, or does not fit its neighbors (:func:`decode_whole`). Each
        candidate is decoded once.
        """
        if flips not in self._known:
            self._known[flips] = decode_whole(
                _flip(self._data, flips), self._position, self._file, self._around
            )
        return self._known[flips]

    def repair(
        self, flips: Flips, what: str, probability: float | None, is_certain: bool
    ) -> Repair:
        """Return the Repair that flips the bits ``flips``, with offsets and number of records of
        the repaired batch. The batch must decode with them. ``what`` describes the error;
        ``probability`` is that of a wrong guess (None: unknown).
        """
        batch = self.decode(flips)
        assert batch is not None
        first, last = offsets_of_batch(batch)
        edits = tuple(
            Edit(self._position + byte, self._data[byte], self._data[byte] ^ bits)
            for byte, bits in flips
        )
        return Repair(
            self._position,
            len(self._data),
            edits,
            what,
            probability,
            is_certain,
            first,
            last,
            len(batch.records),
            batch.is_control,
        )


def decode_whole(data: bytes, position: int, file: str, around: Neighbors) -> Batch | None:
    """Return the batch with the bytes ``data`` if it is valid under ``strict``, all rules included,
    its version is known, and its offsets lie between those around it; else None.
    """
    try:
        batch = construct_engine(data, position, file, Policy.STRICT, Limits(), True, True)
    except CodecError:
        return None
    return batch if batch.magic in VERSIONS and around.admit(batch) else None
