"""Repairs of a segment: its damaged batches, and the header fields of valid batches that no checksum covers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from codecgen.runtime.errors import CodecError
from codecgen.runtime.fields import Field
from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs import LOG_ENTRY
from kafka_codecs.rows.batches import BATCHES
from kafka_log.segment.framing import HEADER_START, Frame, frame_of
from kafka_log.segment.header_arrays import (
    Headers,
    concatenate_headers,
    header_row,
    headers_from_rows,
)
from kafka_log.segment.model import Lost
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.placement import find_ascending, find_outside_segment
from kafka_log.segment.repair.batch_repair import (
    Edit,
    Neighbors,
    NoRepair,
    Read,
    Repair,
    decode_whole,
    offsets_of_batch,
    repair_checksum,
    repair_frame,
)
from kafka_log.segment.repair.sealed_entry import NoRepairError, find_seal
from kafka_log.segment.resynchronization import CHUNK, WORK_PER_BYTE
from kafka_log.segment.versions import VERSIONS, have_field, version_of

MAX_BATCHES = 100
"""Maximum of batches of one lost range that are repaired."""

MAX_DOUBTFUL = 1000
"""Maximum of batches of a segment whose offsets or epochs are compared with those around. More are no flipped bits."""


def repair_range(read: Read, lost: Lost, size: int, file: str) -> Iterator[Repair | NoRepair]:
    """Yield a Repair or NoRepair for each batch of a lost range, in file order, up to the first one
    whose end is not known, and at most 100. The last 17 bytes (HEADER_START) of the range or fewer
    are no batch. The offsets of a repaired batch bound those after it. A batch may end after the
    range, within the ``size`` bytes of the file.

    A batch may reach beyond the range: messages inside a damaged one look like the next valid batch.

    Args:
        read: Returns bytes of the file.
        lost: The range, which ends where the next valid batch begins or the file ends.
        size: Size of the file.
        file: Name of the file, for errors.
    """
    position, after = lost.start, lost.after_offset
    budget = [WORK_PER_BYTE * (lost.end - lost.start) + CHUNK]
    for _ in range(MAX_BATCHES):
        if position + HEADER_START >= lost.end:
            return
        around = Neighbors(after, lost.before_offset)
        frame = _frame_at(read, position, lost.end, file) or _frame_at(read, position, size, file)
        answer = repair_frame(read, position, lost.end, file, around, budget)
        if answer is None and frame is not None:
            data = read(position, frame.size)
            if position + frame.size > lost.end:
                around = Neighbors(after)
            answer = repair_checksum(data, position, file, around)
        yield answer or NoRepair(position, 0, "no length and no version makes its checksum valid")
        if isinstance(answer, Repair):
            position, after = position + answer.size, answer.last_offset
        elif frame is not None:
            position += frame.size
        else:
            return


def _frame_at(read: Read, position: int, end: int, file: str) -> Frame | None:
    """Return the frame of the batch at byte ``position``. Return None if its version is unknown, or
    it does not end at ``end`` or, before that, where bytes with a known version and a possible
    length begin.
    """
    with suppress(CodecError):
        frame = frame_of(read(position, HEADER_START), position, file)
        following = position + frame.size
        if frame.magic not in VERSIONS or following > end:
            return None
        if following == end:
            return frame
        if end - following > HEADER_START:
            after = frame_of(read(following, HEADER_START), following, file)
            return frame if after.magic in VERSIONS else None
    return None


def repair_headers(
    read: Read, headers: Headers, base: int | None, next_base: int | None, file: str
) -> Iterator[Repair]:
    """Yield the repairs of batches with a valid checksum whose version is unknown, or whose offsets
    or leader epoch contradict those of the batches around, if these leave one value with which the
    batch decodes. ``base`` and ``next_base`` are the base offsets of the segment and the next one
    (None: no bound). At most MAX_DOUBTFUL (1000) versions are tried, and no offsets or epochs if
    more are doubtful.

    Args:
        read: Returns bytes of the file.
        headers: Headers of the valid batches of a segment.
        base: Base offset of the segment. None: unknown.
        next_base: Base offset of the next segment. None: unknown.
        file: Name of the file, for errors.
    """
    unknown = np.flatnonzero(~np.isin(headers.magic, VERSIONS)).tolist()
    for i in unknown[:MAX_DOUBTFUL]:
        yield from _repair_version(read, headers, i, file)
    places = _Places(headers, base, next_base)
    candidates = {i: places.find_shifts(read, i) for i in places.find_doubtful_offsets()}
    for i, shift, is_certain in _choose(candidates, places.has_no_other_gaps):
        around = places.find_neighbors(i)
        yield from _repair_field(read, headers, i, "last_offset", shift, is_certain, around, file)
    candidates = {i: places.find_epoch_shifts(read, i) for i in places.find_doubtful_epochs()}
    for i, shift, is_certain in _choose(candidates, lambda i: False):
        around = Neighbors()
        yield from _repair_field(read, headers, i, "leader_epoch", shift, is_certain, around, file)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """What may be added to a field of a batch so that it fits its neighbors.

    Attributes:
        shifts: The numbers that may be added. Several make the field ambiguous.
        is_exact: Whether the neighbors leave this number only.
        has_flip: Whether one flipped bit of the field explains the contradiction, also one that is not among ``shifts``.
    """

    shifts: Sequence[int] = ()
    is_exact: bool = False
    has_flip: bool = False


def _choose(
    candidates: Mapping[int, _Candidates], prefers_exact: Callable[[int], bool]
) -> Iterator[tuple[int, int, bool]]:
    """Yield index, shift and certainty of each batch with a single candidate that no neighbor
    rivals. A batch beside it is a rival if another value of its field would end the contradiction
    too. An exact candidate yields to an exact rival, and to one of a single flipped bit unless it is
    one itself and ``prefers_exact`` returns True for its index; it is certain without such rivals.
    """
    for i, found in candidates.items():
        if len(found.shifts) != 1:
            continue
        beside = [candidates[k] for k in (i - 1, i + 1) if k in candidates]
        rivals = [one for one in beside if one.shifts or one.has_flip]
        if rivals and (not found.is_exact or any(one.is_exact for one in rivals)):
            continue
        is_alone = not any(one.has_flip for one in rivals)
        if is_alone or (found.has_flip and prefers_exact(i)):
            yield i, found.shifts[0], found.is_exact and is_alone


def _repair_version(read: Read, headers: Headers, i: int, file: str) -> Iterator[Repair]:
    """Yield the repair of the version byte of the batch with index ``i``, to the version that it is
    read as, if one byte changes then and the batch decodes whole under ``strict``; it is certain.
    Else yield nothing.
    """
    position, size = int(headers.position[i]), int(headers.size[i])
    data = read(position, size)
    at = LOG_ENTRY.offset
    text = LOG_ENTRY.codec.write(version_of(int(headers.magic[i])), None, Session(strict=False))
    changed = data[:at] + text + data[at + len(text) :]
    layout = LOG_ENTRY.cases[version_of(int(headers.magic[i]))]
    with suppress(NoRepairError):
        width = find_seal(layout, size).crc.width
        yield from _build_repair(
            data, changed, position, LOG_ENTRY.by, len(VERSIONS) / 2**width, True, Neighbors(), file
        )


def _repair_field(
    read: Read,
    headers: Headers,
    i: int,
    column: str,
    shift: int,
    is_certain: bool,
    around: Neighbors,
    file: str,
) -> Iterator[Repair]:
    """Yield the repair that adds ``shift`` to the field of the batch with index ``i`` that a column
    is computed from, and that no checksum covers. ``is_certain`` counts only if one bit changes.
    Yield nothing if more than one byte changes, or the batch does not decode then and fit
    ``around``.
    """
    found = _open_field(read, headers, i, column)
    if found is None:
        return
    field, start, data = found
    end = start + (field.codec.size or 0)
    value = field.codec.read(Source(data, Session(strict=False), pos=start, end=end), None)
    with suppress(CodecError):
        text = field.codec.write(value + shift, None, Session())
        changed = data[:start] + text + data[end:]
        position = int(headers.position[i])
        yield from _build_repair(
            data, changed, position, field.name, None, is_certain, around, file
        )


def _build_repair(
    data: bytes,
    changed: bytes,
    position: int,
    name: str,
    probability: float | None,
    is_certain: bool,
    around: Neighbors,
    file: str,
) -> Iterator[Repair]:
    """Yield the repair that makes ``changed`` of the bytes ``data`` of a batch. Yield nothing if
    more than one byte differs, as after a write to a wrong place, or the batch does not decode
    whole then and fit ``around``. Without a ``probability`` only a single bit is certain.
    """
    pairs = enumerate(zip(data, changed, strict=True), position)
    edits = tuple(Edit(byte, a, b) for byte, (a, b) in pairs if a != b)
    batch = decode_whole(changed, position, file, around) if len(edits) == 1 else None
    if batch is None:
        return
    bits = (edits[0].old ^ edits[0].new).bit_count()
    noun = "one bit" if bits == 1 else "several bits of one byte"
    yield Repair(
        position,
        len(data),
        edits,
        f"{noun} at byte {edits[0].byte}, in {name}",
        probability,
        is_certain and (bits == 1 or probability is not None),
        *offsets_of_batch(batch),
        len(batch.records),
        batch.is_control,
    )


def _open_field(
    read: Read, headers: Headers, i: int, column: str
) -> tuple[Field, int, bytes] | None:
    """Return the only field of the batch with index ``i`` that a column of the view batches is
    computed from and that no checksum covers, where it begins in the batch, and the batch's bytes.
    Return None if there is none, or several.
    """
    layout = LOG_ENTRY.cases[version_of(int(headers.magic[i]))]
    case = next((case for case in BATCHES.cases if case.layout is layout), None)
    if case is None:
        return None
    size = int(headers.size[i])
    try:
        seal = find_seal(layout, size)
    except NoRepairError:
        return None
    paths = [
        path
        for path in case.columns[column].paths
        if path in layout.by_name
        and layout.is_fixed(path)
        and not seal.is_covered(layout.offset_of(path))
    ]
    if len(paths) != 1:
        return None
    data = read(int(headers.position[i]), size)
    return layout.by_name[paths[0]], layout.offset_of(paths[0]), data


class _Places:
    """Offsets and epochs of the batches of a segment beside those of their neighbors in the file."""

    def __init__(self, headers: Headers, base: int | None, next_base: int | None) -> None:
        self._headers = headers
        self._base, self._next_base = base, next_base

    def find_doubtful_offsets(self) -> list[int]:
        """Return the indexes of batches whose offsets do not lie between those of their neighbors in
        the file, or not in the segment. Leave out a batch if another one has its offsets and size.
        Return ``[]`` if there are more than MAX_DOUBTFUL, or if all offsets ascend in the segment.
        """
        headers = self._headers
        outside = find_outside_segment(headers.first, headers.last, self._base, self._next_base)
        if bool(find_ascending(headers.first, headers.last, outside).all()):
            return []
        touches = np.zeros(len(headers), np.bool_)
        meets = headers.first[1:] <= headers.last[:-1]
        touches[1:] |= meets
        touches[:-1] |= meets
        found = np.flatnonzero(outside | touches | (headers.last < headers.first)).tolist()
        return [i for i in found if not self._has_copy(i)] if len(found) <= MAX_DOUBTFUL else []

    def _has_copy(self, i: int) -> bool:
        """Return whether another batch has the offsets and the size of a batch: then bytes were
        written to a wrong place, and no bit was flipped.
        """
        headers = self._headers
        same = (headers.first == headers.first[i]) & (headers.last == headers.last[i])
        return int((same & (headers.size == headers.size[i])).sum()) > 1

    def find_neighbors(self, i: int) -> Neighbors:
        """Return the last offset before the batch ``i`` and the first one after it, by the batches
        beside it in the file; for the first and the last batch by the names of the segment and of
        the next one (None: unknown).
        """
        headers = self._headers
        after = None if self._base is None else self._base - 1
        after = int(headers.last[i - 1]) if i else after
        before = int(headers.first[i + 1]) if i + 1 < len(headers) else self._next_base
        return Neighbors(after, before)

    def find_shifts(self, read: Read, i: int) -> _Candidates:
        """Return what may be added to the offsets of the batch ``i`` so that they fit between its
        neighbors. It is exact if the batch then fills the offsets between them. Else the numbers
        flip one bit of the stored offset, or let it follow the batch before; if no offset after it
        is known, the number that does both.
        """
        headers, around = self._headers, self.find_neighbors(i)
        first, last = int(headers.first[i]), int(headers.last[i])
        flips = _list_flips(read, headers, i, "last_offset")
        end = around.before
        if end is None and self._base is not None:
            end = self._base + MAX_RELATIVE + 1
        shift = None if around.after is None else around.after + 1 - first
        if shift and last + shift + 1 == around.before:
            return _Candidates((shift,), True, shift in flips)
        fitting = [
            added
            for added in sorted({*flips, *((shift,) if shift else ())})
            if first + added >= 0
            and (around.after is None or around.after < first + added)
            and (end is None or last + added < end)
        ]
        has_flip = not set(fitting).isdisjoint(flips)
        if around.before is None:  # then most bits fit
            fitting = [added for added in fitting if added == shift and added in flips]
        return _Candidates(fitting, False, has_flip)

    def has_no_other_gaps(self, i: int) -> bool:
        """Return whether each batch after another one continues its offsets, apart from the batch
        ``i`` and those beside it, of which one may be wrong. If no others are left, return whether
        the segment is the last one, which brokers do not compact.
        """
        headers = self._headers
        follows = headers.first[1:] == headers.last[:-1] + 1
        others = np.append(follows[: max(i - 2, 0)], follows[i + 2 :])
        return bool(others.all()) if len(others) else self._next_base is None

    def find_doubtful_epochs(self) -> list[int]:
        """Return the indexes of batches whose leader epoch is below that of the batch before or above
        that of the batch after, if those two do not descend themselves. Leave out batches whose
        version has no leader epochs. Return ``[]`` if there are more than MAX_DOUBTFUL.
        """
        headers = self._headers
        epochs = headers.leader_epoch
        if not bool((epochs[1:] < epochs[:-1]).any()):
            return []
        falls = np.zeros(len(headers), np.bool_)
        falls[1:] |= epochs[1:] < epochs[:-1]
        falls[:-1] |= epochs[1:] < epochs[:-1]
        rows = np.flatnonzero(falls & have_field(headers.magic, "leader_epoch")).tolist()
        return [i for i in rows if self._is_bounded(i)] if len(rows) <= MAX_DOUBTFUL else []

    def _is_bounded(self, i: int) -> bool:
        """Return whether the leader epochs around a batch do not descend."""
        low, high = self._epochs_around(i)
        return low is None or high is None or low <= high

    def _epochs_around(self, i: int) -> tuple[int | None, int | None]:
        """Return the leader epochs of the batches before and after the batch ``i`` in the file;
        None for one that does not exist, or whose version has no epochs.
        """
        headers = self._headers
        return tuple(  # type: ignore[return-value]
            int(headers.leader_epoch[k])
            if 0 <= k < len(headers) and have_field(headers.magic[k : k + 1], "leader_epoch")[0]
            else None
            for k in (i - 1, i + 1)
        )

    def find_epoch_shifts(self, read: Read, i: int) -> _Candidates:
        """Return what may be added to the leader epoch of the batch ``i`` so that it fits; ``read``
        returns bytes of the file. It is exact if both neighbors have one epoch (nothing if the
        batch has it too). Else each number flips one bit of the stored epoch so that it fits
        between the neighbors; there is none if a checksum covers the epoch. If only one neighbor
        has an epoch, the number must give that epoch; if neither has one, there is none.
        """
        low, high = self._epochs_around(i)
        epoch = int(self._headers.leader_epoch[i])
        flips = _list_flips(read, self._headers, i, "leader_epoch")
        fitting = [
            shift
            for shift in flips
            if (low is None or low <= epoch + shift) and (high is None or epoch + shift <= high)
        ]
        if low is not None and low == high:
            shifts = (low - epoch,) if low != epoch else ()
            return _Candidates(shifts, True, bool(fitting))
        if low is None or high is None:  # then several bits fit
            near = high if low is None else low
            return _Candidates([s for s in fitting if epoch + s == near], False, bool(fitting))
        return _Candidates(fitting, False, bool(fitting))


def _list_flips(read: Read, headers: Headers, i: int, column: str) -> list[int]:
    """Return what flipping one bit of a header field adds to the column that is computed from it,
    for each bit whose flip leaves a readable field. Return ``[]`` unless the column is computed
    from exactly one field that lies outside of all checksums.
    """
    found = _open_field(read, headers, i, column)
    if found is None:
        return []
    field, start, data = found
    size = field.codec.size or 0
    quiet = Session(strict=False)
    value = field.codec.read(Source(data, quiet, pos=start, end=start + size), None)
    flips = []
    for bit in range(8 * size):
        changed = bytearray(data[start : start + size])
        changed[bit // 8] ^= 1 << bit % 8
        with suppress(CodecError):
            flips.append(field.codec.read(Source(bytes(changed), quiet), None) - value)
    return flips


def find_repairs(
    read: Read,
    headers: Headers,
    lost: Sequence[Lost],
    size: int,
    base: int | None,
    next_base: int | None,
    file: str,
) -> list[Repair | NoRepair]:
    """Return the answers of :func:`repair_range` for each lost range that does not begin inside a
    repaired batch, and of :func:`repair_headers` for valid and repaired batches, in file order; a
    repaired batch can have two. ``base`` and ``next_base`` are the base offsets of the segment and
    the next one (None: no bound); ``size`` is that of the file.
    """
    found: list[Repair | NoRepair] = []
    end = 0
    for one in lost:
        if one.start >= end:
            found += repair_range(read, one, size, file)
        ends = [answer.position + answer.size for answer in found if isinstance(answer, Repair)]
        end = max(ends, default=0)
    repairs = [answer for answer in found if isinstance(answer, Repair)]

    def read_repaired(position: int, n: int) -> bytes:
        return apply_repairs(read(position, n), position, repairs)

    outside = np.ones(len(headers), np.bool_)  # messages inside a repaired batch are no batches
    rows = []
    for repair in repairs:
        outside &= (headers.position < repair.position) | (
            headers.position >= repair.position + repair.size
        )
        data = read_repaired(repair.position, repair.size)
        batch = decode_whole(data, repair.position, file, Neighbors())
        rows += [] if batch is None else [header_row(batch)]
    whole = concatenate_headers([headers.take(outside), headers_from_rows(rows)])
    whole = whole.take(np.argsort(whole.position))
    found += repair_headers(read_repaired, whole, base, next_base, file)
    return sorted(found, key=lambda answer: answer.position)


def apply_repairs(data: bytes, position: int, repairs: Iterable[Repair]) -> bytes:
    """Return a copy of ``data``, the bytes of a file from ``position`` on, after the edits of
    ``repairs`` to bytes in it. Ignore edits outside of it; old bytes are not compared.
    """
    edits = [edit for repair in repairs for edit in repair.edits]
    changed = bytearray(data)
    for edit in edits:
        if position <= edit.byte < position + len(data):
            changed[edit.byte - position] = edit.new
    return bytes(changed)
