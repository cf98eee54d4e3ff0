"""Check of file and directory names: unfinished work of brokers, unknown files, and files with ids."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from codecgen.runtime.entry_points import EntryPoint
from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.properties_file import PropertiesFile
from kafka_codecs import META_PROPERTIES, PARTITION_METADATA
from kafka_log.inspect.check.base import Check
from kafka_log.inspect.check.catalog import Severity
from kafka_log.inspect.check.finding import Finding, make_finding
from kafka_log.inspect.check.metadata_snapshots import NAME as METADATA_SNAPSHOT
from kafka_log.logs.broker_files import (
    find_topic_id,
    get_node_id,
    read_meta_properties,
    read_small_file,
)
from kafka_log.logs.listing import is_directory
from kafka_log.logs.names import (
    BROKER_FILE_NAMES,
    LEADER_EPOCHS,
    META,
    RECOVERY_POINT,
    State,
    parse_live_partition_name,
    parse_partition_name,
    prevents_broker_start,
)
from kafka_log.segment.paths import resolve_links
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.text.values import format_uuid

_OF_SEGMENT = re.compile(r"(?P<base>\d{20})\.(?P<suffix>log|index|timeindex|txnindex|snapshot)\Z")
_NUMBER = re.compile(r"[+]?[0-9]+\Z")
_LEFT = re.compile(r".+\.(?P<suffix>deleted|cleaned|swap|part|tmp)\Z")
_DIRECTORY = re.compile(r".+\.[0-9a-f]{32}-(?P<suffix>delete|stray|future)\Z")
_OURS = re.compile(r"\.kafka-log-.+\.writing\Z|\..+\.partial\Z")
"""Staged output of commands that write logs (:mod:`kafka_log.write.sink.staging`, :mod:`kafka_log.write.staged_output`)."""
_SAYS = re.compile(r"kafka-log-(salvage|cut|convert|reindex|export)\.jsonl\Z")
"""Reports of such commands (:mod:`kafka_log.write.staged_output`). A broker does not touch them."""
_TIERED = "kafka-tiered-storage"
_IN_PARTITION = {LEADER_EPOCHS, "partition.metadata", "quorum-state"}
_FILES = {
    "deleted": ("deleted_files", "A broker was about to delete"),
    "cleaned": ("cleaned_files", "The log cleaner had not finished"),
    "swap": ("swap_files", "A broker was about to replace segments by"),
    "part": ("temporary_files", "Not renamed to a final name:"),
    "tmp": ("temporary_files", "Not renamed to a final name:"),
}
_WHY_LEFT = {
    "note": "A broker that is killed while it deletes a segment leaves such a file.",
    "warning": "The index is empty, and the log had not gone past its base offset when the broker was shut down cleanly.",
    "error": "A broker that was shut down cleanly leaves no index without its segment: the segment may have been removed.",
}
"""Why an index without its segment exists, by the severity of the finding."""
_DIRECTORIES = {
    "delete": ("delete_directory", "A broker was about to delete this partition"),
    "stray": ("stray_directory", "This partition no longer belongs to the broker"),
    "future": ("future_directory", "A broker was moving this copy of a partition to another disk"),
}


class NameCheck(Check):
    """Reports files of a partition directory that brokers do not read, indexes without a segment,
    impossible segment names, and a partition.metadata that cannot be parsed or contradicts the
    cluster metadata.
    """

    def check_end(self) -> Iterable[Finding]:
        directory = self.context.partition.directory
        if not self.context.is_whole or parse_live_partition_name(resolve_links(directory)) is None:
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
                yield from self._check_segment_file(
                    path, int(segment["base"]), segment["suffix"], has_segment
                )
            elif path.name.endswith(".log") and path.is_file():
                yield self.context.finding("segment_name", path, _describe_misnamed(path.name))
            elif path.name not in _IN_PARTITION and not METADATA_SNAPSHOT.match(path.name):
                yield self.context.finding("unknown_file", path, _describe_unknown_file(path))
        for suffix, paths in left.items():
            code, why = _FILES[suffix]
            what = f"{count_noun(len(paths), 'file')} with the suffix .{suffix}"
            size = _describe_size(sum(map(total_size, paths)), suffix, self.context.included)
            yield self.context.finding(code, paths[0], f"{why} {what} ({size}).")
        yield from self._check_metadata(directory / "partition.metadata")

    def _check_segment_file(
        self, path: Path, base: int, suffix: str, has_segment: bool
    ) -> Iterator[Finding]:
        """Yield ``segment_name`` for a .log whose base offset is larger than offsets can be. Yield
        ``index_without_segment`` for an index without a segment (``has_segment`` False), unless its
        offsets are already reported as missing: a note without a clean shutdown; a warning if it is
        empty and the log had not reached more than its base offset; else an error. Producer
        snapshots are not reported. Raise OSError if the index is gone.

        A broker that is killed while it deletes a segment leaves indexes. A clean shutdown leaves none. Producer
        snapshots exist without a segment too: at the end of the log.
        """
        if suffix == "log" and base > MAX_OFFSET:
            yield self.context.finding(
                "segment_name",
                path,
                f"The name is the offset {base}, which is larger than offsets can be. No broker starts with the file.",
            )
            return
        is_reported = any(base in offsets for offsets in self.context.missing)
        if suffix not in ("log", "snapshot") and not has_segment and not is_reported:
            severity = self._judge_index(path, base)
            yield self.context.finding(
                "index_without_segment",
                path,
                f"There is no segment with the base offset {base}, so no broker reads the index. {_WHY_LEFT[severity]}",
                severity=severity,
                first_offset=base,
            )

    def _judge_index(self, path: Path, base: int) -> Severity:
        """Return the severity of an index whose segment ``base`` does not exist. It is a note
        without a clean shutdown; a warning if the file is empty and the recovery point is known and
        not above ``base``; else an error. Raise OSError if the index is gone.
        """
        broker = self.context.broker
        if not broker.was_clean_shutdown:
            return "note"
        reached = broker.offset(RECOVERY_POINT, self.context.key)  # by a clean shutdown: the end
        is_at_end = reached is not None and reached <= base
        return "warning" if is_at_end and not path.lstat().st_size else "error"

    def _repair_topic_id(self) -> str | None:
        """Return the remedy for an unreadable partition.metadata with the topic id that the cluster
        metadata has; None (the remedy of the catalog) if it has none.
        """
        known = self.context.cluster.topic_id(self.context.key[0])
        if known is None:
            return None
        return (
            "Stop the broker and copy the file from another replica or from another partition of the topic, or correct its line to"
            f" topic_id: {format_uuid(known)}, the id of the topic in the cluster metadata. Do not start the broker without the file: it may rename the"
            " directory to -stray."
        )

    def _check_metadata(self, path: Path) -> Iterator[Finding]:
        """Yield ``partition_metadata`` if partition.metadata cannot be parsed or read, or its topic
        id is zero. Yield ``topic_id`` if its topic id is not that of the topic in the cluster
        metadata; if the metadata does not know the topic, ids are not compared. Yield nothing if
        the file does not exist.
        """
        found = find_text_problem(path, PARTITION_METADATA)
        said, hidden = find_topic_id(path.parent)
        if found is None and hidden is not None:
            found = hidden.reason, None
        if found is not None:
            yield self.context.finding(
                "partition_metadata",
                path,
                f"A broker cannot read the file: {found[0]}. It takes the log directory offline, or does not start.",
                remedy=self._repair_topic_id(),
                byte=found[1],
            )
        known = None if said is None else self.context.cluster.topic_id(self.context.key[0])
        if said is not None and known is not None and said != known:
            right = format_uuid(known)
            other = self.context.cluster.topic_of(said)
            if other is None:
                meaning = f"The topic id is {format_uuid(said)} here, but {right} in the cluster metadata of this directory. A broker renames the directory to -stray and begins an empty partition."
            else:
                meaning = f"The topic id is {format_uuid(said)} here, which the cluster metadata gives to topic {other}. The id of this topic is {right}. A broker does not serve this partition, nor those that it loads after it."
            yield self.context.finding(
                "topic_id",
                path,
                meaning,
                remedy=f"Do not start the broker. If the records belong to the topic with id {right}, copy the file from another replica or write topic_id: {right} into it. If the topic was deleted and recreated, move the directory away and keep it.",
            )


def _describe_size(size: int, state: str, included: frozenset[State]) -> str:
    """Return a number of bytes in words. If ``state`` is a state of segments that is not in
    ``included``, add how to check them.
    """
    what = count_noun(size, "byte")
    if state in included or state not in get_args(State):
        return what
    return f"{what}, not checked: add --include {state} to check"


def _describe_misnamed(name: str) -> str:
    """Return the sentences about a file that ends in .log and has no name of a segment. A broker
    takes the number before the first dot for a base offset, and opens the file of 20 digits. If
    that is not a number up to MAX_OFFSET, they say that no broker starts.
    """
    number = name.partition(".")[0]
    if not _NUMBER.match(number) or int(number) > MAX_OFFSET:
        return "The name ends in .log, but does not begin with an offset. No broker starts with the file."
    return (
        f"The name is not an offset of 20 digits. A broker opens {int(number):020d}.log in place of this"
        " file, which it creates empty if it does not exist."
    )


def check_broker_directory(directory: Path, included: frozenset[State]) -> Iterator[Finding]:
    """Yield findings about the files and directories of a log directory that are no live
    partitions. They are about directories that keep a broker from starting, -delete, -stray and
    -future directories, .tmp files, and other files that no broker reads, except reports of
    kafka-log. They are also about a meta.properties that is unreadable, or has neither node id nor
    cluster id. If the state of a directory is not in ``included``, its finding says how to check
    it. Raise OSError if the directory cannot be listed.

    Copies of tiered storage are reported only beside meta.properties or live partitions.
    """
    there = sorted(directory.iterdir())
    is_tier = not any(path.name == META or parse_live_partition_name(path) for path in there)
    for path in there:
        found = _DIRECTORY.match(path.name)
        if is_directory(path) and prevents_broker_start(path.name):
            if not (is_tier and _is_tiered_copy(path)):
                yield _unknown_directory(path)
        elif found:
            code, why = _DIRECTORIES[found["suffix"]]
            name = parse_partition_name(path)
            yield make_finding(
                code,
                path,
                f"{why} ({_describe_size(total_size(path), found['suffix'], included)}).",
                topic=None if name is None else name.topic,
                partition=None if name is None else name.partition,
            )
        elif path.name.endswith(".tmp"):
            yield make_finding(
                "temporary_files",
                path,
                f"The broker stopped before it renamed this file of {count_noun(total_size(path), 'byte')}. It may be incomplete.",
            )
        elif _SAYS.match(path.name):
            continue
        elif path.name not in BROKER_FILE_NAMES and not (
            is_directory(path) and parse_live_partition_name(path)
        ):
            yield make_finding("unknown_file", path, _describe_unknown_file(path))
    path = directory / META
    wrong = find_text_problem(path, META_PROPERTIES) or _missing_ids(directory)
    if wrong is not None:
        meaning = f"The file cannot be read: {wrong[0]}. No broker starts with it."
        yield make_finding("meta_properties", path, meaning, byte=wrong[1])


def find_text_problem(path: Path, codec: EntryPoint) -> tuple[str, int | None] | None:
    """Return why ``codec`` cannot parse a text file, or why it cannot be read, with the byte of the
    error (None if unknown). Return None if it does not exist or can be parsed. The parser is
    lenient: what the codec tolerates is no problem.
    """
    data = b""
    try:
        data = read_small_file(path)
        codec.parse(data, file=os.fspath(path), strict=False)
    except FileNotFoundError:
        return None
    except CodecError as error:
        return _describe_error(error, data, codec), error.where.position
    except OSError as error:
        return str(error), None
    return None


def _describe_error(error: CodecError, data: bytes, codec: EntryPoint) -> str:
    """Return the reason of a parse error, after the line number if it is known. If ``codec`` reads
    a properties file and the error is that a required key is missing, return that the file has no
    line with it.
    """
    line = error.where.line
    keys = codec.by_key.items() if isinstance(codec, PropertiesFile) else ()
    key = next((key for key, found in keys if found.name == error.where.path), None)
    if key is not None and error.where.position == len(data) and key.encode() not in data:
        return f"it has no line with {key}"
    return error.reason if line is None else f"line {line}: {error.reason}"


def _missing_ids(directory: Path) -> tuple[str, int | None] | None:
    """Return a reason and None (for the byte) if meta.properties has neither a node id nor a
    cluster id; ``broker.id`` counts as node id. Return None otherwise, also if the file is missing
    or cannot be parsed.
    """
    found = read_meta_properties(directory)
    if found is None or get_node_id(found) is not None or found.cluster_id is not None:
        return None
    return "it has neither a node id nor a cluster id", None


def total_size(path: Path) -> int:
    """Return the size in bytes of a file, or of all files below a directory. A symbolic link counts
    by its own size and is not followed; a file or directory that cannot be read counts as 0.
    """
    try:
        if not path.is_dir() or path.is_symlink():
            return path.lstat().st_size
        return sum(total_size(child) for child in path.iterdir())
    except OSError:
        return 0


def _is_tiered_copy(path: Path) -> bool:
    """Return whether a directory belongs to tiered storage, by its name."""
    name = parse_partition_name(path)
    return path.name == _TIERED or (name is not None and name.state == "remote")


def _unknown_directory(path: Path) -> Finding:
    """Return the ``unknown_directory`` error about a directory that keeps a broker from starting,
    with its size. By the name, sentence and remedy say that it is unfinished output of kafka-log or
    Spark, a copy of tiered storage, or (with the remedy of the catalog) not a partition.
    """
    size = count_noun(total_size(path), "byte")
    remedy = None
    if _OURS.match(path.name):
        what = f"kafka-log or Spark has not finished writing here ({size})"
        remedy = "Before you start the broker, repeat the command, which continues, or delete the directory."
    elif _is_tiered_copy(path):
        what = f"The directory has copies of tiered storage ({size})"
        remedy = "Move the directory out of the log directory before you start the broker."
    else:
        what = f"The name is not that of a partition ({size})"
    return make_finding(
        "unknown_directory",
        path,
        f"{what}. No broker starts with such a directory in its log directory.",
        remedy=remedy,
    )


def _describe_unknown_file(path: Path) -> str:
    """Return the sentence about a file or directory that no broker reads, with its size."""
    return f"No broker reads a file of this name ({count_noun(total_size(path), 'byte')})."
