"""From paths and topics to logs: which partitions there are, and which of them are read."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kafka_log import Partition, Segment
from kafka_log.logs.discovery import Survey, survey, warn_if_all_excluded
from kafka_log.logs.names import CLUSTER_METADATA, META, State
from kafka_log.logs.partitions import describe_skipped, filter_by_topics
from kafka_log.logs.replicas import select_replicas
from kafka_log.logs.tiers import Ends, merge_tiered_segments
from kafka_log.read.internal_topics import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from kafka_log.segment.globs import PatternError, is_pattern, matches, paths_of
from kafka_log.segment.places import FileUrlError, is_url, path_of_file_url, place_of
from pyspark_kafka_log.options import Bound, Files, OptionError, Options
from pyspark_kafka_log.storage import storage_options

INTERNAL = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE, CLUSTER_METADATA)
"""Topics that brokers keep for themselves: patterns leave them out, as in Spark's Kafka source."""

Log = Partition
"""One partition of a topic: its segments, lowest offsets first."""


def find_logs(options: Options) -> list[Log]:
    """The logs below the paths, those too that are not chosen.

    Raises :class:`OptionError` for a path that cannot be one, DirectoryError for one that holds no log.
    """
    return [log for partition in find_survey(options).partitions for log in _logs(partition)]


def find_survey(options: Options) -> Survey:
    """What lies below the paths, also partitions without segments. Where damage is no error, those that cannot be read say so. Warns of
    what has the name of a segment and is no file, and of segments that lie in no partition.

    Raises as :func:`find_logs`.
    """
    selection = options.selection
    places = find_places(options)
    empty = [path for path in places if _is_empty_log_directory(path)]
    there = survey(
        [path for path in places if path not in empty],
        selection.include,
        unreadable_raises=selection.raises,
    )
    if beside := filter_by_topics(there.skipped_paths, options.subscribe):
        warnings.warn(f"kafka-log: {describe_skipped(beside)}", stacklevel=2)
    warn_if_all_excluded(there.partitions, there.excluded_segments, stacklevel=2)
    return there._replace(directories=[*empty, *there.directories])


def find_places(options: Options) -> list[Path]:
    """What the paths stand for. Raises :class:`OptionError`."""
    if not options.paths:
        raise OptionError(
            "path",
            "say what to read: load(path), or CREATE TEMPORARY VIEW ... OPTIONS (path '...')",
        )
    there = [p for path in options.paths for p in expand(path, options.storage)]
    if options.files.recursive:
        there = [p for place in there for p in _directories(place)]
    return there


def _directories(place: Path) -> list[Path]:
    """A place, or the directories below it that have segments. Links are not followed, and names that begin with a dot are passed over:
    what is being written lies in such directories."""
    if not place.is_dir():
        return [place]
    found: list[Path] = []
    left = [place]
    while left:
        directory = left.pop()
        inside = list(directory.iterdir())
        if any(child.suffix == ".log" for child in inside):
            found.append(directory)
        visible = (child for child in inside if not child.name.startswith("."))
        left += [child for child in visible if child.is_dir() and not child.is_symlink()]
    return sorted(found) or [place]


def expand(path: str, storage: Mapping[str, str] | None = None) -> list[Path]:
    """The paths that a path, URL or pattern stands for, absolute. What is there by that name is no pattern."""
    try:
        found = _matching(path, storage or {})
    except (PatternError, FileUrlError) as error:
        raise OptionError("path", str(error)) from None
    if not found:
        raise OptionError("path", f"{path}: nothing matches")
    return found


def _matching(path: str, storage: Mapping[str, str]) -> list[Path]:
    if is_url(path):
        return place_of(path, storage_options(path, storage)).matches()  # type: ignore[attr-defined,no-any-return]
    of_url = path_of_file_url(path)
    if of_url is not None:
        path = of_url
    elif not Path(path).exists():
        scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", path)  # two letters or more: C:\ is a path
        if scheme is not None:
            raise OptionError("path", f"{path}: a URL begins with {scheme[1]}://")
    if Path(path).exists() or not is_pattern(path):
        return [Path(path).absolute()]
    anchor = Path(path).anchor
    rest = path[len(anchor) :] if os.name != "nt" else path[len(anchor) :].replace("\\", "/")
    return paths_of(Path(anchor or ".").absolute(), rest)


def _is_empty_log_directory(path: Path) -> bool:
    """Whether it is a directory without any logs yet: empty, or a broker's that has no topics."""
    if not path.is_dir():
        return False
    inside = list(path.iterdir())
    if any(child.suffix == ".log" or child.is_dir() for child in inside):
        return False
    return not inside or any(child.name == META for child in inside)


