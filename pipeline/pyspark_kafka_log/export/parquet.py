"""A directory of Parquet files, parted as Hive has it. What an export writes lies beside until it is whole.

``_kafka_log_export`` holds ``state.json``, a directory for the export that goes on, and while files take their places ``commit.json``, which
says which they are: an export that was ended there is finished by the next one. One process at a time writes: it holds the lock of the directory.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_log.write.output_lock import OUTPUT_LOCK, locked_output
from kafka_log.write.staged_output import open_staged_file
from pyspark_kafka_log.export.places import Location
from pyspark_kafka_log.export.state import ExportError, State
from pyspark_kafka_log.export.writing import File, Job

OWN = "_kafka_log_export"
"""Spark, Hive and Arrow pass over directories that begin so."""


class ParquetTarget:
    """See :class:`~pyspark_kafka_log.export.job.Target`."""

    in_files = False

    def __init__(self, out: Path) -> None:
        self.name = os.fspath(out)
        self._out = out.absolute()
        self._own = self._out / OWN
        self._state = self._own / "state.json"
        self._journal = self._own / "commit.json"

    def lock(self) -> AbstractContextManager[None]:
        """Return the lock of the directory, which is created."""
        return locked_output(self._out)

    def state(self) -> State | None:
        """What is in the directory, after what an earlier export left half done."""
        if not self._own.is_dir():
            if any(child.name != OUTPUT_LOCK for child in self._out.iterdir()):
                raise ExportError(
                    self.name, "there are files in it, and not of an export: choose another place"
                )
            return None
        self._finish()
        self._sweep()
        return self._read()

    def begin(self, job_id: str, schema: pa.Schema, partition_by: Sequence[str]) -> Location:
        """Beside the files that are there."""
        root = self._own / job_id
        root.mkdir(parents=True)
        return Location(os.fspath(root))

    def commit(self, job: Job, files: Sequence[File], before: State | None, after: State) -> None:
        """Rename files into their places, all of them or, if it is ended there, the rest when the next export begins."""
        journal = {
            "root": Path(job.place.root).name,
            "files": [file.path for file in files],
            "state": after.to_json(),
        }
        with open_staged_file(self._journal) as file:
            file.write(json.dumps(journal).encode("utf-8"))
        self._finish()

    def clean(self, job_id: str) -> None:
        """Remove what a job has written, but for what the next export finishes."""
        if not self._journal.exists():
            shutil.rmtree(self._own / job_id, ignore_errors=True)

    def _read(self) -> State | None:
        try:
            return State.from_json(self.name, self._state.read_text("utf-8"))
        except FileNotFoundError:
            return None

    def _finish(self) -> None:
        """Do what the journal says, if there is one. It may have been done in part."""
        try:
            journal: dict[str, Any] = json.loads(self._journal.read_bytes())
        except FileNotFoundError:
            return
        root = self._own / journal["root"]
        state = State.from_json(self.name, journal["state"])
        found = self._read()
        if found is None or found.number < state.number:
            for path in journal["files"]:
                there = root / path
                if there.exists():
                    place = self._out / path
                    place.parent.mkdir(parents=True, exist_ok=True)
                    there.replace(place)
            with open_staged_file(self._state) as file:
                file.write(state.to_json().encode("utf-8"))
        self._journal.unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what exports left that were killed."""
        for child in self._own.iterdir():
            if child.is_dir():
                shutil.rmtree(child, ignore_errors=True)
            elif child != self._state:
                child.unlink()
