"""Files of a plan that have moved by the time a task reads them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_log.logs.names import parse_include
from kafka_log.logs.partitions import DirectoryError, Segment
from kafka_log.read.plan import Split
from kafka_log.segment.places import is_url
from pyspark_kafka_log.logs import find_logs
from pyspark_kafka_log.options import OptionError, Options
from pyspark_kafka_log.task_reader import Located


def there_still(splits: Iterable[Split], options: Options, *, fails: bool) -> tuple[Split, ...]:
    """The splits of a task where its files are by now: brokers rename what they delete, and delete it a minute later; and what tiered storage
    has they delete at once. What is gone is left out with a warning, unless that ``fails`` a query: then whoever reads it meets it."""
    out = []
    for part in splits:
        path = part.segment.path
        if is_url(path):
            # Nothing is renamed there before it is deleted; of a plan it is known that it was there.
            if fails or path.anew().exists():  # type: ignore[attr-defined]
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
        elif (copy := _copy(part.segment, options)) is not None:
            part = replace(part, segment=replace(part.segment, path=copy))
        elif not fails:
            _warn_of_gone(path)
            continue
        out.append(part)
    return tuple(out)


def located(options: Options) -> Located:
    """Says where a split lies when its turn comes. What is gone is left out if that is asked for."""

    def where(part: Split) -> Split | None:
        return next(
            iter(there_still((part,), options, fails=not options.files.ignore_missing)), None
        )

    return where


def _is_gone(path: Path) -> bool:
    """Whether there is no such file. Where that cannot be said, who reads it says why."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _copy(segment: Segment, options: Options) -> Path | None:
    """The copy in tiered storage of a segment that was live; it has the same bytes. None where there is none, or none is asked for."""
    if segment.state != "live" or "remote" not in parse_include(options.selection.include):
        return None
    try:
        found = find_logs(options)
    except (OptionError, DirectoryError, CodecError, OSError):
        return None  # who reads the segment says that it is gone
    for log in found:
        for one in log.segments if log.key == (segment.topic, segment.partition) else ():
            same = one.base_offset == segment.base_offset and one.size >= segment.size
            if one.state == "remote" and same:
                return one.path
    return None


def _warn_of_gone(path: Path) -> None:
    warnings.warn(f"kafka-log: data is lost: {path} is gone", stacklevel=3)
