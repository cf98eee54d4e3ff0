"""Offset and time indexes, beside the batches that they point to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codecgen.runtime.arrow.structured_dtype import structured
from kafka_codecs import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY
from kafka_log.inspect.check.base import Check, are, only_zeros
from kafka_log.inspect.check.finding import Finding, Severity
from kafka_log.inspect.check.missing_batches import Cut, find_cuts
from kafka_log.inspect.check.segment_scan import Walked
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.placement import in_order
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.regular_files import open_regular
from kafka_log.segment.versions import have

OFFSETS = structured(OFFSET_INDEX_ENTRY)
TIMES = structured(TIME_INDEX_ENTRY)

REBUILD = "Stop the broker, move the .index of this segment away, and start it: it makes all indexes of the segment anew."
"""A broker recovers a segment that has no .index; of the other indexes it does not ask whether they are there."""
OPEN = "Nothing: a broker that truncates its log leaves such entries behind, and makes the index anew when it was not stopped in order."


class IndexCheck(Check):
    """Entries of .index and .timeindex that do not lead a broker to the right batch.

    A file of zeros, or with zeros at its end, is one that a broker made longer in advance; in the active segment it is normal.
    Such a file is open: the broker itself knows how many of its entries count, and those after them may be of batches that it has
    truncated. What is wrong there is a note.
    """

    suffix = ""
    kind: Any = None
    value = ""
    """The field of an entry that is not its offset."""
    may_repeat = False
    """Whether entries may have the same offset."""
    is_open = False
    reached = -1
    """The last offset of the segment before."""

    def segment(self, walked: Walked) -> Iterable[Finding]:
        segment = walked.segment
        # Where the segment before comes as far as this one, its name may be wrong, and offsets are relative to it.
        is_doubtful = segment.base_offset <= self.reached <= segment.base_offset + MAX_RELATIVE
        self.reached = int(walked.headers.last[-1]) if len(walked.headers) else -1
        if not segment.has_canonical_name or is_doubtful or not _names_agree(walked):
            return
        path = segment.path.with_suffix(self.suffix)
        # An entry is made for a batch at most, and one more when a segment is closed.
        found = read_index(path, self.kind, 2 * len(walked.headers) + 1024)
        name = self.suffix[1:]
        if found is None:
            if walked.size:
                yield self._note_missing(path)
            return
        found = self.used(walked, found)
        size = self.kind.itemsize
        self.is_open = bool(
            walked.is_active and found.zeros and not self.context.broker.was_clean_shutdown
        )
        if found.odd:
            yield self._wrong(
                path,
                f"{name}_length",
                f"The file ends with {are(found.odd, 'byte')} of an entry: all entries have {size} bytes.",
                found.zeros + len(found.entries) * size,
                severity="warning",
            )
        if found.zeros and not walked.is_active:
            yield self._wrong(
                path,
                f"{name}_zero_tail",
                f"{are(found.zeros, 'byte')} of zeros end the index of a segment that is no longer written to.",
                len(found.entries) * size,
                severity="warning",
            )
        if found.is_long:
            yield self._wrong(
                path,
                f"{name}_too_long",
                "There are more entries than batches.",
                len(found.entries) * size,
            )
        yield from self.entries(walked, path, found)

    def used(self, walked: Walked, found: IndexFile) -> IndexFile:
        """What of a file are entries, where these may be zeros too."""
        return found

    def entries(self, walked: Walked, path: Path, found: IndexFile) -> Iterator[Finding]:
        """What is wrong with the entries: beside the batches or, where these say nothing, in their order."""
        entries, base = found.entries, walked.segment.base_offset
        if self.context.may_grow(walked):
            inside = np.flatnonzero(~self.beyond(walked, entries))
            entries = entries[: inside[-1] + 1 if len(inside) else 0]
        if not len(entries) or not self.is_comparable(walked):
            return
        offsets = entries["relative_offset"].astype(np.int64) + base
        values = entries[self.value].astype(np.int64)
        wrong = False
        for finding in self.against_batches(walked, path, entries, offsets, values):
            wrong = True
            yield finding
        if not wrong:
            yield from self.order(path, offsets, values)

    def beyond(self, walked: Walked, entries: Any) -> Any:
        """Tell which entries are about bytes after those that were read."""
        raise NotImplementedError

    def is_comparable(self, walked: Walked) -> bool:
        """Whether the batches say anything about entries."""
        return True

    def against_batches(
        self, walked: Walked, path: Path, entries: Any, offsets: Any, values: Any
    ) -> Iterator[Finding]:
        """What is wrong with the entries beside the batches."""
        raise NotImplementedError

    def _note_missing(self, path: Path) -> Finding:
        return self.context.finding(
            "note",
            f"{self.suffix[1:]}_missing",
            path,
            "The segment has no such index.",
            "Nothing: the broker makes it when it starts.",
        )

    def _wrong(
        self,
        path: Path,
        code: str,
        meaning: str,
        byte: int,
        offset: int | None = None,
        severity: Severity = "error",
    ) -> Finding:
        remedy = OPEN if self.is_open else REBUILD
        if self.is_open:
            severity = "note"
        return self.context.finding(
            severity, code, path, meaning, remedy, byte=byte, first_offset=offset
        )

    def order(self, path: Path, offsets: Any, values: Any) -> Iterator[Finding]:
        """The first entry that does not rise, in the value that a broker looks for or in the other one."""
        none = np.zeros(len(values), np.bool_)
        kept = in_order(values, values, none)
        if kept.all() and not self.may_repeat:
            kept = in_order(offsets, offsets, none)
        elif kept.all():
            kept = np.append(True, offsets[1:] >= offsets[:-1])
        if kept.all():
            return
        i = int(np.argmin(kept))
        yield self._wrong(
            path,
            f"{self.suffix[1:]}_order",
            "The entries do not rise here, so a broker finds the wrong ones.",
            i * self.kind.itemsize,
            int(offsets[i]),
        )

    def first_of(
        self, wrong: Any, code: str, path: Path, base: int, found: Any, what: str
    ) -> Iterator[Finding]:
        """One finding for all entries that are wrong in the same way, at the first of them."""
        count = int(np.count_nonzero(wrong))
        if not count:
            return
        i = int(np.argmax(wrong))
        more = f" ({are(count - 1, 'more entry', 'more entries')} like it)" if count > 1 else ""
        offset = base + int(found["relative_offset"][i])
        yield self._wrong(
            path,
            code,
            f"The entry for offset {offset} {what}{more}.",
            i * self.kind.itemsize,
            offset,
        )


class OffsetIndexCheck(IndexCheck):
    """The entries of .index: each has the position of a batch, and an offset from which on reading may begin there."""

    suffix = ".index"
    kind = OFFSETS
    value = "position"

    def beyond(self, walked: Walked, entries: Any) -> Any:
        return entries["position"].astype(np.int64) >= walked.size

    def against_batches(
        self, walked: Walked, path: Path, entries: Any, offsets: Any, values: Any
    ) -> Iterator[Finding]:
        positions = values
        headers, base = walked.headers, walked.segment.base_offset
        is_start = np.isin(positions, headers.position)
        lost = np.zeros(len(entries), np.bool_)
        for run in walked.lost:
            lost |= (run.start <= positions) & (positions < run.end)
        no_start = ~is_start & ~lost
        low = other = np.zeros(len(entries), np.bool_)
        if len(headers):
            at = np.searchsorted(headers.position, positions)
            at = np.minimum(at, len(headers) - 1)
            is_start &= walked.placed[at]  # what is wrong with the others is a finding of its own
            low = is_start & (offsets < headers.first[at])
            other = is_start & ~low & ~self._known(walked, offsets, at)
        if (no_start | low | other).any():
            cuts = self._cuts(walked, offsets, positions)
            if cuts:
                told = {offsets.start for offsets in self.context.missing}
                yield from (self._cut_out(walked, cut) for cut in cuts if cut.first not in told)
                return
        judged = self._judged(walked, positions)
        args = (path, base, entries)
        what = "has a position where no batch begins"
        yield from self.first_of(no_start & judged, "index_position", *args, what)
        what = "has the position of a batch with higher offsets"
        yield from self.first_of(low & judged, "index_offset", *args, what)
        what = "is not the last one of a batch that begins there or follows"
        yield from self.first_of(other & judged, "index_offset", *args, what)

    def _cuts(self, walked: Walked, offsets: Any, positions: Any) -> list[Cut]:
        """Return the places where batches were cut out, if these explain the index. Other damage has findings of its own."""
        headers = walked.headers
        is_sound = not walked.lost and bool(walked.placed.all())
        if not (is_sound and have(headers.magic, "record_count").all()):
            return []
        base, end, next_base = walked.segment.base_offset, walked.size, walked.next_base
        return find_cuts(headers, base, end, next_base, offsets, positions)

    def _cut_out(self, walked: Walked, cut: Cut) -> Finding:
        self.context.missing.append(range(cut.first, cut.last + 1))
        return self.context.finding(
            "error",
            "offsets_missing",
            walked.segment.path,
            "Offsets are not there: whole batches were cut out of the file here. Entries of the .index still lead to where batches lay before.",
            "Copy the partition from another replica, or look for the file in a backup.",
            byte=cut.position,
            first_offset=cut.first,
            last_offset=cut.last,
            records=cut.last - cut.first + 1,
        )

    def _judged(self, walked: Walked, positions: Any) -> Any:
        """Return a mask of the entries that are judged. Where bytes were put into a segment, cut out of it, or have changed places, entries
        behind that place are wrong, and the place has a finding."""
        places = [run.start for run in walked.lost]
        places += walked.headers.position[~walked.placed].tolist()
        return positions < min(places, default=MAX_OFFSET)

    def _known(self, walked: Walked, offsets: Any, at: Any) -> Any:
        """Whether offsets are those of batches: the last one of the batch, or of those that were appended with it; older
        brokers wrote the first one when they recovered a segment. Compacted messages of the older formats keep more
        in their index than is left of them."""
        headers = walked.headers
        if not have(headers.magic, "record_count").all() or walked.lost:
            limit = walked.next_base
            if limit is not None:
                return offsets < limit
            if any(run.end == walked.size for run in walked.lost):
                return np.ones(len(offsets), np.bool_)  # what is lost may have had them
            return offsets <= headers.last.max()
        return (headers.first[at] == offsets) | np.isin(offsets, headers.last)


class TimeIndexCheck(IndexCheck):
    """The entries of .timeindex: each has the largest timestamp up to an offset."""

    suffix = ".timeindex"
    kind = TIMES
    value = "timestamp"
    may_repeat = True

    def used(self, walked: Walked, found: IndexFile) -> IndexFile:
        """The first entry of a segment is all zeros where its first batch has the first offset, and no time after that of 1970."""
        headers, base = walked.headers, walked.segment.base_offset
        if len(found.entries) or found.zeros < self.kind.itemsize or not len(headers):
            return found
        is_entry = headers.first[0] <= base <= headers.last[0] and headers.max_timestamp[0] == 0
        return found.with_first() if is_entry else found

    def beyond(self, walked: Walked, entries: Any) -> Any:
        end = walked.headers.last.max(initial=walked.segment.base_offset - 1)
        return entries["relative_offset"].astype(np.int64) + walked.segment.base_offset > end

    def is_comparable(self, walked: Walked) -> bool:
        return bool(walked.placed.any())

    def against_batches(
        self, walked: Walked, path: Path, entries: Any, offsets: Any, values: Any
    ) -> Iterator[Finding]:
        times = values
        headers, base = walked.headers.take(walked.placed), walked.segment.base_offset
        args = (path, base, entries)
        at = np.searchsorted(headers.last, offsets)
        beyond = at >= len(headers)
        cut = len(headers) < len(walked.headers)
        cut |= any(run.end == walked.size for run in walked.lost)
        starts = [offsets.start for offsets in self.context.missing]
        cut |= int(headers.last[-1]) + 1 in starts
        if not cut:
            yield from self.first_of(
                beyond, "timeindex_offset", *args, "is after the last offset of the segment"
            )
        at = np.minimum(at, len(headers) - 1)
        inside = headers.first[at] <= offsets
        largest = np.append(-1, np.maximum.accumulate(headers.max_timestamp))[at + inside]
        cuts = np.searchsorted(headers.first, [at for at in starts if at >= base])
        places = [run.start for run in walked.lost]
        places += headers.position[cuts[cuts < len(headers)]].tolist()
        start = min(places, default=walked.size)
        # What was lost, was cut out, or lies elsewhere, may have had a larger one.
        whole = inside & (headers.position[at] < start) & bool(walked.placed.all())
        wrong = ~beyond & ((times < largest) | (whole & (times > largest)))
        yield from self.first_of(
            wrong, "timeindex_timestamp", *args, "has a timestamp that is not the largest up to it"
        )


def _names_agree(walked: Walked) -> bool:
    """Whether offsets are relative to the one in the name, as far as the batches say."""
    headers, base = walked.headers, walked.segment.base_offset
    return base <= MAX_OFFSET - MAX_RELATIVE and (
        not len(headers) or bool(headers.first[0] >= base)
    )


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The entries of an index file up to its tail of zeros. Sizes are in bytes.

    ``zeros`` are the bytes of whole entries in the tail, ``odd`` those after the last whole entry. ``is_long`` is whether there are
    more entries than are read.
    """

    entries: Any
    zeros: int
    odd: int
    is_long: bool

    def with_first(self) -> IndexFile:
        """The same where the first entry of the zeros is one that counts."""
        first = np.zeros(1, self.entries.dtype)
        return IndexFile(first, self.zeros - first.nbytes, self.odd, self.is_long)


def read_index(path: Path, kind: Any, most: int) -> IndexFile | None:
    """Read at most ``most`` entries; None when there is no such file. Raises OSError."""
    try:
        with open_regular(path, -1) as file:
            size = file.seek(0, 2)
            file.seek(0)
            data = file.read(min(size, most * kind.itemsize))
            whole = size // kind.itemsize * kind.itemsize
            is_long = len(data) < whole and not only_zeros(file, len(data), whole)
    except FileNotFoundError:
        return None
    found = np.frombuffer(data, kind, len(data) // kind.itemsize)
    used = np.flatnonzero(np.any([found[name] != 0 for name in kind.names], axis=0))
    count = int(used[-1]) + 1 if len(used) else 0
    zeros = 0 if is_long else whole - count * kind.itemsize
    return IndexFile(found[:count], zeros, size - whole, is_long)
