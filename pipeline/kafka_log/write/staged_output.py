"""Directories of partitions that are written beside what they are made of, and take their names when they are whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log.logs.discovery import discover
from kafka_log.logs.log_identity import identify_log, identify_segment, resolve_directory
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.names import LOG_START, parse_live_partition_name
from kafka_log.logs.partitions import DirectoryError, Partition, Segment
from kafka_log.logs.replicas import read_log_end
from kafka_log.write.manifest import Manifest
from kafka_log.write.output_files import OutputFile, open_output, sync
from kafka_log.write.output_lock import OUTPUT_LOCK, is_staged, staged_path


def log_start(starts: LogStarts, partition: Partition) -> int | None:
    """The log start offset of a partition, None where nothing says it. Segments that are not live lie before it on purpose: with them
    it does not count."""
    if any(segment.state != "live" for segment in partition.segments):
        return None
    return starts.get(partition)


def kept(start: int | None, directory: Path) -> int | None:
    """The log start offset of a partition that is written, if it lies inside of its log: a broker takes the first offset of the first
    segment without being told, and throws a log away that ends before. Raises OSError."""
    found = discover(directory) if start is not None and any(directory.glob("*.log")) else []
    segments = [segment for partition in found for segment in partition.segments]
    end = read_log_end(segments)
    if start is None or end is None or not segments[0].base_offset < start <= end.offset:
        return None
    return start


def checkpoint(starts: Mapping[tuple[str, int], int]) -> bytes:
    """The bytes of the file with these log start offsets, by topic and partition."""
    entries = [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in sorted(starts.items())
    ]
    return bytes(OFFSET_CHECKPOINT.build({"entries": entries}))


class OutError(DirectoryError):
    """A directory in which nothing may be written. ``path`` is where."""


@contextmanager
def whole_file(path: Path) -> Iterator[OutputFile]:
    """Open a file that takes its name once it is whole, and is removed if it does not become so."""
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
    """Make an OSError of a file at or below ``staged`` name only the file that it was to become."""
    if isinstance(error, OSError) and error.filename:
        path = Path(error.filename)
        if path.is_relative_to(staged):
            error.filename = os.fspath(target / path.relative_to(staged))
            del error.filename2  # None would be shown


class OutDirectory:
    """Where a job writes a directory for each partition, while it holds the lock of the whole (:func:`~kafka_log.write.output_lock.locked_output`).
    A file beside them says what each was made of, so that the same job goes on where it ended, and no other one writes there.

    Raises :class:`OutError` for a place that holds anything else; OSError.
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
            raise OutError(
                out,
                f"{child.name!r} is in it, and not of this job: choose a directory that is empty",
            )

    def finished(
        self, name: str, source: Callable[[], Mapping[str, Any]]
    ) -> list[dict[str, Any]] | None:
        """What was said of a partition that is there, made of the same in the same way, which ``source`` tells; None when it is not there,
        and nobody looks at its source. Raises OutError when it is there, and made of something else."""
        before = self._manifest.get(name)
        if before is None or not (self.path / name).exists():
            return None
        now = source()
        if not is_same(before["made_of"], now):
            why = difference(before["made_of"], now)
            raise OutError(
                self.path / name,
                f"it is there, made of something else ({why}): choose another directory",
            )
        said: list[dict[str, Any]] = before["rows"]
        return said

    @contextmanager
    def partition(
        self,
        name: str,
        made_of: Mapping[str, Any],
        rows: list[dict[str, Any]],
        log_start: int | None = None,
    ) -> Iterator[Path]:
        """An empty directory for a partition, which takes its name in the end. ``rows`` are what is said of it then, ``log_start`` is
        the log start offset that it had; what of it a broker has to be told goes into a file beside the partitions."""
        partial = staged_path(self.path / name)
        try:
            partial.mkdir()
            yield partial
            for child in partial.iterdir():
                sync(child)
            sync(partial)
            # Said before it is there: what is there is always known.
            said: dict[str, Any] = {"made_of": dict(made_of), "rows": rows}
            start = kept(log_start, partial)
            if start is not None:
                said["log_start"] = start
            self._manifest.add(name, said)
            if start is not None or (self.path / LOG_START).exists():
                with whole_file(self.path / LOG_START) as file:
                    file.write(checkpoint(self._log_starts()))
            partial.rename(self.path / name)
            sync(self.path)
        except BaseException as error:
            shutil.rmtree(partial, ignore_errors=True)
            _name_target(error, partial, self.path / name)
            raise

    def _log_starts(self) -> dict[tuple[str, int], int]:
        starts: dict[tuple[str, int], int] = {}
        for name in self._manifest:
            start = (self._manifest.get(name) or {}).get("log_start")
            place = None if start is None else parse_live_partition_name(Path(name))
            if start is not None and place is not None:
                starts[place] = start
        return starts