def _logs(partition: Partition) -> Iterator[Log]:
    """A partition directory is one log; files that lie together without being one are a log each."""
    by_topic: dict[tuple[str, int], list[Segment]] = {}
    for segment in partition.segments:
        by_topic.setdefault((segment.topic, segment.partition), []).append(segment)
    for (topic, number), segments in by_topic.items():
        yield replace(partition, topic=topic, partition=number, segments=tuple(segments))


# ---------------------------------------------------------------- topics, partitions, offsets


def chosen(logs: Sequence[Log], options: Options) -> list[Log]:
    """The logs that the options name. Raises :class:`OptionError` for names that are not there, and for those that are there twice."""
    topics = sorted({log.topic for log in logs})
    if options.subscribe is not None:
        missing = sorted(set(options.subscribe) - set(topics))
        if missing:
            raise OptionError("subscribe", _not_there("topic", missing, topics))
    elif options.assign is not None:
        absent = sorted(options.assign - {log.key for log in logs})
        if absent:
            names = [f"{topic}-{number}" for topic, number in absent]
            known = [f"{log.topic}-{log.partition}" for log in logs]
            raise OptionError("assign", _not_there("partition", names, known))
    found = matching(logs, options)
    if options.subscribe_pattern is not None and not found:
        own = [name for name in topics if name in INTERNAL]
        matched = [name for name in own if re.search(options.subscribe_pattern, name)]
        if matched:
            raise OptionError(
                "subscribePattern",
                f"of all topics it matches {', '.join(matched)} only, which patterns leave out: name them with subscribe",
            )
    _check_offsets("startingOffsets", options.starting_offsets, found)
    _check_offsets("endingOffsets", options.ending_offsets, found)
    _check_offsets("startingOffsetsByTimestamp", options.starting_times, found, "a timestamp")
    _check_offsets("endingOffsetsByTimestamp", options.ending_times, found, "a timestamp")
    return found


def names(options: Options, key: tuple[str, int]) -> bool:
    """Whether options name a partition, whether or not it is there."""
    topic, _ = key
    if options.subscribe is not None:
        return topic in options.subscribe
    if options.subscribe_pattern is not None:
        own = () if options.view is not None else INTERNAL
        return re.search(options.subscribe_pattern, topic) is not None and topic not in own
    return options.assign is None or key in options.assign


def matching(logs: Sequence[Log], options: Options, ends: Ends | None = None) -> list[Log]:
    """Those of the logs that the options name, which need not all be there. ``ends`` of remote segments are known from earlier.
    Raises :class:`OptionError` for one that is there twice."""
    found = [log for log in logs if names(options, log.key)]
    replicas = options.selection.replicas
    if replicas == "error":
        _check_replicas(found)
    found = merge_tiered_segments(
        select_replicas(found, "newest" if replicas == "newest" else "keep"), ends
    )
    return [log for one in found if (log := _with_files(one, options.files)) is not None]


def _with_files(log: Log, files: Files) -> Log | None:
    """A log with those of its segments that are wanted by their names and times, None where none of them is."""
    if files.pattern is None and files.after is None and files.before is None:
        return log
    kept = tuple(segment for segment in log.segments if _is_wanted(segment, files))
    return replace(log, segments=kept) if kept else None


def _is_wanted(segment: Segment, files: Files) -> bool:
    if files.pattern is not None and not matches(segment.path.name, files.pattern):
        return False
    if files.after is None and files.before is None:
        return True
    try:
        written = segment.path.stat().st_mtime_ns
    except FileNotFoundError:
        return True  # whoever reads it meets that
    after, before = files.after, files.before
    return (after is None or written > after) and (before is None or written < before)


def _not_there(what: str, missing: Sequence[str], known: Sequence[str]) -> str:
    there = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
    return f"no {what} {', '.join(missing)} in the path; there are: {there or 'none'}"


def _check_replicas(logs: Sequence[Log]) -> None:
    seen: dict[tuple[str, int, State], Log] = {}
    for log in logs:
        other = seen.setdefault((*log.key, log.state), log)
        if other is not log:
            raise OptionError(
                "replicas",
                f"partition {log.partition} of topic {log.topic} lies in {other.directory} and in"
                f" {log.directory}: its records would come twice. Load one of them, or set replicas to newest or keep",
            )


def _check_offsets(
    name: str, offsets: Bound | None, logs: Sequence[Log], what: str = "an offset"
) -> None:
    """As Spark's Kafka source has it: all partitions that are read, and no others, have an offset."""
    if offsets is None or isinstance(offsets, int):
        return
    there = {log.key for log in logs}
    wrong = sorted(offsets.keys() ^ there)
    if wrong:
        listed = ", ".join(f"{topic}-{number}" for topic, number in wrong[:20])
        raise OptionError(
            name,
            f"it must have {what} for each partition that is read, and for no other;"
            f" these are in one of the two only: {listed}",
        )
