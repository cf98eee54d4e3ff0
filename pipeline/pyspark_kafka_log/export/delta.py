"""Delta tables, written by delta-rs: tasks write files, one commit adds them all and keeps the state of the export."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_kafka_log.export.locations import Location, options_of_delta
from pyspark_kafka_log.export.state import ExportError, State
from pyspark_kafka_log.export.writing import PARTITION_COLUMNS, File, Job

APPLICATION = "kafka-log-export"
"""Key of the number of exports in the table's log. Delta compares it when commits conflict."""

STATE = "kafkaLog.state"
"""Key of the state in the metadata of a commit."""


class DeltaTarget:
    """A Delta table as a :class:`~pyspark_kafka_log.export.job.Target`."""

    in_files = False

    def __init__(self, name: str, out: Location) -> None:
        """Prepare access to the table at ``out``, which messages call ``name``. Raises ImportError without deltalake."""
        import deltalake

        self._delta = deltalake
        self.name = name
        self._out = out
        self.directory = None if out.is_store else Path(out.root)
        self._options = options_of_delta(name, out)
        self.secrets = self._options or {}
        self._table: Any = None
        self._makes_directory = False

    def lock(self) -> AbstractContextManager[None]:
        """Return a context that does nothing: of two commits the table takes one."""
        return nullcontext()

    def state(self) -> State | None:
        """Return the state in the newest commit that an export made; None if no table exists and
        the location is empty or has files of exports only. Raise ExportError if other files are
        there, no export made the table, its history no longer has that commit, or the state is
        invalid. Errors of delta-rs and of the store pass.
        """
        if not self._is_there():
            if not self._out.is_free():
                raise ExportError(
                    self.name,
                    "the directory is not empty and is not a Delta table: choose another one",
                )
            return None
        self._table = self._open()
        number = self._table.transaction_version(APPLICATION)
        if number is None:
            raise ExportError(
                self.name,
                "the Delta table was not made by an export, and nothing is added to it: choose another table",
            )
        for commit in self._table.history():
            if STATE in commit:
                state = State.from_json(self.name, commit[STATE])
                if state.number == number:
                    return state
        raise ExportError(
            self.name,
            "the table's log no longer has the commit of the last export, so the offsets at which it ended are unknown:"
            " export to another table",
        )

    def begin(self, job_id: str, schema: pa.Schema, partition_by: Sequence[str]) -> Location:
        """Return the location of the table, whose log says which of its files count. Tasks create
        its directory, if it is local.
        """
        self._makes_directory = not self._out.is_store and not Path(self._out.root).exists()
        return self._out

    def commit(self, job: Job, files: Sequence[File], before: State | None, after: State) -> None:
        """Add files and the state ``after`` to the table in one commit. Create the table if
        ``before`` is None. Errors of delta-rs pass, such as that of another export's commit since
        :meth:`state`.
        """
        from deltalake.transaction import AddAction, create_table_with_add_actions

        now = time.time_ns() // 1_000_000
        actions = [
            AddAction(
                file.path,
                file.size,
                dict(zip(job.partition_by, file.values, strict=True)),
                now,
                True,
                statistics(file),
            )
            for file in files
        ]
        schema = table_schema(job)
        properties = self._delta.CommitProperties(
            custom_metadata={STATE: after.to_json()},
            app_transactions=[self._delta.Transaction(APPLICATION, after.number, now)],
        )
        if before is None:
            create_table_with_add_actions(
                self._out.root,
                schema,
                actions,
                partition_by=list(job.partition_by),
                storage_options=self._options,
                commit_properties=properties,
            )
        else:
            self._table.create_write_transaction(
                actions,
                "append",
                schema,
                partition_by=list(job.partition_by),
                commit_properties=properties,
            )

    def clean(self, job_id: str) -> None:
        """Remove the files of a job that are not part of the table, and empty local directories if
        the directory of the table was missing when the job began. Keep files of a commit that
        seemed to fail and yet has added them. Errors of delta-rs and of the store pass; nothing is
        removed if the table cannot be opened.
        """
        listed: list[str] = []
        if self._is_there():
            listed = self._open().get_add_actions()["path"].to_pylist()
        self._out.remove_unlisted(job_id, listed)
        if self._makes_directory:
            for folder, _, _ in os.walk(self._out.root, topdown=False):
                with suppress(OSError):  # it is not empty
                    Path(folder).rmdir()

    def _is_there(self) -> bool:
        """Return whether a Delta table exists at the location. Errors of the look-up pass, such as
        refused access.
        """
        return bool(self._delta.DeltaTable.is_deltatable(self._out.root, self._options))

    def _open(self) -> Any:
        """Open the table and return it. Raise deltalake's DeltaError if it cannot be opened."""
        return self._delta.DeltaTable(self._out.root, storage_options=self._options)


def table_schema(job: Job) -> Any:
    """Return the table's columns as a deltalake Schema: the columns of the job's files, then its
    partition columns in order.
    """
    from deltalake import Schema

    fields = list(job.schema)
    kinds: Mapping[str, Any] = {"topic": pa.string(), "partition": pa.int32(), "date": pa.date32()}
    assert kinds.keys() == set(PARTITION_COLUMNS)
    fields += [pa.field(name, kinds[name]) for name in job.partition_by]
    return Schema.from_arrow(pa.schema(fields))


def statistics(file: File) -> str:
    """Return a file's row count, minimum and maximum values as Delta's JSON. Round timestamps to
    milliseconds, minimum down and maximum up. Leave out timestamps that Python's datetime cannot
    hold, such as those after year 9999.
    """
    least: dict[str, Any] = dict(file.least)
    greatest: dict[str, Any] = dict(file.greatest)
    for name, values, up in (("timestamp", least, 0), ("timestamp", greatest, 999)):
        if name in values:
            text = _time((values[name] + up) // 1000)
            if text is None:
                del values[name]
            else:
                values[name] = text
    return json.dumps({"numRecords": file.rows, "minValues": least, "maxValues": greatest})


def _time(milliseconds: int) -> str | None:
    """Return a time, given in milliseconds since 1970, as ISO 8601 in UTC with ``Z``. Return None
    if Python's datetime cannot hold it.
    """
    from datetime import UTC, datetime, timedelta

    try:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
