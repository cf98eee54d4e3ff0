"""Find the files of a plan that were renamed, deleted or moved to tiered storage before a task reads them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_log.logs.names import parse_include
from kafka_log.logs.partitions import DirectoryError, Segment
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.plan import Split
from kafka_log.segment.regular_files import is_unreachable
from kafka_log.segment.urls import is_url
from pyspark_kafka_log.options import OptionError, Options
from pyspark_kafka_log.splits.logs import find_logs
from pyspark_kafka_log.task_reader import Located


def locate_splits(splits: Iterable[Split], options: Options, *, fails: bool) -> tuple[Split, ...]:
    """Return splits in order with the present paths of their files: unchanged, renamed to
    ``.deleted``, or the copy in tiered storage if remote segments are included. If a file is found
    nowhere, drop its split with a warning; if ``fails`` is set, keep it unchanged, so that its
    reader reports it. A file in an object store is looked for under its own URL, and only unless
    ``fails`` is set. Raise OSError if the store cannot be asked.
    """
    out = []
    for part in splits:
        path = part.segment.path
        if is_url(path):
            # Nothing is renamed there before it is deleted; of a plan it is known that it was there.
            if fails or path.without_cache().exists():  # type: ignore[attr-defined]
                out.append(part)
            else:
                _warn_of_gone(path)
            continue
        if not _is_gone(path):
            out.append(part)
            continue
        deleted = path.with_name(path.name + ".deleted")
        if not _is_gone(deleted):
            part = replace(part, segment=replace(part.segment, path=deleted))
        elif (copy := _find_remote_copy(part.segment, options)) is not None:
            part = replace(part, segment=replace(part.segment, path=copy))
        elif not fails:
            _warn_of_gone(path)
            continue
        out.append(part)
    return tuple(out)


def make_locator(options: Options) -> Located:
    """Return a function that returns a split with the present path of its file. For a missing file
    it warns and returns None if ``ignoreMissingFiles`` is set, and returns the unchanged split
    otherwise. The function raises OSError if a store cannot be asked.
    """

    def locate(part: Split) -> Split | None:
        """Return the split with the present path of its file, None if the file is missing and may be ignored."""
        return next(
            iter(locate_splits((part,), options, fails=not options.files.ignore_missing)), None
        )

    return locate


def _is_gone(path: Path) -> bool:
    """Return whether nothing lies at a path. Return False for any other error of the file system,
    and for a dangling link: the reader of the file reports it.
    """
    try:
        path.stat()
    except FileNotFoundError:
        return not is_unreachable(path)
    except OSError:
        return False
    return False


def _find_remote_copy(segment: Segment, options: Options) -> Path | None:
    """Return the path of the copy in tiered storage that replaces a live segment: of the same
    partition and base offset, and at least as large. Return None if there is none, the segment is
    not live, the option ``include`` does not name remote segments, or the search fails.
    """
    if segment.state != "live" or "remote" not in parse_include(options.selection.include):
        return None
    try:
        found = find_logs(options)
    except (OptionError, DirectoryError, CodecError, OSError):
        return None  # who reads the segment says that it is gone
    copies = (
        replace(
            log, segments=tuple(s for s in log.segments if s.base_offset == segment.base_offset)
        )
        for log in found
        if log.state == "remote" and log.key == (segment.topic, segment.partition)
    )
    for log in merge_tiered_segments(copies):
        for one in log.segments:
            if one.state == "remote" and one.size >= segment.size:
                return one.path
    return None


def _warn_of_gone(path: Path) -> None:
    """Emit a Python warning that the file is gone and the query continues without its records."""
    warnings.warn(
        f"kafka-log: data is lost: {path} is gone (deleted before it was read), and the query continues without its records",
        stacklevel=3,
    )
