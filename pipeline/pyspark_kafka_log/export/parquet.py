"""Directories of Parquet files with Hive partitions. Files are staged until the export is complete.

``_kafka_log_export`` holds ``state.json``, a directory for the export that is running, and while files are renamed ``commit.json``, which lists
them. The next export finishes an interrupted commit. The lock of the directory admits one process at a time.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from kafka_log.write.output_files import sync
from kafka_log.write.output_lock import OUTPUT_LOCK, locked_output
from kafka_log.write.staged_output import open_staged_file
from pyspark_kafka_log.export.locations import Location
from pyspark_kafka_log.export.state import ExportError, State
from pyspark_kafka_log.export.writing import File, Job

OWN = "_kafka_log_export"
"""Spark, Hive and Arrow pass over directories that begin so."""


class ParquetTarget:
    """A directory of Parquet files as a :class:`~pyspark_kafka_log.export.job.Target`."""

    in_files = False
    secrets: Mapping[str, Any] = {}

    def __init__(self, out: Path) -> None:
        """Derive the paths of state and journal in the directory ``out``; nothing is created yet."""
        self.name = os.fspath(out)
        self.directory = out.absolute()
        self._own = self.directory / OWN
        self._state = self._own / "state.json"
        self._journal = self._own / "commit.json"

    def lock(self) -> AbstractContextManager[None]:
        """Return the lock of the directory, which is created."""
        return locked_output(self.directory)

    def state(self) -> State | None:
        """Finish an interrupted commit, remove leftover staged files, and return the state of
        earlier exports; None if nothing was exported yet. Raise ExportError if the directory has
        files but no export's private directory, or the state in its file or journal is invalid;
        OSError if a file cannot be read, moved or removed. The caller holds the lock.
        """
        if not self._own.is_dir():
            if any(child.name != OUTPUT_LOCK for child in self.directory.iterdir()):
                raise ExportError(
                    self.name, "the directory has files that no export wrote: choose another one"
                )
            return None
        self._finish()
        self._sweep()
        return self._read()

    def begin(self, job_id: str, schema: pa.Schema, partition_by: Sequence[str]) -> Location:
        """Return a new staging directory."""
        root = self._own / job_id
        root.mkdir(parents=True)
        return Location(os.fspath(root))

    def commit(self, job: Job, files: Sequence[File], before: State | None, after: State) -> None:
        """Write a journal, rename all staged files into their places, write the state ``after``,
        and remove journal and staging directory; ``before`` is not used. If that is interrupted,
        also by a power loss, the next export finishes it. Raise OSError if a file cannot be written
        or moved; ExportError if the present state is invalid.
        """
        root = Path(job.place.root).name
        journal = {
            "root": root,
            "files": [file.path for file in files],
            "state": after.to_json(),
        }
        _sync_directories(self._own, [f"{root}/{file.path}" for file in files])
        with open_staged_file(self._journal) as file:
            file.write(json.dumps(journal).encode("utf-8"))
        sync(self._own)
        sync(self.directory)
        self._finish()

    def clean(self, job_id: str) -> None:
        """Remove the staged files of a job, unless the next export must finish its commit."""
        if not self._journal.exists():
            shutil.rmtree(self._own / job_id, ignore_errors=True)

    def _read(self) -> State | None:
        """Return the state of earlier exports; None if the state file does not exist. Raise
        ExportError if it is invalid, OSError if it cannot be read.
        """
        try:
            return State.from_json(self.name, self._state.read_bytes())
        except FileNotFoundError:
            return None

    def _finish(self) -> None:
        """Complete the commit that the journal describes: rename the remaining staged files, write
        the state, and remove journal and staging directory. Skip files that are already renamed.
        Each step is on the disk before the next one begins. Do nothing without a journal. Raise
        ExportError if the journal or a state is invalid, or a file is missing; OSError if a file
        cannot be moved.
        """
        try:
            journal: dict[str, Any] = json.loads(self._journal.read_bytes())
            root, files, text = (
                self._own / journal["root"],
                list(journal["files"]),
                journal["state"],
            )
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError) as error:
            raise ExportError(
                self.name,
                f"{self._journal}, the journal of an interrupted export, cannot be read: {error}; restore it, or"
                " export to another directory",
            ) from None
        state = State.from_json(self.name, text)
        found = self._read()
        if found is None or found.number < state.number:
            for path in files:
                there, place = root / path, self.directory / path
                if there.exists():
                    place.parent.mkdir(parents=True, exist_ok=True)
                    there.replace(place)
                elif not place.exists():
                    raise ExportError(
                        self.name,
                        f"a file of an interrupted export is gone: {place}; restore it, or export to another directory",
                    )
            _sync_directories(self.directory, files)
            with open_staged_file(self._state) as file:
                file.write(state.to_json().encode("utf-8"))
            sync(self._own)
        self._journal.unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove everything but the state file from the private directory: what killed exports have
        staged. Ignore directories that cannot be removed; raise OSError if a file cannot.
        """
        for child in self._own.iterdir():
            if child.is_dir():
                shutil.rmtree(child, ignore_errors=True)
            elif child != self._state:
                child.unlink()


def _sync_directories(root: Path, files: Sequence[str]) -> None:
    """Write the entries of the directories from those of ``files`` up to ``root``, below which the
    paths of the files are, to the disk. Raise OSError if that fails.
    """
    for folder in {root / parent for path in files for parent in PurePosixPath(path).parents}:
        sync(folder)
