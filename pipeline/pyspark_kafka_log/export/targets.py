"""Where an export goes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from pyspark_kafka_log.export.places import Place
from pyspark_kafka_log.export.state import State
from pyspark_kafka_log.export.writing import File, Job


class Target(Protocol):
    """A table that is added to, as a whole or not at all."""

    name: str
    in_files: bool
    """Whether partition columns are in the files too, not only in the names of directories."""

    def lock(self) -> AbstractContextManager[None]:
        """Return what keeps other processes from writing into the table, if commits alone do not. Raises
        :class:`~kafka_log.write.output_lock.OutputLockedError` while another one does."""

    def state(self) -> State | None:
        """What is in it; None for a table that is not there. Raises :class:`ExportError` for what is no table of an export."""

    def begin(self, job_id: str, schema: pa.Schema, partition_by: Sequence[str]) -> Place:
        """Where the tasks of a job write files of this schema."""

    def commit(self, job: Job, files: Sequence[File], before: State | None, after: State) -> None:
        """Add files. Raises :class:`ExportError`, and adds none, when another export was faster."""

    def clean(self, job_id: str) -> None:
        """Remove what a job has written, as far as it is not part of the table."""
