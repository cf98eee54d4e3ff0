"""Files and directories by their names: what a broker is about to delete, and what nothing reads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from codecgen.runtime.entry_points import EntryPoint
from codecgen.runtime.errors import CodecError
from codecgen.runtime.properties_file import PropertiesFile
from kafka_codecs import META_PROPERTIES, PARTITION_METADATA
from kafka_log.inspect.check.base import Check, are
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.metadata_snapshots import NAME as METADATA_SNAPSHOT
from kafka_log.logs.broker_files import (
    get_node_id,
    read_meta_properties,
    read_small_file,
    read_topic_id,
)
from kafka_log.logs.listing import is_directory
from kafka_log.logs.names import (
    BROKER_FILE_NAMES,
    META,
    State,
    parse_live_partition_name,
    parse_partition_name,
    prevents_broker_start,
)
from kafka_log.logs.partitions import SkippedPath
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.text.values import format_uuid

_OF_SEGMENT = re.compile(r"(?P<base>\d{20})\.(?P<suffix>log|index|timeindex|txnindex|snapshot)\Z")
_LEFT = re.compile(r".+\.(?P<suffix>deleted|cleaned|swap|part|tmp)\Z")
_DIRECTORY = re.compile(r".+\.[0-9a-f]{32}-(?P<suffix>delete|stray|future)\Z")
_OURS = re.compile(r"\.kafka-log-.+\.writing\Z|\..+\.partial\Z")
"""What jobs that write logs have not finished (:mod:`kafka_log.write.sink.staging`, :mod:`kafka_log.write.staged_output`)."""
_SAYS = re.compile(r"kafka-log-(salvage|cut|convert|reindex|export)\.jsonl\Z")
"""What such a job says of the partitions beside it (:mod:`kafka_log.write.staged_output`). A broker leaves it where it is."""
_TIERED = "kafka-tiered-storage"
_IN_PARTITION = {"leader-epoch-checkpoint", "partition.metadata", "quorum-state"}
_FILES = {
    "deleted": ("deleted_files", "A broker was about to delete {}"),
    "cleaned": ("cleaned_files", "The cleaner had not finished {}"),
    "swap": ("swap_files", "A broker was about to put {} in the place of segments"),
    "part": ("temporary_files", "Nobody has written to the end {}"),
    "tmp": ("temporary_files", "Nobody has written to the end {}"),
}
_DIRECTORIES = {
    "delete": ("delete_directory", "A broker was about to delete this partition"),
    "stray": ("stray_directory", "This partition does not belong to the broker any more"),
    "future": ("future_directory", "This copy of a partition was being moved to another disk"),
}


class NameCheck(Check):
    """Files of a partition's directory that are left out, and why; partition.metadata."""

    def end(self) -> Iterable[Finding]:
        directory = self.context.partition.directory
        if not self.context.is_whole or parse_live_partition_name(directory.resolve()) is None:
            return
        left: dict[str, list[Path]] = {}
        there = sorted(directory.iterdir())
        names = {path.name for path in there}
        for path in there:
            found = _LEFT.match(path.name)
            segment = _OF_SEGMENT.match(path.name)
            if found:
                left.setdefault(found["suffix"], []).append(path)
            elif segment:
                has_segment = f"{segment['base']}.log" in names
                yield from self._of_segment(
                    path, int(segment["base"]), segment["suffix"], has_segment
                )
            elif path.name not in _IN_PARTITION and not METADATA_SNAPSHOT.match(path.name):
                yield self.context.finding("note", *_nothing_reads(path))
        for one in self.context.partition.skipped_paths:
            if _OF_SEGMENT.match(one.path.name):
                yield self.context.finding("warning", *_no_segment(one))
        for suffix, paths in left.items():
            code, why = _FILES[suffix]
            size = are(sum(map(size_below, paths)), "byte")
            what = f"{are(len(paths), 'file')} with the ending .{suffix} ({size})"
            yield self.context.finding(
                "note",
                code,
                paths[0],
                f"{why.format(what)}{_unless(suffix in self.context.included)}.",
                "Nothing: the broker deals with them when it starts. Keep them if records are missing.",
            )
        yield from self._metadata(directory / "partition.metadata")

    def _of_segment(
        self, path: Path, base: int, suffix: str, has_segment: bool
    ) -> Iterator[Finding]:
        """Names that no segment can have, and indexes of one that is not there. Snapshots lie where a segment ends, too. A broker that is
        killed while it deletes a segment leaves such files, one that was stopped in order does not."""
        if suffix == "log" and base > MAX_OFFSET:
            yield self.context.finding(
                "error",
                "segment_name",
                path,
                f"The name says the offset {base}, more than an offset can be: no broker starts with it.",
                "Give the file the name of its first offset, or move it away.",
            )
            return
        is_told = any(base in offsets for offsets in self.context.missing)
        if suffix not in ("log", "snapshot") and not has_segment and not is_told:
            yield self.context.finding(
                "error" if self.context.broker.was_clean_shutdown else "note",
                "index_without_segment",
                path,
                f"There is no segment with the base offset {base}: nothing reads this index.",
                "Look for the segment; without it the broker deletes the index when it starts.",
                first_offset=base,
            )

    def _metadata(self, path: Path) -> Iterator[Finding]:
        found = unreadable(path, PARTITION_METADATA)
        if found is not None:
            yield self.context.finding(
                "warning",
                "partition_metadata",
                path,
                f"The file cannot be read: {found[0]}.",
                "Copy the file from another replica: it holds the id of the topic.",
                byte=found[1],
            )
        said = read_topic_id(path.parent)
        known = None if said is None else self.context.cluster.topic_id(self.context.key[0])
        if said is not None and known is not None and said != known:
            yield self.context.finding(
                "error",
                "topic_id",
                path,
                f"The topic's id is {format_uuid(said)} here, but {format_uuid(known)} by the metadata of the cluster: a broker takes the directory for that of a topic that was deleted.",
                "Copy the file from another replica of this partition before you start the broker, or keep a copy of the directory if the topic was made anew.",
            )


