"""The logs as the first scan of a query finds them. The others of that query read the same, however logs grow, roll and are deleted from meanwhile."""

from __future__ import annotations

import pickle
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_log import Policy, Segment
from kafka_log.logs.log_start import LogStarts
from kafka_log.read.isolation import Known
from kafka_log.segment.ranges import EVERYTHING
from pyspark_kafka_log.logs import Log, find_logs
from pyspark_kafka_log.options import Options

NO_BATCH = 24
"""In so few bytes no batch fits. Where they are zeros at the end of a file, more may be written there."""


@dataclass
class QueryLogs:
    """What scans of one query have found. It goes from each to the next as bytes.

    Scans of the same paths have the same partitions and segments. With other paths a file that was found before ends where it did, and in a
    directory that was found as a whole no segment is newer.
    """

    starts: LogStarts = field(default_factory=LogStarts)
    transactions: Known = field(default_factory=dict)
    found: dict[Hashable, list[Log]] = field(default_factory=dict)
    """By all that says where logs are looked for."""
    segments: dict[Path, Segment] = field(default_factory=dict)
    newest: dict[Path, int] = field(default_factory=dict)
    """Base offsets of the last segments, by directories that were found as a whole."""

    def find(self, options: Options) -> list[Log]:
        """The logs below the paths. Raises as :func:`~pyspark_kafka_log.logs.find_logs`."""
        selection = options.selection
        asked = (
            options.paths,
            options.files.recursive,
            selection.include,
            selection.raises,
            tuple(sorted(options.storage.items())),
        )
        if asked not in self.found:
            logs = [_ended(self._as_before(log), options) for log in find_logs(options)]
            for log in logs:
                self._keep(log, options)
            self.found[asked] = logs
        return self.found[asked]

    def _as_before(self, log: Log) -> Log:
        newest = self.newest.get(log.directory)
        kept = [
            self.segments.get(one.path, one)
            for one in log.segments
            if one.path in self.segments
            or newest is None
            or one.state != "live"
            or one.base_offset < newest
        ]
        return replace(log, segments=tuple(kept))

    def _keep(self, log: Log, options: Options) -> None:
        for segment in log.segments:
            self.segments.setdefault(segment.path, segment)
        live = [segment for segment in log.segments if segment.state == "live"]
        if live and not any(_names(path, live) for path in options.paths):
            self.newest.setdefault(log.directory, live[-1].base_offset)

    def to_bytes(self) -> bytes:
        return pickle.dumps(self)

    @classmethod
    def of_bytes(cls, data: bytes) -> QueryLogs:
        """What earlier scans have found; nothing of no bytes."""
        found = pickle.loads(data) if data else cls()
        assert isinstance(found, cls)
        return found


def _ended(log: Log, options: Options) -> Log:
    """A log, with its end where a broker has made the last file longer in advance: what is written there later lies within the file's size."""
    wanted = options.selection
    if not log.segments or not wanted.raises or wanted.policy is not Policy.KAFKA:
        return log  # the zeros are damage, or what is torn before them is read
    last = log.segments[-1]
    is_written = last.state == "live" and not last.rolled and last.offsets == EVERYTHING
    if not is_written or not isinstance(last.path, Path) or not _ends_in_zeros(last):
        return log
    from kafka_log.read.progress import Ends  # batches are read: not for other logs

    try:
        end = Ends(wanted, options.engine).of(log.key, log)
    except (CodecError, OSError):
        return log  # whoever reads it meets that
    if end is None:
        return log
    return replace(log, segments=(*log.segments[:-1], replace(last, offsets=(None, end.offset))))


def _ends_in_zeros(segment: Segment) -> bool:
    try:
        with segment.path.open("rb", buffering=0) as file:
            file.seek(max(0, segment.size - NO_BATCH))
            there = file.read(NO_BATCH)
    except OSError:
        return False
    return bool(there) and not any(there)


def _names(path: str, segments: list[Segment]) -> bool:
    """Whether a path may be of files, not of directories."""
    last = path.rpartition("/")[2]
    return any(fnmatchcase(segment.path.name, last) for segment in segments)
