"""Keep the logs that the first scan of a query finds. Its other scans read the same rows while logs grow, roll and are deleted."""

from __future__ import annotations

import pickle
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_log import Policy, Segment
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.tiers import find_tier_gaps
from kafka_log.read.isolation import Known
from kafka_log.segment.ranges import EVERYTHING
from kafka_log.segment.regular_files import open_regular
from pyspark_kafka_log.options import Options
from pyspark_kafka_log.splits.logs import Log, find_logs, select_logs

ZERO_TAIL_BYTES = 24
"""In so few bytes no batch fits. Where they are zeros at the end of a file, more may be written there."""


@dataclass
class QueryLogs:
    """The logs that scans of one query have found. Each scan passes it to the next one as bytes.

    Scans of the same paths get the same partitions and segments. With other paths, a file that was found before keeps its end, and no segment is added
    to a directory that was listed as a whole.
    """

    starts: LogStarts = field(default_factory=LogStarts)
    transactions: Known = field(default_factory=dict)
    found: dict[Hashable, list[Log]] = field(default_factory=dict)
    """By all that says where logs are looked for."""
    segments: dict[Path, Segment] = field(default_factory=dict)
    newest: dict[Path, int] = field(default_factory=dict)
    """Base offsets of the last segments, by directories that were found as a whole."""
    ends: dict[Path, int] = field(default_factory=dict)
    """End offsets of preallocated segments, for scans to which the bytes after the end are no damage."""

    def find(self, options: Options) -> list[Log]:
        """Return the logs below the paths of ``options``; again the first result if paths, storage
        options and selection of files are the same. Other calls list anew, but known segments keep
        their size, and directories listed as a whole get no newer ones. Raise OptionError for an
        invalid path, or one that matches nothing; DirectoryError without logs; OSError for a path
        that cannot be listed, and for an unreadable partition unless damage is accepted.
        """
        selection = options.selection
        asked = (
            options.paths,
            options.files.recursive,
            selection.include,
            selection.raises,
            selection.policy,
            tuple(sorted(options.storage.items())),
        )
        if asked not in self.found:
            logs = [self._restrict_to_known(log) for log in find_logs(options)]
            for log in logs:
                self._remember(log, options)
            self.found[asked] = [self._fix_end(log, options) for log in logs]
        return self.found[asked]

    def select(self, options: Options) -> list[Log]:
        """Return the logs that ``options`` select below their paths. Raise the errors of :meth:`find`
        and of :func:`select_logs`.

        If copies in tiered storage and live segments lack offsets, directories are listed once more: a segment may have moved between two listings.
        """
        logs = select_logs(self.find(options), options)
        if any(any(find_tier_gaps(log)) for log in logs):
            self.found.clear()
            logs = select_logs(self.find(options), options)
        return logs

    def _restrict_to_known(self, log: Log) -> Log:
        """Return a log with each known segment as it was first seen, and without new live segments
        at or after the newest one of its directory's first listing. New segments before that stay.
        """
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

    def _remember(self, log: Log, options: Options) -> None:
        """Record the segments of a log as they are now. A segment whose path was recorded before
        stays as it was then. Also record the base offset of the last live segment, unless the
        directory has one recorded, or a path may name a file of it.
        """
        for segment in log.segments:
            self.segments.setdefault(segment.path, segment)
        live = [segment for segment in log.segments if segment.state == "live"]
        if live and not any(_may_name_file(path, live) for path in options.paths):
            self.newest.setdefault(log.directory, live[-1].base_offset)

    def _fix_end(self, log: Log, options: Options) -> Log:
        """Return a log whose last segment is limited to the log's end offset (excluded) at the first
        call, if the segment is a local file, active and ends in zeros, as a file that a broker
        preallocates. Return the log unchanged otherwise, and if the policy is not ``kafka``, damage
        is accepted, or the end cannot be read.
        """
        wanted = options.selection
        if not log.segments or not wanted.raises or wanted.policy is not Policy.KAFKA:
            return log  # the zeros are damage, or what is torn before them is read
        last = log.segments[-1]
        is_written = last.state == "live" and not last.rolled and last.offsets == EVERYTHING
        if not is_written or not isinstance(last.path, Path):
            return log
        if last.path not in self.ends:
            if not _ends_in_zeros(last):
                return log
            from kafka_log.read.progress import LogEnds  # batches are read: not for other logs

            try:
                found = LogEnds(wanted, options.engine).find_end(log.key, log)
            except (CodecError, OSError):
                return log  # whoever reads it meets that
            if found is None:
                return log
            self.ends[last.path] = found.offset
        end = None, self.ends[last.path]
        fixed = replace(last, offsets=end, overlap_limits=end)
        return replace(log, segments=(*log.segments[:-1], fixed))

    def to_bytes(self) -> bytes:
        """Return this object, pickled."""
        return pickle.dumps(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> QueryLogs:
        """Return the object that :meth:`to_bytes` pickled, an empty one for no bytes."""
        found = pickle.loads(data) if data else cls()
        assert isinstance(found, cls)
        return found


def _ends_in_zeros(segment: Segment) -> bool:
    """Return whether the last ZERO_TAIL_BYTES of a segment are all zero. Return False if the file
    is empty or cannot be read.
    """
    try:
        with open_regular(segment.path) as file:
            file.seek(max(0, segment.size - ZERO_TAIL_BYTES))
            there = file.read(ZERO_TAIL_BYTES)
    except OSError:
        return False
    return bool(there) and not any(there)


def _may_name_file(path: str, segments: list[Segment]) -> bool:
    """Return whether the last name of a path matches one of the segment files, so that the path may select files and not their directory."""
    last = path.rpartition("/")[2]
    return any(fnmatchcase(segment.path.name, last) for segment in segments)
