"""What a log directory holds: its partitions, batches, records and keys, in numbers, and as files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from kafka_log.log_directory.opened import Opened, Place, time_of
from kafka_log.logs.partitions import Partition, Segment, select_partitions
from kafka_log.read.arguments import (
    OFFSET_BITS,
    flag,
    number,
    one_of,
    optional_number,
    several,
    text_of,
)
from kafka_log.segment.model import Policy
from kafka_log.segment.places import local_path
from kafka_log.segment.times import Time

if TYPE_CHECKING:
    from kafka_log.inspect.export import Exported, Format
    from kafka_log.inspect.statistics.columns import By
    from kafka_log.inspect.statistics.options import StatOptions
    from kafka_log.read.selection import OtherFilters, RowFilters, Selection


class Contents(Opened):
    """Questions about what partitions hold."""

    def ls(self, *, segments: bool = False) -> pa.Table:
        """What lies there: a row for each partition and state of its segments (:data:`kafka_log.report.listing.PARTITIONS`), or
        (``segments``) for each segment (:data:`kafka_log.report.listing.SEGMENTS`)."""
        from kafka_log.report.listing import partition_table, segment_table

        return (
            segment_table(self.found) if flag("segments", segments) else partition_table(self.found)
        )

    def stat(
        self,
        *,
        by: By | Iterable[By] = "partition",
        top: int | None = None,
        now: Time | None = None,
        **options: Unpack[StatOptions],
    ) -> pa.Table:
        """Numbers of batches and records: a row for each partition, or for each of what ``by`` says: ``topic``, ``partition``,
        ``producer``, ``codec``, ``hour``, or several of these. The columns are those of
        :data:`kafka_log.inspect.statistics.columns.STAT`; by other things the first ones are these, and what has no meaning for several
        partitions is left out.

        Headers and checksums are read, with ``deep`` every record: then counts and timestamps are those of the records that are
        there, and ``ratio`` says how much compression saves. ``top``: the rows with the most bytes only, the largest first.
        ``now`` (a time; None: the present) is what ``future`` counts from. ``offsets``, ``timestamps`` and
        ``producers`` choose batches, as in :class:`~kafka_log.read.selection.Selection`, and ``policy`` says what damage is (default
        ``kafka``); ``engine`` and ``limits`` are as of :class:`~kafka_log.segment.block_reader.BlockReader`. ``on_problem`` is told of
        each problem in a line, ``advance`` of bytes that are done. Raises ValueError for what cannot be asked for.
        """
        from kafka_log.inspect.statistics.options import Asked
        from kafka_log.inspect.statistics.table import checked_by, stat_table

        most = optional_number("top", top, 0)
        asked = Asked.of(time_of(now), **options)
        rows = checked_by(by)
        found = self.found if "partition" in rows else self.refuse_copies(self.found)
        return stat_table(found, rows, top=most, asked=asked)

    def largest(
        self,
        count: int = 10,
        *,
        by: By | Iterable[By] | None = None,
        **options: Unpack[StatOptions],
    ) -> pa.Table:
        """The largest batches (:data:`kafka_log.inspect.statistics.largest.LARGEST_BATCHES`) or, with ``deep``, the largest records by the bytes of
        their keys, values and headers (:data:`~kafka_log.inspect.statistics.largest.LARGEST_RECORDS`): so many of all, or of each of what ``by``
        says, as in :meth:`stat`, in the order of these. The rest, and what it raises, is as there.
        """
        from kafka_log.inspect.statistics.largest import largest_table
        from kafka_log.inspect.statistics.options import Asked
        from kafka_log.inspect.statistics.table import checked_by

        wanted = () if by is None else checked_by(by)
        rows = number(0, OFFSET_BITS, "numbers of rows")("count", count)
        found = self.refuse_copies(self.found)
        return largest_table(found, rows, wanted, Asked.of(time_of(None), **options))

    def export(
        self,
        out: Place,
        kind: Format = "parquet",
        *,
        columns: Sequence[str] | None = None,
        view: str | None = None,
        show_secrets: bool = False,
        policy: Policy | str | None = None,
        selection: Selection | None = None,
        overwrite: bool = False,
        **filters: Unpack[RowFilters],
    ) -> Generator[Exported, None, None]:
        """Write a file for each partition, one after the other as this is iterated. ``kind`` is ``parquet``, ``arrow``, ``jsonl`` or
        ``csv``. The directory is locked until this is exhausted or closed. Raises ExportError, and what :func:`~kafka_log.scan` raises; files that are whole stay. See :func:`kafka_log.inspect.export.export`."""
        from kafka_log.inspect.export import FORMATS, export
        from kafka_log.read.selection import changed
        from kafka_log.write.beside import refuse_inside

        place = local_path(out)
        one_of(FORMATS)("kind", kind)
        names = several(str, text_of("names of columns"))("columns", columns)
        refuse_inside(place, [path for path in self._paths if isinstance(path, Path)])
        wanted = changed(selection, policy, filters)
        return export(
            self.refuse_copies(_chosen(self.found, wanted, self.excluded_segments)),
            place,
            kind,
            columns=names,
            view=None if view is None else text_of("the name of a view")("view", view),
            selection=_of_rows(wanted),
            overwrite=flag("overwrite", overwrite),
            show_secrets=flag("show_secrets", show_secrets),
        )

    def keys(
        self,
        *,
        advance: Callable[[int], None] = lambda _: None,
        selection: Selection | None = None,
        **filters: Unpack[RowFilters],
    ) -> pa.Table:
        """What compaction would leave: a row for each partition with its records, keys, tombstones, and how many records are obsolete
        or live; bytes are those of keys and values, not compressed. ``problem`` is the first damage of a partition, whose other
        records are counted, or says why its directory cannot be read. The ``selection``, or its keywords, say which records there are, as of :func:`kafka_log.scan`; ``advance`` is told of bytes of partitions that
        are done. Memory: some 150 bytes for each key of a partition. The columns are those of :data:`kafka_log.inspect.keys.table.KEYS`. Raises OSError."""
        from kafka_log.inspect.keys.table import key_table
        from kafka_log.read.selection import changed

        wanted = changed(selection, None, filters)
        return key_table(
            _chosen(self._logs, wanted, self.excluded_segments), _of_rows(wanted), advance
        )

    def records_of_key(
        self,
        keys: bytes | Iterable[bytes | None],
        *,
        note: Callable[[str], None] | None = None,
        advance: Callable[[int], None] = lambda _: None,
        selection: Selection | None = None,
        **filters: Unpack[OtherFilters],
    ) -> pa.Table:
        """All records of a key, or of several (None: those without one), in the columns of :data:`kafka_log.inspect.keys.table.RECORDS_OF_KEY`: offset, timestamp (milliseconds), bytes of the value, whether
        it is a tombstone, whether it is the latest of its key in its partition, and the segment. The ``selection``, or its keywords, and
        ``advance`` are as in :meth:`keys`. Raises OSError, and CodecError for damage; with a ``note``, which takes the text of the error, what lies around the
        damage is read, and the other partitions where a directory cannot be read."""
        from kafka_log.inspect.keys.table import records_of_keys
        from kafka_log.read.selection import changed

        wanted = changed(selection, None, {**filters, "keys": keys})
        logs = self.refuse_copies(_chosen(self._logs, wanted, self.excluded_segments))
        return records_of_keys(logs, _of_rows(wanted), note, advance)


def _chosen(
    partitions: Sequence[Partition], selection: Selection, left_out: Sequence[Segment]
) -> list[Partition]:
    """Return the partitions with the topics and numbers of a selection.

    Raises:
        NotFoundError: If a topic or a number is not there.
        ValueError: If the selection says something that LogDirectory has to be given: include or replicas.
    """
    from kafka_log.read.selection import Selection

    for name in ("include", "replicas"):
        if getattr(selection, name) != getattr(Selection(), name):
            raise ValueError(f"{name} says what is looked for: give it to LogDirectory(path, ...)")
    return select_partitions(partitions, selection.topics, selection.partitions, left_out)


def _of_rows(selection: Selection) -> Selection:
    """What a selection says of rows."""
    return selection.but(topics=None, partitions=None)
