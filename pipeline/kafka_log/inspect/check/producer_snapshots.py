"""Check of producer snapshots: they are readable, and contain no offset after their own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_codecs import PRODUCER_SNAPSHOT
from kafka_log.inspect.check.base import Context
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.log_end import EndCheck
from kafka_log.logs.broker_files import TooLargeError, read_small_file

_NAME = re.compile(r"(?P<offset>\d{20})\.snapshot\Z")


class SnapshotCheck(EndCheck):
    """Reports .snapshot files of producers that cannot be parsed, have an offset at or after their
    own, or (the newest) an offset that the log no longer reaches.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        # Before the segments are read: a broker that runs makes more of both.
        self.files = _list_snapshots(context.partition.directory) if context.is_whole else []

    def check_end(self) -> Iterable[Finding]:
        for offset, path in self.files:
            yield from self._check_file(path, offset)
        for offset, path in self.files[-1:]:
            what = "The newest producer snapshot was written at offset"
            yield from self.report_beyond_end("snapshot_beyond_end", path, what, offset)

    def _check_file(self, path: Path, offset: int) -> Iterator[Finding]:
        """Yield at most one warning about a producer snapshot. It is ``snapshot_damaged`` if the
        file is too large, cannot be parsed or has a wrong checksum, ``snapshot_offset`` for the
        first producer with an offset not below ``offset``, that in the file name. Yield nothing if
        the file no longer exists. Raise OSError if it cannot be read.
        """
        try:
            entries = PRODUCER_SNAPSHOT.parse(read_small_file(path), file=os.fspath(path)).entries
        except FileNotFoundError:
            return  # brokers delete old ones
        except TooLargeError as error:
            yield self._damage_finding(path, error.reason, None)
            return
        except CodecError as error:
            yield self._damage_finding(path, error.reason, error.where.position)
            return
        for entry in entries:
            last = max(entry.last_offset, entry.current_txn_first_offset)
            if last >= offset:
                yield self.context.finding(
                    "snapshot_offset",
                    path,
                    f"The producer snapshot was written at offset {offset}, but its entry of producer {entry.producer_id} has the offset {last}.",
                    first_offset=last,
                    producer_id=entry.producer_id,
                )
                return

    def _damage_finding(self, path: Path, reason: str, byte: int | None) -> Finding:
        """Return the ``snapshot_damaged`` warning about a producer snapshot that cannot be parsed,
        at the byte of the error (None if unknown).
        """
        return self.context.finding(
            "snapshot_damaged",
            path,
            f"The producer snapshot cannot be read: {reason}.",
            byte=byte,
        )


def _list_snapshots(directory: Path) -> list[tuple[int, Path]]:
    """Return offset and path of each producer snapshot in a partition directory (``.snapshot``
    after 20 digits), by ascending offset; ``[]`` if the directory cannot be listed.
    """
    try:
        names = [(_NAME.match(path.name), path) for path in directory.iterdir() if path.is_file()]
    except OSError:
        return []  # which others tell
    return sorted((int(found["offset"]), path) for found, path in names if found)
