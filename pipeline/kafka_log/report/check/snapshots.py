"""Producer snapshots: they can be read, and know nothing that lies after them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_codecs import PRODUCER_SNAPSHOT
from kafka_log.disk.small_files import TooLargeError, small_file
from kafka_log.report.check.base import Check
from kafka_log.report.check.finding import Finding

_NAME = re.compile(r"(?P<offset>\d{20})\.snapshot\Z")


class SnapshotCheck(Check):
    """The files .snapshot of a partition."""

    def end(self) -> Iterable[Finding]:
        if not self.context.is_whole:
            return
        for path in sorted(self.context.partition.directory.iterdir()):
            found = _NAME.match(path.name)
            if found and path.is_file():
                yield from self._of(path, int(found["offset"]))

    def _of(self, path: Path, offset: int) -> Iterator[Finding]:
        try:
            entries = PRODUCER_SNAPSHOT.parse(small_file(path), file=os.fspath(path)).entries
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
