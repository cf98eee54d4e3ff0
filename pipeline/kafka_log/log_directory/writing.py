"""What is written of a log directory as logs that a broker loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafka_log.log_directory.opened import Opened, Place
from kafka_log.read.arguments import (
    flag,
    number,
)
from kafka_log.segment.places import local_path

if TYPE_CHECKING:
    from kafka_log.segment.ranges import Range

MAX_INTERVAL = (1 << 31) - 1


class Writing(Opened):
    """Jobs that write logs beside those that are read."""

    def salvage(
        self,
        out: Place,
        *,
        flatten: bool = False,
        keep_damaged: bool = False,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write what can be read of the partitions below another directory, each as a partition's directory that a broker loads.

        Batches that are good keep their bytes, in segments that begin where they did. Of others the records that can be read are
        written anew; those whose checksum is wrong are lost, unless ``keep_damaged``. With ``flatten`` only committed data is
        written: no markers, no producers, nothing of transactions that were aborted or have not ended. What is lost or left out is
        said: a row of :data:`kafka_log.write.said.SAID` for each. Log start offsets inside of first segments, as the broker has written
        them down, stand in ``log-start-offset-checkpoint`` beside the directories. What the same call has written is kept.

        ``advance`` is told of bytes of segments that are done. Raises :class:`~kafka_log.write.beside.OutError` (a DirectoryError)
        for a place that is inside of what is read or holds anything else, OSError.
        """
        from kafka_log.write import jobs

        options: dict[str, Any] = {
            "flatten": flag("flatten", flatten),
            "keep_damaged": flag("keep_damaged", keep_damaged),
            "advance": advance,
        }
        return jobs.salvage(self.refuse_copies(self.found), local_path(out), self._paths, **options)

    def cut(
        self,
        out: Place,
        offsets: Range | None = None,
        timestamps: Range | None = None,
        *,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write a part of the partitions below another directory, as :meth:`salvage` does: the batches of which an offset is in
        ``offsets`` and a timestamp (milliseconds) in ``timestamps``. The first of a range is in, the end is not, None is open; None for a
        range is everything. A row says of each snapshot of the metadata that it is left out.
        Raises ValueError for what is no range, and as salvage."""
        from kafka_log.segment.ranges import checked_plain_offsets, checked_range
        from kafka_log.write import jobs
        from kafka_log.write.choice import Wanted

        wanted = Wanted(
            checked_plain_offsets("offsets", offsets), checked_range("timestamps", timestamps)
        )
        return jobs.cut(
            self.refuse_copies(self.found), local_path(out), self._paths, wanted, advance
        )

    def convert(
        self,
        out: Place,
        *,
        codec: str | None = None,
        level: int | None = None,
        magic: int | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write the partitions below another directory, as directories that a broker loads: messages of the formats before 0.11 as
        record batches, and all compressed with ``codec`` (none, gzip, snappy, lz4, zstd; None: as they are) at a ``level`` of it
        (None: the usual one; with one, what has the codec already is compressed anew). With ``magic`` batches of older versions are
        written in that version too (None: batches keep theirs). Records keep all that they have. Headers of
        record batches too, but for what says how they are compressed; those that stay as they are keep their bytes. What was written
        is read again, and compared with what was there.

        A row of :data:`kafka_log.write.conversion.CONVERTED` for each segment, with its bytes before and after, and for each snapshot of the metadata,
        which is left out. A partition that is
        damaged, cannot be read, or has batches newer than ``magic``, is refused: a row says why, nothing of it is written, and the others are. What the same call has
        written is kept. Raises ValueError for a codec, a level or a version that there is not, and as :meth:`salvage`.
        """
        from kafka_log.write import jobs
        from kafka_log.write.recompression import target

        return jobs.convert(
            self.refuse_copies(self.found),
            local_path(out),
            self._paths,
            target(codec, level, magic),
            advance,
        )

    def reindex(
        self,
        out: Place,
        *,
        interval_bytes: int = 4096,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write the files that a broker keeps beside segments below another directory: offset, time and transaction indexes, producer
        snapshots. ``interval_bytes`` is the ``index.interval.bytes`` of the topics. A row of :data:`kafka_log.write.said.SAID` for
        each segment, for what could not be read and has no entry, and for each snapshot of the metadata, which is left out. Raises as :meth:`salvage`."""
        from kafka_log.write import jobs

        interval = number(0, MAX_INTERVAL, "numbers of bytes")("interval_bytes", interval_bytes)
        options: dict[str, Any] = {"interval_bytes": interval, "advance": advance}
        return jobs.reindex(self.refuse_copies(self.found), local_path(out), self._paths, **options)
