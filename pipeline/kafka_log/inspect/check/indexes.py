"""Checks of offset and time indexes against the batches that their entries point to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codecgen.runtime.arrow.structured_dtype import structured
from codecgen.runtime.nouns import count_noun
from kafka_codecs import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY
from kafka_log.inspect.check.base import Check
from kafka_log.inspect.check.catalog import CATALOG, REBUILD, Severity
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.missing_batches import Cut, find_cuts
from kafka_log.inspect.check.segment_scan import ScannedSegment, is_zeros
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.placement import find_ascending
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.regular_files import open_regular
from kafka_log.segment.versions import have_field

OFFSETS = structured(OFFSET_INDEX_ENTRY)
TIMES = structured(TIME_INDEX_ENTRY)

OPEN = "Nothing to do: a broker that truncates its log leaves such entries behind. It rebuilds the index when it starts without a clean shutdown."


class IndexCheck(Check):
    """Base class: finds entries of an index that do not lead a broker to the right batch.

    Brokers preallocate the index of the active segment, so zeros at its end are normal. Only a running broker knows
    how many entries of such an open index count: entries after these may point to truncated batches. Findings about an
    open index are therefore notes.
    """

    suffix = ""
    kind: Any = None
    """NumPy type of an entry."""
    value = ""
    """Name of the entry field that is not the offset."""
    may_repeat = False
    """Whether several entries may have the same offset."""
    is_open = False
    is_long = False
    """Whether the index has more entries than were read."""
    reached = -1
    """Last offset of the segment before."""

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        segment = scanned.segment
        # If the segment before overlaps this one, the name of this one may be wrong. Entries are relative to it.
        is_doubtful = segment.base_offset <= self.reached <= segment.base_offset + MAX_RELATIVE
        self.reached = int(scanned.headers.last[-1]) if len(scanned.headers) else -1
        if not segment.has_canonical_name or is_doubtful or not _is_named_after_first(scanned):
            return
        path = segment.path.with_suffix(self.suffix)
        # A broker adds at most one entry for a batch, and one when it rolls the segment.
        found = read_index(path, self.kind, 2 * len(scanned.headers) + 1024)
        name = self.suffix[1:]
        if found is None:
            if scanned.size:
                yield self._missing_index(scanned, path)
            return
        found = self.count_zero_entries(scanned, found)
        size = self.kind.itemsize
        self.is_open = bool(
            scanned.is_active and found.zeros and not self.context.broker.was_clean_shutdown
        )
        if found.odd:
            yield self._entry_finding(
                path,
                f"{name}_length",
                f"The file ends with {count_noun(found.odd, 'byte')} of an incomplete entry: entries have {size} bytes. A broker may rebuild the index when it starts.",
                found.zeros + len(found.entries) * size,
            )
        if found.zeros and not scanned.is_active:
            yield self._entry_finding(
                path,
                f"{name}_zero_tail",
                f"The index ends with {count_noun(found.zeros, 'byte')} of zeros, from this byte on. Brokers trim an index when they roll its segment, and this segment is rolled.",
                len(found.entries) * size,
            )
        self.is_long = found.is_long
        if found.is_long:
            yield self._entry_finding(
                path,
                f"{name}_too_long",
                "The index has more entries than its segment has batches, so some of them are wrong. Entries from this byte on were not checked.",
                len(found.entries) * size,
            )
        yield from self.check_entries(scanned, path, found)

    def count_zero_entries(self, scanned: ScannedSegment, found: IndexFile) -> IndexFile:
        """Return the index with zeros that are entries counted as entries. The base class returns
        ``found``.
        """
        return found

    def check_entries(
        self, scanned: ScannedSegment, path: Path, found: IndexFile
    ) -> Iterator[Finding]:
        """Yield the findings of :meth:`compare_with_batches`; only if there are none, that of
        :meth:`check_order`. Yield nothing if there are no entries, or :meth:`is_comparable` is
        False (a time index without a batch in order). If a broker may append to the segment, the
        entries after the last one that points to bytes or offsets that were read are ignored.
        """
        entries, base = found.entries, scanned.segment.base_offset
        if self.context.may_grow(scanned):
            inside = np.flatnonzero(~self.find_unread(scanned, entries))
            entries = entries[: inside[-1] + 1 if len(inside) else 0]
        if not len(entries) or not self.is_comparable(scanned):
            return
        offsets = entries["relative_offset"].astype(np.int64) + base
        values = entries[self.value].astype(np.int64)
        wrong = False
        for finding in self.compare_with_batches(scanned, path, entries, offsets, values):
            wrong = True
            yield finding
        if not wrong:
            yield from self.check_order(path, offsets, values)

    def find_unread(self, scanned: ScannedSegment, entries: Any) -> Any:
        """Return a mask of the index entries that point after the last byte or offset that was read
        of the segment. Raise NotImplementedError: subclasses implement it.
        """
        raise NotImplementedError

    def is_comparable(self, scanned: ScannedSegment) -> bool:
        """Return whether the batches of the segment can be compared with entries."""
        return True

    def compare_with_batches(
        self, scanned: ScannedSegment, path: Path, entries: Any, offsets: Any, values: Any
    ) -> Iterator[Finding]:
        """Yield findings about index entries that contradict the batches of their segment.
        ``offsets`` are absolute; ``values`` are byte positions or timestamps. Raise
        NotImplementedError: subclasses implement it.
        """
        raise NotImplementedError

    def _missing_index(self, scanned: ScannedSegment, path: Path) -> Finding:
        """Return the finding about a segment without this index, which the caller has found
        missing. It is an error for the offset index of a segment with damage (not only an
        incomplete tail), because a broker truncates the segment when it builds the index. Else it
        is a note.
        """
        code, meaning = f"{self.suffix[1:]}_missing", f"The segment has no {self.suffix} file"
        damage = [run for run in scanned.lost if scanned.tail_kind_of(run) is None]
        if not damage or "error" not in CATALOG[code].severities:
            meaning, remedy = f"{meaning}{self.explain_missing(path)}.", self.choose_remedy(path)
            return self.context.finding(code, path, meaning, remedy=remedy)
        start = damage[0].start
        return self.context.finding(
            code,
            path,
            f"{meaning}, and is damaged at byte {start}. When the broker starts, it builds the index and truncates the segment there.",
            severity="error",
            remedy=f"Do not start the broker with the damaged segment. {CATALOG['batch_checksum'].remedy}",
            first_offset=None if damage[0].after_offset is None else damage[0].after_offset + 1,
        )

    def explain_missing(self, path: Path) -> str:
        """Return the end of a sentence that says that the index ``path`` is missing: empty."""
        return ""

    def choose_remedy(self, path: Path) -> str | None:
        """Return the remedy for the missing index ``path``; None: that of the catalog."""
        return None

    def _entry_finding(
        self, path: Path, code: str, meaning: str, byte: int, offset: int | None = None
    ) -> Finding:
        """Return the finding ``code`` with the sentence ``meaning`` at byte ``byte`` of an index
        file; ``offset`` (None: unknown) is its ``first_offset``. If the index is open (active
        segment, zeros at its end, no clean shutdown), it is a note that needs no action; else it
        has severity and remedy of the catalog. The caller has found the entry wrong.
        """
        severity: Severity | None = "note" if self.is_open else None
        remedy = OPEN if self.is_open else None
        return self.context.finding(
            code, path, meaning, severity=severity, remedy=remedy, byte=byte, first_offset=offset
        )

    def check_order(self, path: Path, offsets: Any, values: Any) -> Iterator[Finding]:
        """Yield one ``index_order`` or ``timeindex_order`` finding if entries are out of order.
        Their positions or timestamps must rise strictly, and their offsets too (with ``may_repeat``
        offsets may repeat). The finding lies at the first entry that has to be left out so that the
        others rise; it is a note if the index is open. Yield nothing if all rise.
        """
        none = np.zeros(len(values), np.bool_)
        kept = find_ascending(values, values, none)
        if kept.all() and not self.may_repeat:
            kept = find_ascending(offsets, offsets, none)
        elif kept.all():
            kept = np.append(True, offsets[1:] >= offsets[:-1])
        if kept.all():
            return
        i = int(np.argmin(kept))
        yield self._entry_finding(
            path,
            f"{self.suffix[1:]}_order",
            f"The entry for offset {offsets[i]} is out of order. Brokers search the index by binary search, and find wrong entries.",
            i * self.kind.itemsize,
            int(offsets[i]),
        )

    def report_first(
        self,
        wrong: Any,
        code: str,
        path: Path,
        base: int,
        found: Any,
        what: str | Callable[[int], str],
        consequence: str = "",
    ) -> Iterator[Finding]:
        """Yield one finding ``code`` for all entries of the mask ``wrong``, at the first of them;
        yield nothing if none is wrong. It is a note if the index is open (active segment, zeros at
        its end, no clean shutdown), else it has the severity of the catalog. Its sentence is "The
        entry for offset N", then ``what`` (or what it returns for the index of the entry), how many
        more entries are like it ("at least" if the index has more entries than were read), and
        ``consequence``, which begins with a space. Offsets in ``found`` are relative to ``base``.
        """
        count = int(np.count_nonzero(wrong))
        if not count:
            return
        i = int(np.argmax(wrong))
        more = f"{count_noun(count - 1, 'more entry', 'more entries')} like it"
        more = f" ({'at least ' if self.is_long else ''}{more})" if count > 1 else ""
        offset = base + int(found["relative_offset"][i])
        said = what if isinstance(what, str) else what(i)
        yield self._entry_finding(
            path,
            code,
            f"The entry for offset {offset} {said}{more}.{consequence}",
            i * self.kind.itemsize,
            offset,
        )


class OffsetIndexCheck(IndexCheck):
    """Finds .index entries with a wrong position or offset.

    An entry has the position of a batch, and the last offset of that batch or of one that was appended with it.
    """

    suffix = ".index"
    kind = OFFSETS
    value = "position"

    def find_unread(self, scanned: ScannedSegment, entries: Any) -> Any:
        return entries["position"].astype(np.int64) >= scanned.size

    def compare_with_batches(
        self, scanned: ScannedSegment, path: Path, entries: Any, offsets: Any, values: Any
    ) -> Iterator[Finding]:
        positions = values
        headers, base = scanned.headers, scanned.segment.base_offset
        is_start = np.isin(positions, headers.position)
        lost = np.zeros(len(entries), np.bool_)
        for run in scanned.lost:
            lost |= (run.start <= positions) & (positions < run.end)
        no_start = ~is_start & ~lost
        at = low = other = np.zeros(len(entries), np.bool_)
        if len(headers):
            at = np.searchsorted(headers.position, positions)
            at = np.minimum(at, len(headers) - 1)
            is_start &= scanned.placed[at]  # misplaced batches have findings of their own
            low = is_start & (offsets < headers.first[at])
            other = is_start & ~low & ~self._has_known_offset(scanned, offsets, at)
        if (no_start | low | other).any():
            cuts = self._find_cuts(scanned, offsets, positions)
            if cuts:
                told = {offsets.start for offsets in self.context.missing}
                yield from (
                    self._cut_finding(scanned, cut) for cut in cuts if cut.first not in told
                )
                return
        judged = self._before_damage(scanned, positions)
        args = (path, base, entries)
        fails = " A broker that reads from there fails."
        yield from self.report_first(
            no_start & judged,
            "index_position",
            *args,
            lambda i: f"points to byte {positions[i]} of the segment, where no batch begins",
            fails,
        )

        def describe_low(i: int) -> str:
            return f"points to byte {positions[i]} of the segment, where the batch begins with offset {headers.first[at[i]]}"

        skips = " A broker may skip records."
        yield from self.report_first(low & judged, "index_offset", *args, describe_low, skips)

        def describe_other(i: int) -> str:
            return (
                f"points to byte {positions[i]} of the segment, where the batch ends with offset {headers.last[at[i]]}, but an entry must have the last"
                " offset of its batch or of a later one"
            )

        finds = " A broker finds the wrong batch for some offsets."
        yield from self.report_first(other & judged, "index_offset", *args, describe_other, finds)

    def _find_cuts(self, scanned: ScannedSegment, offsets: Any, positions: Any) -> list[Cut]:
        """Return where batches were cut out of the segment, if that explains all wrong entries of
        its offset index, given by ``offsets`` and ``positions``. Return ``[]`` otherwise, also if
        no entry is wrong, or the segment has lost ranges, batches out of order or legacy messages.
        """
        headers = scanned.headers
        is_sound = not scanned.lost and bool(scanned.placed.all())
        if not (is_sound and have_field(headers.magic, "record_count").all()):
            return []
        base, end, next_base = scanned.segment.base_offset, scanned.size, scanned.next_base
        return find_cuts(headers, base, end, next_base, offsets, positions)

    def _cut_finding(self, scanned: ScannedSegment, cut: Cut) -> Finding:
        """Return the ``offsets_missing`` error about batches that were cut out, at the byte of the
        cut. Add their offsets to ``context.missing``, so that other checks do not report them
        again.
        """
        self.context.missing.append(range(cut.first, cut.last + 1))
        return self.context.finding(
            "offsets_missing",
            scanned.segment.path,
            "Offsets are missing: whole batches were cut out of the file at this byte. Entries of the .index still point to the old positions.",
            byte=cut.position,
            first_offset=cut.first,
            last_offset=cut.last,
            records=cut.last - cut.first + 1,
        )

    def _before_damage(self, scanned: ScannedSegment, positions: Any) -> Any:
        """Return a mask of the byte positions of entries that lie before the first lost range and
        the first batch out of order; all True if the segment has neither.

        Damage has a finding of its own, and may have moved all batches after it.
        """
        places = [run.start for run in scanned.lost]
        places += scanned.headers.position[~scanned.placed].tolist()
        return positions < min(places, default=MAX_OFFSET)

    def _has_known_offset(self, scanned: ScannedSegment, offsets: Any, at: Any) -> Any:
        """Return a mask of ``offsets``: True for the first offset of the batch at the index in
        ``at``, and for the last offset of any batch. With legacy messages or lost ranges: True for
        any offset below the next segment; without a next one, up to the last offset read, or any at
        all if bytes at the end are lost.

        Brokers write the last offset of the batch or of a batch appended with it. Older brokers wrote the first
        offset when they recovered a segment. Indexes of compacted legacy messages keep offsets of removed ones.
        """
        headers = scanned.headers
        if not have_field(headers.magic, "record_count").all() or scanned.lost:
            limit = scanned.next_base
            if limit is not None:
                return offsets < limit
            if any(run.end == scanned.size for run in scanned.lost):
                return np.ones(len(offsets), np.bool_)  # the lost range may have had them
            return offsets <= headers.last.max()
        return (headers.first[at] == offsets) | np.isin(offsets, headers.last)


class TimeIndexCheck(IndexCheck):
    """Finds .timeindex entries that do not have the largest timestamp up to their offset."""

    suffix = ".timeindex"
    kind = TIMES
    value = "timestamp"
    may_repeat = True

    def explain_missing(self, path: Path) -> str:
        """Return the end of a sentence that says that the time index ``path`` is missing. If the
        offset index exists, it says what a broker did then; if not, that a broker builds both when
        it starts.
        """
        if path.with_suffix(".index").exists():
            return ", but an .index. A broker that was shut down cleanly begins an empty .timeindex: lookups by time begin earlier than they must"
        return " and no .index: a broker builds both when it starts"

    def choose_remedy(self, path: Path) -> str | None:
        """Return the remedy for the missing time index ``path``. If the offset index exists, there
        is nothing to do, or that is moved away so that a broker builds both. If it does not exist,
        return the remedy of ``index_missing`` in the catalog. Never return None.
        """
        if path.with_suffix(".index").exists():
            return f"Nothing to do if lookups by time may begin earlier. To have the .timeindex built: {REBUILD[0].lower()}{REBUILD[1:]}"
        return CATALOG["index_missing"].remedy

    def count_zero_entries(self, scanned: ScannedSegment, found: IndexFile) -> IndexFile:
        """Return ``found`` with its first zeros counted as an entry, if they are the entry of the
        first batch. They are if the index has no other entry, and that batch contains the base
        offset and has the largest timestamp 0. Else return ``found`` unchanged.
        """
        headers, base = scanned.headers, scanned.segment.base_offset
        if len(found.entries) or found.zeros < self.kind.itemsize or not len(headers):
            return found
        is_entry = headers.first[0] <= base <= headers.last[0] and headers.max_timestamp[0] == 0
        return found.with_first_zeros() if is_entry else found

    def find_unread(self, scanned: ScannedSegment, entries: Any) -> Any:
        end = scanned.headers.last.max(initial=scanned.segment.base_offset - 1)
        return entries["relative_offset"].astype(np.int64) + scanned.segment.base_offset > end

    def is_comparable(self, scanned: ScannedSegment) -> bool:
        return bool(scanned.placed.any())

    def compare_with_batches(
        self, scanned: ScannedSegment, path: Path, entries: Any, offsets: Any, values: Any
    ) -> Iterator[Finding]:
        times = values
        headers, base = scanned.headers.take(scanned.placed), scanned.segment.base_offset
        args = (path, base, entries)
        at = np.searchsorted(headers.last, offsets)
        beyond = at >= len(headers)
        cut = len(headers) < len(scanned.headers)
        cut |= any(run.end == scanned.size for run in scanned.lost)
        starts = [offsets.start for offsets in self.context.missing]
        cut |= int(headers.last[-1]) + 1 in starts
        if not cut:
            what = f"is after {headers.last[-1]}, the last offset of the segment"
            returns = " Lookups by time may return a wrong offset."
            yield from self.report_first(beyond, "timeindex_offset", *args, what, returns)
        at = np.minimum(at, len(headers) - 1)
        inside = headers.first[at] <= offsets
        largest = np.append(-1, np.maximum.accumulate(headers.max_timestamp))[at + inside]
        cuts = np.searchsorted(headers.first, [at for at in starts if at >= base])
        places = [run.start for run in scanned.lost]
        places += headers.position[cuts[cuts < len(headers)]].tolist()
        start = min(places, default=scanned.size)
        # Batches that are lost, cut out or misplaced may have had a larger timestamp.
        whole = inside & (headers.position[at] < start) & bool(scanned.placed.all())
        wrong = ~beyond & ((times < largest) | (whole & (times > largest)))
        yield from self.report_first(
            wrong,
            "timeindex_timestamp",
            *args,
            lambda i: (
                f"has the timestamp {times[i]}, but the largest one up to that offset is {largest[i]}"
            ),
            " Lookups by time may return a wrong offset.",
        )


def _is_named_after_first(scanned: ScannedSegment) -> bool:
    """Return whether index entries, whose offsets are relative to the base offset in the name, can
    describe the segment. They can if its first offset is not below the base offset (or it has no
    batch), and the base offset plus MAX_RELATIVE is not above MAX_OFFSET.
    """
    headers, base = scanned.headers, scanned.segment.base_offset
    return base <= MAX_OFFSET - MAX_RELATIVE and (
        not len(headers) or bool(headers.first[0] >= base)
    )


@dataclass(frozen=True, slots=True)
class IndexFile:
    """Entries of an index file, and the bytes after them.

    Attributes:
        entries: Structured array of the entries before the zero tail.
        zeros: Bytes of the zero tail, in whole entries.
        odd: Bytes after the last whole entry.
        is_long: Whether the file has more entries than were read.
    """

    entries: Any
    zeros: int
    odd: int
    is_long: bool

    def with_first_zeros(self) -> IndexFile:
        """Return the index file with the first entry of the zero tail counted as an entry."""
        first = np.zeros(1, self.entries.dtype)
        return IndexFile(first, self.zeros - first.nbytes, self.odd, self.is_long)


def read_index(path: Path, kind: Any, max_entries: int) -> IndexFile | None:
    """Return at most ``max_entries`` entries of an index file, without the zeros after the last
    nonzero one; their values are not checked. ``kind`` is the NumPy type of an entry. ``is_long``
    of the result says that nonzero bytes follow these entries. Return None if the file does not
    exist. Raise OSError if it cannot be read, or is no regular file.
    """
    try:
        with open_regular(path, -1) as file:
            size = file.seek(0, 2)
            file.seek(0)
            data = file.read(min(size, max_entries * kind.itemsize))
            whole = size // kind.itemsize * kind.itemsize
            is_long = len(data) < whole and not is_zeros(file, len(data), whole)
    except FileNotFoundError:
        return None
    found = np.frombuffer(data, kind, len(data) // kind.itemsize)
    used = np.flatnonzero(np.any([found[name] != 0 for name in kind.names], axis=0))
    count = int(used[-1]) + 1 if len(used) else 0
    zeros = 0 if is_long else whole - count * kind.itemsize
    return IndexFile(found[:count], zeros, size - whole, is_long)
