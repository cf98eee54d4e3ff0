"""Find partitions and their segments below the paths of a query, and select those that its options name."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kafka_log import Partition, Segment
from kafka_log.logs.discovery import Survey, survey, warn_if_all_excluded
from kafka_log.logs.names import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    META,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    State,
    parse_segment_name,
)
from kafka_log.logs.partition_filters import is_topic_pattern
from kafka_log.logs.partitions import describe_skipped, filter_by_topics
from kafka_log.logs.remote_topics import find_mixed_topics
from kafka_log.logs.replicas import select_replicas
from kafka_log.logs.tiers import Ends, merge_tiered_segments
from kafka_log.segment.globs import PatternError, find_matching_paths, is_pattern, matches
from kafka_log.segment.paths import make_path
from kafka_log.segment.urls import FileUrlError, is_url, path_of_file_url
from pyspark_kafka_log.options import Bound, Files, OptionError, Options
from pyspark_kafka_log.splits.stores import storage_options

INTERNAL = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE, CLUSTER_METADATA)
"""Topics that brokers keep for themselves: patterns leave them out, as in Spark's Kafka source."""

Log = Partition
"""One partition of a topic: its segments, lowest offsets first."""


def find_logs(options: Options) -> list[Log]:
    """Return all logs below the paths, selected or not, one for each topic and partition in a
    directory: copies of a partition in several directories are several logs. Leave out partitions
    without segments. Warn of skipped paths, of selected partitions that cannot be read if the mode
    accepts damage, and if all segments are excluded. Raise OptionError for an invalid path, or one
    that matches nothing; DirectoryError for a path without logs, unless it is an empty directory or
    log directory; OSError for a path that cannot be listed, and for a partition that cannot be read
    unless the mode accepts damage.
    """
    found = find_survey(options).partitions
    for partition in found:
        if partition.error is not None and is_selected(options, partition.key):
            warnings.warn(
                f"kafka-log: data is lost: a partition cannot be read, and is left out: {partition.error}",
                stacklevel=2,
            )
    return [log for partition in found for log in _split_by_partition(partition)]


def find_survey(options: Options) -> Survey:
    """Return all partitions and log directories below the paths, also partitions without segments.
    Warn of skipped paths, and if all segments are excluded. Raise OptionError if no path is given,
    one is invalid, or a pattern matches nothing; DirectoryError for a path that does not exist, or
    has no logs, unless it is an empty directory or log directory; OSError for a path that cannot be
    listed, and for a partition that cannot be read, which has an ``error`` instead if the mode
    accepts damage.

    Skipped paths are files that are named like segments but are none, and segments outside of partitions.
    """
    selection = options.selection
    places = find_paths(options)
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


def find_paths(options: Options) -> list[Path]:
    """Return the absolute paths that the path options expand to, in their order; one that two
    options match occurs twice. Whether a path without a pattern exists is not checked. With
    ``recursiveFileLookup`` return the directories below them that contain segments instead, or the
    path if there are none. Raise :class:`OptionError` if no path is given, one is invalid, or a
    pattern matches nothing; OSError if a directory cannot be listed; ModuleNotFoundError for a
    store without fsspec.
    """
    if not options.paths:
        raise OptionError(
            "path",
            "say what to read: load(path), or CREATE TEMPORARY VIEW ... OPTIONS (path '...')",
        )
    there = [p for path in options.paths for p in expand_path(path, options.storage)]
    if options.files.recursive:
        there = [p for place in there for p in _find_segment_directories(place)]
    return there


def _find_segment_directories(place: Path) -> list[Path]:
    """Return the directories, ``place`` or below it, that directly contain ``.log`` files or
    segments in any state, sorted; ``[place]`` if there are none or it is no directory. Skip symbolic links and hidden directories,
    where unfinished output lies. Raise OSError if a directory cannot be listed.
    """
    if not place.is_dir():
        return [place]
    found: list[Path] = []
    left = [place]
    while left:
        directory = left.pop()
        inside = list(directory.iterdir())
        if any(child.suffix == ".log" or parse_segment_name(child.name) for child in inside):
            found.append(directory)
        visible = (child for child in inside if not child.name.startswith("."))
        left += [child for child in visible if child.is_dir() and not child.is_symlink()]
    return sorted(found) or [place]