def manifest_name(job: str) -> str:
    """The file in which a job says what it has made."""
    return f"kafka-log-{job}.jsonl"


def names_of(partitions: Sequence[Partition]) -> list[str]:
    """The directories that partitions are written to: as brokers call them. Raises OutError where two are the same."""
    seen: dict[str, Partition] = {}
    for partition in partitions:
        name = f"{partition.topic}-{partition.partition}"
        if name in seen:
            raise OutError(
                partition.directory,
                f"this and {seen[name].directory} are the same partition: read one of them at a time",
            )
        seen[name] = partition
    return list(seen)


def made_of(
    partition: Partition,
    options: Mapping[str, Any],
    log_start: int | None,
    snapshots: Sequence[Segment] = (),
) -> dict[str, Any]:
    """What a partition is made of: which log it is, its segments, where its log starts if that is known, the ``snapshots`` that are
    copied beside it, and how. As values of JSON."""
    said: dict[str, Any] = {
        "directory": resolve_directory(partition.directory),
        "log": identify_log(partition),
        "segments": [identify_segment(segment) for segment in partition.segments],
        "options": {name: value for name, value in options.items() if value is not None},
    }
    if log_start is not None:
        said["log_start"] = log_start
    if snapshots:
        said["snapshots"] = [identify_segment(snapshot) for snapshot in snapshots]
    found: dict[str, Any] = json.loads(json.dumps(said, default=str, sort_keys=True))
    return found


def is_same(before: Any, now: Mapping[str, Any]) -> bool:
    """Whether two things are made of the same, wherever it lies."""
    if not isinstance(before, dict):
        return False
    return before | {"directory": None} == {**now, "directory": None}


def difference(before: Any, now: Mapping[str, Any]) -> str:
    """What is not the same, for people."""
    if not (isinstance(before, dict) and before.keys() >= {"directory", "log", "segments"}):
        return "nobody knows of what"
    if before["log"] != now["log"]:
        return f"of the log in {before['directory']}; {now['directory']} {_unlike(before['log'], now['log'])}"
    if before["segments"] != now["segments"]:
        sizes = _segments(before["segments"])
        if sizes == _segments(now["segments"]):
            return "its segments had other bytes, or were written at another time"
        return f"its segments were others: {sizes}, and now {_segments(now['segments'])}"
    if before.get("snapshots") != now.get("snapshots"):
        return "its snapshots of the metadata were others"
    was, wanted = before.get("options") or {}, now["options"]
    names = sorted(n for n in {*was, *wanted} if was.get(n) != wanted.get(n))
    if names:
        return f"it was asked for with another choice: {', '.join(names)}"
    return f"its log started elsewhere: {before.get('log_start')}, and now {now.get('log_start')}"


def _unlike(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if "path" in names and "topic_id" not in names:
        return "is another log, or the same one in another place without the meta.properties beside it that would say so"
    return f"holds another one, by its {', '.join(names)}"


def _segments(found: Any) -> str:
    sizes = [one[1] for one in found]
    return f"{len(sizes)} with {sum(sizes)} bytes"


def refuse_inside(out: Path, inputs: Sequence[Path]) -> None:
    """Raises :class:`OutError` for a place that is inside of what is read."""
    place = out.resolve()
    for given in inputs:
        path = given.resolve()
        if not path.is_dir():
            path = path.parent
            if parse_live_partition_name(path) is None:
                continue  # a file by itself: it may lie anywhere
        if place == path or path in place.parents:
            raise OutError(out, f"it is inside of {given}, which is read: choose another directory")
