"""Producer snapshots: they can be read, and know nothing that lies after them."""

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
    """The files .snapshot of a partition."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        # Before the segments are read: a broker that runs makes more of both.
        self.files = _files(context.partition.directory) if context.is_whole else []

    def end(self) -> Iterable[Finding]:
        for offset, path in self.files:
            yield from self._of(path, offset)
        for offset, path in self.files[-1:]:
            what = "The snapshot says what the producers had written at offset"
            yield from self.beyond_end("snapshot_beyond_end", path, what, offset)

    def _of(self, path: Path, offset: int) -> Iterator[Finding]:
        try:
            entries = PRODUCER_SNAPSHOT.parse(read_small_file(path), file=os.fspath(path)).entries
        except FileNotFoundError:
            return  # brokers delete old ones
        except TooLargeError as error:
            yield self._damaged(path, error.reason, None)
            return
        except CodecError as error:
            yield self._damaged(path, error.reason, error.where.position)
            return
        for entry in entries:
            last = max(entry.last_offset, entry.current_txn_first_offset)
            if last >= offset:
                yield self.context.finding(
                    "warning",
                    "snapshot_offset",
                    path,
                    f"The snapshot says what producer {entry.producer_id} had written at offset {offset}, but it knows of offset {last}.",
                    "Stop the broker and delete the snapshot: the broker goes back to an older one and reads the log from there.",
                    first_offset=last,
                    producer_id=entry.producer_id,
                )
                return

    def _damaged(self, path: Path, reason: str, byte: int | None) -> Finding:
        return self.context.finding(
            "warning",
            "snapshot_damaged",
            path,
            f"The producer snapshot cannot be used: {reason}.",
            "Nothing if there is an older snapshot or the whole log: the broker deletes this one and reads the log from there.",
            byte=byte,
        )


def _files(directory: Path) -> list[tuple[int, Path]]:
    """The snapshots of a partition by their offsets, the lowest first."""
    try:
        names = [(_NAME.match(path.name), path) for path in directory.iterdir() if path.is_file()]
    except OSError:
        return []  # which others tell
    return sorted((int(found["offset"]), path) for found, path in names if found)