def expand_path(path: str, storage: Mapping[str, str] | None = None) -> list[Path]:
    """Return the absolute paths that a path, URL or glob pattern matches, sorted for a pattern. An
    existing path is never taken as a pattern; a missing path without pattern characters is
    returned. Raise OptionError if a pattern is invalid or matches nothing, or a URL is invalid;
    OSError if a path cannot be examined or a store cannot be listed; ModuleNotFoundError for a
    store without fsspec.
    """
    try:
        found = _match_paths(path, storage or {})
    except (PatternError, FileUrlError) as error:
        raise OptionError("path", str(error)) from None
    if not found:
        raise OptionError("path", f"{path}: no file or directory matches the pattern")
    return found


def _match_paths(path: str, storage: Mapping[str, str]) -> list[Path]:
    """Return the absolute paths that a path, URL or glob pattern matches, sorted; ``[]`` for a
    pattern without matches; a path that exists, or has no pattern characters, itself. Raise
    OptionError for an invalid URL, one without ``//``, or an invalid option of its store;
    PatternError for an invalid pattern; FileUrlError for an invalid ``file:`` URL; OSError if a
    path cannot be examined or a store cannot be listed; ModuleNotFoundError for a store without
    fsspec.
    """
    if is_url(path):
        return make_path(path, storage_options(path, storage)).matches()  # type: ignore[attr-defined,no-any-return]
    of_url = path_of_file_url(path)
    if of_url is not None:
        path = of_url
    elif not Path(path).exists():
        scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", path)  # two letters or more: C:\ is a path
        if scheme is not None:
            raise OptionError(
                "path",
                f"{path} is neither an existing path nor a URL: a URL begins with {scheme[1]}://",
            )
    if Path(path).exists() or not is_pattern(path):
        return [Path(path).absolute()]
    anchor = Path(path).anchor
    rest = path[len(anchor) :] if os.name != "nt" else path[len(anchor) :].replace("\\", "/")
    return find_matching_paths(Path(anchor or ".").absolute(), rest)


def _is_empty_log_directory(path: Path) -> bool:
    """Return whether a path is an empty directory, or a log directory without partitions: it has a
    broker's ``meta.properties``, and no subdirectories or ``.log`` files. Return False for a
    missing path. Raise OSError if the directory cannot be listed.
    """
    if not path.is_dir():
        return False
    inside = list(path.iterdir())
    if any(child.suffix == ".log" or child.is_dir() for child in inside):
        return False
    return not inside or any(child.name == META for child in inside)


def _split_by_partition(partition: Partition) -> Iterator[Log]:
    """Yield one log for each topic and partition among the segments of ``partition``, in their
    order: usually one, several if segments of several partitions lie together. Yield nothing
    without segments.
    """
    by_topic: dict[tuple[str, int], list[Segment]] = {}
    for segment in partition.segments:
        by_topic.setdefault((segment.topic, segment.partition), []).append(segment)
    for (topic, number), segments in by_topic.items():
        yield replace(partition, topic=topic, partition=number, segments=tuple(segments))


# ---------------------------------------------------------------- topics, partitions, offsets


def select_logs(logs: Sequence[Log], options: Options) -> list[Log]:
    """Return the logs that the options select, all copies of a partition or the newest as
    ``replicas`` says, merged with remote segments. Segments that the file options exclude are left
    out, and logs without any other. Raise OptionError if a named topic or partition is missing, a
    pattern matches internal topics only, two directories hold the same partition and ``replicas``
    is ``error``, or offsets or timestamps by partition do not name exactly the selected partitions.
    Raise DirectoryError or UnreadableError for mixed topics, as :func:`filter_logs`.
    """
    topics = sorted({log.topic for log in logs})
    if options.subscribe is not None:
        missing = sorted(set(options.subscribe) - set(topics))
        if missing:
            hint = (
                "; subscribe takes names: write a regular expression with subscribePattern"
                if any(map(is_topic_pattern, missing))
                else ""
            )
            raise OptionError("subscribe", _describe_missing("topic", missing, topics) + hint)
    elif options.assign is not None:
        absent = sorted(options.assign - {log.key for log in logs})
        if absent:
            names = [f"{topic}-{number}" for topic, number in absent]
            known = [f"{log.topic}-{log.partition}" for log in logs]
            raise OptionError("assign", _describe_missing("partition", names, known))
    found = filter_logs(logs, options)
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


