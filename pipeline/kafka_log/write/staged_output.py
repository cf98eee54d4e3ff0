"""Output files and partition directories that are written under temporary names and renamed when they are complete."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from codecgen.runtime.nouns import count_noun
from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log.logs.discovery import discover
from kafka_log.logs.log_identity import identify_log, identify_segment, resolve_directory
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.names import LOG_START, META, parse_live_partition_name
from kafka_log.logs.partitions import DirectoryError, Partition, Segment
from kafka_log.logs.replicas import read_log_end
from kafka_log.segment.paths import resolve_links
from kafka_log.write.manifest import Manifest
from kafka_log.write.output_files import OutputFile, open_output, sync
from kafka_log.write.output_lock import OUTPUT_LOCK, is_staged, staged_path


def find_log_start(starts: LogStarts, partition: Partition) -> int | None:
    """Return the log start offset of a partition from the checkpoint beside it. Return None if
    nothing states it, it is not above the first base offset, some of the segments are not live, or
    there are none. A damaged or unreadable checkpoint states nothing. Raise OSError if its directory
    may not be searched, or its store cannot be asked.

    Segments that are not live may lie before the log start offset.
    """
    if any(segment.state != "live" for segment in partition.segments):
        return None
    return starts.get(partition)


def clip_log_start(start: int | None, directory: Path) -> int | None:
    """Return ``start`` if it lies inside of the log that was written to ``directory``: above its
    first base offset, and not above its end (the offset after the last batch). Return None
    otherwise, for None, and if there is no segment or the end cannot be read. Raise OSError if the
    directory cannot be listed.

    A broker starts a log at the first offset of its first segment without a checkpoint, and
    deletes a log that ends before its log start offset.
    """
    found = discover(directory) if start is not None and any(directory.glob("*.log")) else []
    segments = [segment for partition in found for segment in partition.segments]
    end = read_log_end(segments)
    if start is None or end is None or not segments[0].base_offset < start <= end.offset:
        return None
    return start


def build_log_start_checkpoint(starts: Mapping[tuple[str, int], int]) -> bytes:
    """Return the bytes of the file ``log-start-offset-checkpoint`` for offsets by topic and
    partition, sorted by these; a file with 0 entries for none. Raise BuildError for a topic with
    blanks or a number out of range.
    """
    entries = [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in sorted(starts.items())
    ]
    return bytes(OFFSET_CHECKPOINT.build({"entries": entries}))


class OutputError(DirectoryError):
    """A directory that must not be written to, or that other jobs have written to. ``path`` is the directory."""


@contextmanager
def open_staged_file(path: Path) -> Iterator[OutputFile]:
    """Open a file under a temporary name for a ``with`` block. At the end sync it to the disk and
    rename it to ``path``, replacing a file there; if the block raises, remove it. Raise OSError,
    which names ``path``, if writing or renaming fails.
    """
    partial = staged_path(path)
    try:
        with open_output(partial) as file:
            yield file
            file.sync()
        partial.replace(path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        _name_target(error, partial, path)
        raise


def _name_target(error: BaseException, staged: Path, target: Path) -> None:
    """Replace the file name of an OSError at or below ``staged`` by the same name below ``target``,
    which it was to become. Do nothing for other errors.
    """
    if isinstance(error, OSError) and error.filename:
        path = Path(error.filename)
        if path.is_relative_to(staged):
            error.filename = os.fspath(target / path.relative_to(staged))
            del error.filename2  # None would be shown


class OutputDirectory:
    """The output directory of a job, with one directory for each partition.

    The caller holds its lock (:func:`~kafka_log.write.output_lock.locked_output`). A manifest says what each partition was made of, so that the
    same job continues where it stopped.

    Raises:
        OutputError: if the directory holds anything that this job did not write.
        OSError: if it cannot be read.
    """

    def __init__(self, out: Path, job: str) -> None:
        self.path = out
        self.job = job
        self._manifest = Manifest(out / manifest_name(job), ("made_of", "rows"))
        known = {OUTPUT_LOCK, self._manifest.path.name, *self._manifest}
        if self._log_starts():
            known.add(LOG_START)
        for child in sorted(out.iterdir()):
            if child.name in known or is_staged(child.name):
                continue
            raise OutputError(
                out,
                f"{child.name!r} is in the directory and was not written by this command: choose an empty directory",
            )

    def finished(
        self, name: str, source: Callable[[], Mapping[str, Any]]
    ) -> list[dict[str, Any]] | None:
        """Return the report rows of a partition that an earlier run wrote from the same source with
        the same options. Return None if the manifest or the output directory lacks it. Raise
        OutputError if it was made of another source or with other options, or the names or sizes of
        its files have changed; their bytes are not compared. Raise OSError if the manifest or the
        files cannot be read.

        Args:
            name: The name of the partition directory.
            source: Describes the source (:func:`describe_source`). Called only if the partition is there.
        """
        before = self._manifest.get(name)
        if before is None or not (self.path / name).exists():
            return None
        now = source()
        if not is_same_source(before["made_of"], now):
            why = describe_difference(before["made_of"], now)
            raise OutputError(
                self.path / name,
                f"the directory is the result of another command ({why}), and is not overwritten: choose another --out",
            )
        found = _list_sizes(self.path / name)
        if before.get("files", found) != found:
            raise OutputError(
                self.path / name,
                "its files were changed after they were written: choose another --out, or remove the directory to write it again",
            )
        rows: list[dict[str, Any]] = before["rows"]
        return rows

    @contextmanager
    def partition(
        self,
        name: str,
        made_of: Mapping[str, Any],
        rows: list[dict[str, Any]],
        log_start: int | None = None,
    ) -> Iterator[Path]:
        """Give an empty temporary directory for a partition to the ``with`` block. At its end sync
        the directory and its files, add it with its source ``made_of`` and the report ``rows`` to
        the manifest, and rename it to ``name``; if the block raises, remove it. Write ``log_start``
        (None: none) to a checkpoint of log start offsets if it lies inside the written log. Raise
        OSError if a file cannot be written, or ``name`` exists and is not empty.

        The block may add to `rows`.

        Args:
            name: The name of the partition directory.
            made_of: The description of its source (:func:`describe_source`).
            rows: The report rows of the partition, for the manifest.
            log_start: The log start offset of the source. It is written to a checkpoint in the output directory if a broker needs it.
        """
        partial = staged_path(self.path / name)
        try:
            partial.mkdir()
            yield partial
            for child in partial.iterdir():
                sync(child)
            sync(partial)
            # Said before it is there: what is there is always known.
            facts: dict[str, Any] = {"made_of": dict(made_of), "rows": rows}
            facts["files"] = _list_sizes(partial)
            start = clip_log_start(log_start, partial)
            if start is not None:
                facts["log_start"] = start
            self._manifest.add(name, facts)
            if start is not None or (self.path / LOG_START).exists():
                with open_staged_file(self.path / LOG_START) as file:
                    file.write(build_log_start_checkpoint(self._log_starts()))
            partial.rename(self.path / name)
            sync(self.path)
        except BaseException as error:
            shutil.rmtree(partial, ignore_errors=True)
            _name_target(error, partial, self.path / name)
            raise

    def _log_starts(self) -> dict[tuple[str, int], int]:
        """Return the log start offsets in the manifest, by topic and partition. Partitions without
        one, and names that are no partition's, are left out.
        """
        starts: dict[tuple[str, int], int] = {}
        for name in self._manifest:
            start = (self._manifest.get(name) or {}).get("log_start")
            place = None if start is None else parse_live_partition_name(Path(name))
            if start is not None and place is not None:
                starts[place] = start
        return starts


def _list_sizes(directory: Path) -> dict[str, int]:
    """Return the sizes of the files in a directory by their names. Raise OSError if it cannot be listed."""
    return {child.name: child.stat().st_size for child in directory.iterdir()}


def manifest_name(job: str) -> str:
    """Return the name of the file in which a job lists what it has written."""
    return f"kafka-log-{job}.jsonl"


def name_directories(partitions: Sequence[Partition]) -> list[str]:
    """Return the directory names of partitions, ``topic-number`` as brokers call them, in order.
    Raise OutputError if two partitions have the same topic and number.
    """
    seen: dict[str, Partition] = {}
    for partition in partitions:
        name = f"{partition.topic}-{partition.partition}"
        if name in seen:
            raise OutputError(
                partition.directory,
                f"this and {seen[name].directory} are the same partition: read one of them at a time",
            )
        seen[name] = partition
    return list(seen)


def describe_source(
    partition: Partition,
    options: Mapping[str, Any],
    log_start: int | None,
    snapshots: Sequence[Segment] = (),
) -> dict[str, Any]:
    """Return the facts that the output for a partition depends on, as JSON values. They are its
    directory, the identity of the log, names, sizes and digests of segments and ``snapshots``, the
    options that are not None, and the log start offset unless it is None. A digest covers samples of
    a file and its modification time (in a store only the time); None if the file cannot be read.
    """
    facts: dict[str, Any] = {
        "directory": resolve_directory(partition.directory),
        "log": identify_log(partition),
        "segments": [identify_segment(segment) for segment in partition.segments],
        "options": {name: value for name, value in options.items() if value is not None},
    }
    if log_start is not None:
        facts["log_start"] = log_start
    if snapshots:
        facts["snapshots"] = [identify_segment(snapshot) for snapshot in snapshots]
    found: dict[str, Any] = json.loads(json.dumps(facts, default=str, sort_keys=True))
    return found


def is_same_source(before: Any, now: Mapping[str, Any]) -> bool:
    """Return whether two descriptions of sources are equal, apart from the directory of the source."""
    if not isinstance(before, dict):
        return False
    return before | {"directory": None} == {**now, "directory": None}


def describe_difference(before: Any, now: Mapping[str, Any]) -> str:
    """Return in words how the source of a written partition differs from the present one. It is the
    first difference of log, segments, snapshots, options and log start, of which one must differ;
    "its origin is unknown" if ``before`` is no dict with directory, log and segments.
    """
    if not (isinstance(before, dict) and before.keys() >= {"directory", "log", "segments"}):
        return "its origin is unknown"
    if before["log"] != now["log"]:
        return f"of the log in {before['directory']}; {now['directory']} {_describe_identity_difference(before['log'], now['log'])}"
    if before["segments"] != now["segments"]:
        sizes = _segments(before["segments"])
        if sizes == _segments(now["segments"]):
            return "the bytes or modification times of its segments differ"
        return f"its segments were others: {sizes}, and now {_segments(now['segments'])}"
    if before.get("snapshots") != now.get("snapshots"):
        return "its metadata snapshots differ"
    was, wanted = before.get("options") or {}, now["options"]
    names = sorted(n for n in {*was, *wanted} if was.get(n) != wanted.get(n))
    if names:
        return f"it was written with other options: {', '.join(names)}"
    return f"its log started elsewhere: {before.get('log_start')}, and now {now.get('log_start')}"


def _describe_identity_difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return in words how the log ``now`` differs from ``before``: the names of the ids of
    :func:`identify_log` that are not equal. If a path is among them, and the topic ids are equal or
    both unknown, return instead that it is another log, or the same one in another place without
    its meta.properties.
    """
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if "path" in names and "topic_id" not in names:
        return "is another log, or the same one in another place without the meta.properties beside it that would say so"
    return f"holds another one, by its {', '.join(names)}"


def _segments(found: Any) -> str:
    """Return the number of segments and their bytes in words."""
    sizes = [one[1] for one in found]
    return f"{len(sizes)} with {count_noun(sum(sizes), 'byte')}"


def refuse_inside(out: Path, inputs: Sequence[Path]) -> None:
    """Raise OutputError if the directory ``out`` is one of the ``inputs`` or lies inside one, or
    inside the log directory of a broker, which has a ``meta.properties``. For a file among the inputs
    its partition directory counts; a file in no partition directory is not checked. Symbolic links
    are followed.
    """
    place = resolve_links(out)
    for parent in place.parents:
        if (parent / META).is_file():
            reason = f"it lies inside {parent}, a broker's log directory, and no broker starts with other directories there: choose a directory outside of it"
            raise OutputError(out, reason)
    for given in inputs:
        path = resolve_links(given)
        if not path.is_dir():
            path = path.parent
            if parse_live_partition_name(path) is None:
                continue  # a file by itself: it may lie anywhere
        if place == path or path in place.parents:
            raise OutputError(
                out, f"it lies inside {given}, which is read: choose a directory outside of it"
            )