def _no_segment(one: SkippedPath) -> tuple[str, Path, str, str]:
    meaning = f"This has the name of a segment and is {one.reason}: neither a broker nor kafka-log reads it."
    remedy = "Find out who made it: a link may lead to a disk that is not mounted; move away what has no records."
    return "no_segment", one.path, meaning, remedy


def _unless(is_checked: bool) -> str:
    return "" if is_checked else ", not checked: --include checks them"


def check_broker_directory(directory: Path, included: frozenset[State]) -> Iterator[Finding]:
    """Check `meta.properties` and what lies beside the partitions of a log directory. Raise OSError."""
    there = sorted(directory.iterdir())
    is_tier = not any(path.name == META or parse_live_partition_name(path) for path in there)
    for path in there:
        found = _DIRECTORY.match(path.name)
        if is_directory(path) and prevents_broker_start(path.name):
            if not (is_tier and _is_copy(path)):
                yield _stops_brokers(path)
        elif found:
            code, why = _DIRECTORIES[found["suffix"]]
            yield Finding(
                "note",
                code,
                path,
                f"{why}: {are(size_below(path), 'byte')}{_unless(found['suffix'] in included)}.",
                "Nothing if that is what you expect.",
            )
        elif path.name.endswith(".tmp"):
            yield Finding(
                "note",
                "temporary_files",
                path,
                f"A file of {are(size_below(path), 'byte')} was not written to its end.",
                "Nothing: the broker does not read it.",
            )
        elif _SAYS.match(path.name):
            continue
        elif path.name not in BROKER_FILE_NAMES and not (
            is_directory(path) and parse_live_partition_name(path)
        ):
            yield Finding("note", *_nothing_reads(path))
    path = directory / META
    wrong = unreadable(path, META_PROPERTIES) or _without_ids(directory)
    if wrong is not None:
        remedy = "Correct it, or take it from a backup, before you start the broker: the other log directories of this node have the same ids of the node and the cluster."
        meaning = f"The file cannot be read: {wrong[0]}. No broker starts with it."
        yield Finding("error", "meta_properties", path, meaning, remedy, byte=wrong[1])


def unreadable(path: Path, codec: EntryPoint) -> tuple[str, int | None] | None:
    """Return why a text file cannot be read, with the line, and the byte; None if it can be read, or is not there."""
    data = b""
    try:
        data = read_small_file(path)
        codec.parse(data, file=os.fspath(path), strict=False)
    except FileNotFoundError:
        return None
    except CodecError as error:
        return _with_line(error, data, codec), error.where.position
    except OSError as error:
        return str(error), None
    return None


def _with_line(error: CodecError, data: bytes, codec: EntryPoint) -> str:
    """Return the reason of an error with the line of a text file, or with the key that no line has."""
    line = error.where.line
    keys = codec.by_key.items() if isinstance(codec, PropertiesFile) else ()
    key = next((key for key, found in keys if found.name == error.where.path), None)
    if key is not None and error.where.position == len(data) and key.encode() not in data:
        return f"it has no line with {key}"
    return error.reason if line is None else f"line {line}: {error.reason}"


def _without_ids(directory: Path) -> tuple[str, int | None] | None:
    """Why a meta.properties that can be read is none: brokers write at least one id."""
    found = read_meta_properties(directory)
    if found is None or get_node_id(found) is not None or found.cluster_id is not None:
        return None
    return "it has no id of the node and the cluster", None


def size_below(path: Path) -> int:
    """Bytes of a file, or of the files in a directory, as far as one may look into it."""
    try:
        if not path.is_dir() or path.is_symlink():
            return path.lstat().st_size
        return sum(size_below(child) for child in path.iterdir())
    except OSError:
        return 0


def _is_copy(path: Path) -> bool:
    """Whether a directory is of tiered storage, by its name."""
    name = parse_partition_name(path)
    return path.name == _TIERED or (name is not None and name.state == "remote")


def _stops_brokers(path: Path) -> Finding:
    size = are(size_below(path), "byte")
    if _OURS.match(path.name):
        what = f"kafka-log or Spark was writing here, and has not ended ({size})"
        remedy = "Before you start the broker give the command again, which goes on, or delete the directory."
    elif _is_copy(path):
        what = f"Copies in tiered storage lie here ({size})"
        remedy = "Move the directory out of the log directory before you start the broker."
    else:
        what = f"The name is not of a partition ({size})"
        remedy = "Find out who made it, and move it out of the log directory before you start the broker."
    return Finding(
        "error",
        "unknown_directory",
        path,
        f"{what}: no broker starts with such a directory in its log directory.",
        remedy,
    )


def _nothing_reads(path: Path) -> tuple[str, Path, str, str]:
    meaning = f"No broker reads what has this name: {are(size_below(path), 'byte')}."
    return "unknown_file", path, meaning, "Find out who made it; a broker leaves it where it is."
