"""From options to tasks: which segments, which bytes of them, which offsets."""

from __future__ import annotations

import glob
import os
import re
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_log import Partition, Segment, discover
from kafka_log.segment.batch_headers import Columns, entries
from kafka_log.tables.committed import PartitionRows
from kafka_log.tables.selection import within_offsets
from kafka_log.tables.splits import Split
from pyspark_kafka_log.options import EARLIEST, LATEST, Offsets, OptionError, Options

SMALL = 8
"""Splits are put together in one task until they have an eighth of ``splitBytes``."""

BROKERS_MARK = "meta.properties"


@dataclass(frozen=True, slots=True)
class Log:
    """One partition of a topic: its segments, lowest offsets first."""

    topic: str
    partition: int
    directory: Path
    segments: tuple[Segment, ...]

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition


def plan(options: Options) -> list[tuple[Split, ...]]:
    """The splits of each task, in the order of topics, partitions and offsets."""
    raises = options.selection.raises
    logs = chosen(find_logs(options.paths, unreadable_raises=raises), options)
    splits = [part for log in logs for part in _splits(log, options)]
    return list(_tasks(splits, max(1, options.split_bytes // SMALL)))


def _tasks(splits: Iterable[Split], enough: int) -> Iterator[tuple[Split, ...]]:
    held: list[Split] = []
    size = 0
    for part in splits:
        held.append(part)
        size += part.size
        if size >= enough:
            yield tuple(held)
            held, size = [], 0
    if held:
        yield tuple(held)


# ---------------------------------------------------------------- paths


def find_logs(paths: Sequence[str], *, unreadable_raises: bool = True) -> list[Log]:
    """The partitions below the paths.

    Raises :class:`OptionError` for a path that cannot be one, DirectoryError for one that holds no log.
    """
    if not paths:
        raise OptionError(
            "path",
            "say what to read: load(path), or CREATE TEMPORARY VIEW ... OPTIONS (path '...')",
        )
    wanted = [p for path in paths for p in expand(path) if not _is_empty_log_directory(p)]
    found = discover(wanted, unreadable_raises=unreadable_raises)
    return [log for partition in found for log in _logs(partition)]


def expand(path: str) -> list[Path]:
    """The local paths that a path, ``file:`` URI or pattern stands for, absolute."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", path)  # two letters or more: C:\ is a path
    if scheme is not None and not Path(path).exists():
        if scheme[1].lower() != "file":
            raise OptionError(
                "path", f"{path}: only local files can be read, not {scheme[1].lower()}: URLs"
            )
        path = urllib.request.url2pathname(urllib.parse.urlsplit(path).path)
    if not Path(path).exists() and glob.has_magic(path):
        found = sorted(glob.glob(path))  # noqa: PTH207 (absolute patterns too)
        if not found:
            raise OptionError("path", f"{path}: nothing matches")
        return [Path(p).absolute() for p in found]
    return [Path(path).absolute()]


def _is_empty_log_directory(path: Path) -> bool:
    """Whether it is a directory without any logs yet: empty, or a broker's that has no topics."""
    if not path.is_dir():
        return False
    inside = list(path.iterdir())
    if any(child.suffix == ".log" or child.is_dir() for child in inside):
        return False
    return not inside or any(child.name == BROKERS_MARK for child in inside)


def _logs(partition: Partition) -> Iterator[Log]:
    """A partition directory is one log; files that lie together without being one are a log each."""
    by_topic: dict[tuple[str, int], list[Segment]] = {}
    for segment in partition.segments:
        by_topic.setdefault((segment.topic, segment.partition), []).append(segment)
    for (topic, number), segments in by_topic.items():
        yield Log(topic, number, partition.directory, tuple(segments))


# ---------------------------------------------------------------- topics, partitions, offsets


def chosen(logs: Sequence[Log], options: Options) -> list[Log]:
    """The logs that the options name. Raises :class:`OptionError` for names that are not there."""
    topics = sorted({log.topic for log in logs})
    if options.subscribe is not None:
        missing = sorted(set(options.subscribe) - set(topics))
        if missing:
            raise OptionError("subscribe", _not_there("topic", missing, topics))
        logs = [log for log in logs if log.topic in options.subscribe]
    elif options.subscribe_pattern is not None:
        pattern = re.compile(options.subscribe_pattern)
        logs = [log for log in logs if pattern.fullmatch(log.topic)]
    elif options.assign is not None:
        absent = sorted(options.assign - {log.key for log in logs})
        if absent:
            names = [f"{topic}-{number}" for topic, number in absent]
            known = [f"{log.topic}-{log.partition}" for log in logs]
            raise OptionError("assign", _not_there("partition", names, known))
        logs = [log for log in logs if log.key in options.assign]
    if not options.keep_replicas:
        _check_replicas(logs)
    _check_offsets("startingOffsets", options.starting_offsets, logs)
    _check_offsets("endingOffsets", options.ending_offsets, logs)
    return list(logs)


def _not_there(what: str, missing: Sequence[str], known: Sequence[str]) -> str:
    there = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
    return f"no {what} {', '.join(missing)} in the path; there are: {there or 'none'}"


def _check_replicas(logs: Sequence[Log]) -> None:
    seen: dict[tuple[str, int], Log] = {}
    for log in logs:
        other = seen.setdefault(log.key, log)
        if other is not log:
            raise OptionError(
                "replicas",
                f"partition {log.partition} of topic {log.topic} lies in {other.directory} and in"
                f" {log.directory}: its records would come twice. Load one of them, or set replicas to keep",
            )


def _check_offsets(name: str, offsets: Offsets | None, logs: Sequence[Log]) -> None:
    """As Spark's Kafka source has it: all partitions that are read, and no others, have an offset."""
    if offsets is None:
        return
    there = {log.key for log in logs}
    wrong = sorted(offsets.keys() ^ there)
    if wrong:
        listed = ", ".join(f"{topic}-{number}" for topic, number in wrong[:20])
        raise OptionError(
            name,
            "it must have an offset for each partition that is read, and for no other;"
            f" these are in one of the two only: {listed}",
        )


# ---------------------------------------------------------------- splits


def _splits(log: Log, options: Options) -> Iterator[Split]:
    first = _offset(options.starting_offsets, log, EARLIEST)
    end = _offset(options.ending_offsets, log, LATEST)
    if first is not None and end is not None:
        first = min(first, end)  # nothing is wanted
    wanted = options.selection.but(offsets=(first, end))
    rows = PartitionRows(wanted, options.engine, of_view=options.view is not None).of(log)
    first, end = rows.offsets
    following = dict(pairwise(log.segments))
    for segment in within_offsets(log.segments, rows.offsets):
        # Tasks carry only the transactions that have records in their segment.
        after = following[segment].base_offset if segment in following else 1 << 63
        here = replace(rows, aborted=rows.aborted.between(segment.base_offset, after))
        for part in split(segment, options.split_bytes, first, end):
            yield replace(part, rows=here)


def _offset(offsets: Offsets | None, log: Log, none: int) -> int | None:
    offset = None if offsets is None else offsets[log.key]
    return None if offset == none else offset


def split(
    segment: Segment, split_bytes: int, first: int | None = None, end: int | None = None
) -> list[Split]:
    """Splits of a segment with about ``split_bytes`` bytes each, cut where batches begin.

    Those are left out that lie before the offset ``first`` or from the offset ``end`` on as a whole.
    """
    cuts = [Cut(0, None)]
    if segment.size > split_bytes:
        cuts += boundaries(segment.path, split_bytes)
    out = []
    for i, cut in enumerate(cuts):
        following = cuts[i + 1] if i + 1 < len(cuts) else None
        if first is not None and following is not None and (following.offset or 0) <= first:
            continue
        if end is not None and cut.is_first_offset and (cut.offset or 0) >= end:
            break
        out.append(Split(segment, cut.position, None if following is None else following.position))
    return out


@dataclass(frozen=True, slots=True)
class Cut:
    """A place where a batch begins, and the offset that stands there.

    For a wrapper of the older formats that is its last offset, not the first.
    """

    position: int
    offset: int | None
    is_first_offset: bool = False


def boundaries(path: Path, split_bytes: int) -> list[Cut]:
    """Places where batches begin, at least ``split_bytes`` bytes from each other.

    Only lengths are read, and the headers in these places. What lies after the first one that cannot be is left to whoever reads the last split.
    """
    cuts: list[Cut] = []
    offsets = Columns(("base_offset", "last_offset"), os.fspath(path))
    wanted = split_bytes
    try:
        for entry in entries(path):
            if entry.position >= wanted:
                first, last = offsets.of(entry)
                cuts.append(
                    Cut(entry.position, last if first is None else first, first is not None)
                )
                wanted = entry.position + split_bytes
    except CodecError:
        pass
    return cuts