def has_selection(options: Options) -> bool:
    """Return whether subscribe, subscribePattern or assign is given."""
    return (options.subscribe, options.subscribe_pattern, options.assign) != (None, None, None)


def is_selected(options: Options, key: tuple[str, int]) -> bool:
    """Return whether subscribe, subscribePattern or assign selects a topic partition, whether it
    exists or not. Without these options all are selected. The pattern may match any part of the
    topic's name. It selects internal topics only if a view is read.
    """
    topic, _ = key
    if options.subscribe is not None:
        return topic in options.subscribe
    if options.subscribe_pattern is not None:
        own = () if options.view is not None else INTERNAL
        return re.search(options.subscribe_pattern, topic) is not None and topic not in own
    return options.assign is None or key in options.assign


def filter_logs(logs: Sequence[Log], options: Options, ends: Ends | None = None) -> list[Log]:
    """Return the logs that the options select, all copies of a partition or the newest as
    ``replicas`` says, merged with remote segments, without segments that the file options exclude,
    and without logs that have none left. Named partitions may be missing. ``ends`` caches end
    offsets of remote segments between calls. Raise OptionError if two directories hold the same
    partition and ``replicas`` is ``error``; DirectoryError if copies state different topic ids and
    it is ``newest``; UnreadableError if tiered storage has copies of several topics with the same
    name, and it is unknown which of them exists, or if it is unknown which copy is the newest and
    damage is an error; else warn of that.
    """
    found = [log for log in logs if is_selected(options, log.key)]
    for error in find_mixed_topics(found).values():
        raise error
    replicas = options.selection.replicas
    if replicas == "error":
        _check_replicas(found)
    chosen = select_replicas(found, "newest" if replicas == "newest" else "keep")
    known = set(map(id, found))
    for unsure in (log.error for log in chosen if log.error is not None and id(log) not in known):
        if options.selection.raises:
            raise unsure
        warnings.warn(f"kafka-log: data may be missing: {unsure}", stacklevel=2)
    found = merge_tiered_segments(chosen, ends)
    return [log for one in found if (log := _filter_segments(one, options.files)) is not None]


def _filter_segments(log: Log, files: Files) -> Log | None:
    """Return a log with the segments that pathGlobFilter, modifiedAfter and modifiedBefore select;
    the log unchanged if none of these is set; None if no segment is left. Raise OSError if the
    system cannot tell the time of a file that exists.
    """
    if not files.are_filtered:
        return log
    kept = tuple(segment for segment in log.segments if _is_selected_file(segment, files))
    return replace(log, segments=kept) if kept else None


def _is_selected_file(segment: Segment, files: Files) -> bool:
    """Return whether a segment's file name matches the pattern, and its modification time lies
    between ``after`` and ``before`` (both exclusive). Return True for a missing file with a
    matching name: its reader reports it. Raise OSError if the system cannot tell the time of
    another file.
    """
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


def _describe_missing(what: str, missing: Sequence[str], known: Sequence[str]) -> str:
    """Return a message that names the missing topics or partitions, and up to 20 known ones."""
    there = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
    return f"no {what} {', '.join(missing)} in the path; there are: {there or 'none'}"


def _check_replicas(logs: Sequence[Log]) -> None:
    """Raise OptionError if two logs hold the same topic partition in the same segment state, since
    their records would be read twice.
    """
    seen: dict[tuple[str, int, State], Log] = {}
    for log in logs:
        other = seen.setdefault((*log.key, log.state), log)
        if other is not log:
            raise OptionError(
                "replicas",
                f"partition {log.partition} of topic {log.topic} lies in {other.directory} and in"
                f" {log.directory}: its records would be read twice. Load one of them, or set replicas to newest or keep",
            )


def _check_offsets(
    name: str, offsets: Bound | None, logs: Sequence[Log], what: str = "an offset"
) -> None:
    """Raise OptionError, which names the option ``name``, unless ``offsets`` has a number for each
    of ``logs`` and no other partition, as Spark's Kafka source requires. Accept None, and one
    number for all.
    """
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
