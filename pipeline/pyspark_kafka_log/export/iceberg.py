"""Iceberg tables, written by PyIceberg: tasks write files, one commit adds them all and keeps the state of the export in a property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa

from kafka_log.segment.remote_errors import as_os_error
from pyspark_kafka_log.export.locations import Location, options_of_iceberg, table_location
from pyspark_kafka_log.export.state import CHANGED, ExportError, State
from pyspark_kafka_log.export.writing import File, Job

STATE = "kafka-log.export.state"
"""The property that keeps the state."""


class IcebergTarget:
    """An Iceberg table as a :class:`~pyspark_kafka_log.export.job.Target`.

    ``catalog`` is a name in PyIceberg's configuration, the properties of a catalog (its ``name`` among them), or None for the default.
    """

    in_files = True
    directory = None  # the catalog says where the files lie

    def __init__(self, table: str, catalog: str | Mapping[str, str] | None) -> None:
        """Load the catalog. Raises ExportError if ``table`` has no namespace, or the catalog is not configured or does not answer; ImportError without PyIceberg."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.utils.config import Config

        if "." not in table:
            raise ExportError(table, "an Iceberg table needs a namespace: NAMESPACE.TABLE")
        self.name = table
        given = (
            {"name": "default", **catalog} if isinstance(catalog, Mapping) else {"name": catalog}
        )
        try:
            self._catalog = load_catalog(**given)
        except ValueError as error:
            raise ExportError(
                table, f"the catalog is not in PyIceberg's configuration, or not complete: {error}"
            ) from None
        except Exception as error:  # a catalog has errors of its own, and those of its libraries
            known = Config().get_catalog_config(given["name"] or "default") or {}
            secrets = {**known, **given, "name": ""}
            said = as_os_error(error, table, secrets)
            raise ExportError(table, f"the catalog cannot be used: {said.strerror}") from error
        self.secrets: Mapping[str, Any] = self._catalog.properties
        self._table: Any = None

    def lock(self) -> AbstractContextManager[None]:
        """Return a context that does nothing: of two commits the table takes one."""
        return nullcontext()

    def state(self) -> State | None:
        """Return the state in the table's property. Return None if no table exists, or one without
        the property and without snapshots, as an interrupted export leaves. Raise ExportError if
        the table has a snapshot that no export made, or an invalid state. Errors of the catalog
        pass.
        """
        if not self._catalog.table_exists(self.name):
            return None
        self._table = self._catalog.load_table(self.name)
        text = self._table.properties.get(STATE)
        if text is not None:
            return State.from_json(self.name, text)
        if self._table.current_snapshot() is not None:
            raise ExportError(
                self.name,
                "the Iceberg table was not made by an export, and nothing is added to it: choose another table",
            )
        return None

    def begin(self, job_id: str, schema: pa.Schema, partition_by: Sequence[str]) -> Location:
        """Return the location of the table's data files. If no table was found by :meth:`state`,
        create its namespace if needed, and an empty table with ``schema``, partitioned by
        ``partition_by``; ``date`` becomes the day of the timestamp. Raise ExportError if an empty
        table without a state has other columns or partitions, or if the table, also a new one, lies
        neither in a directory nor in S3. Errors of the catalog pass; no table is created then.
        """
        from pyiceberg.transforms import DayTransform, IdentityTransform

        parts: list[tuple[str, Any, str]] = [
            ("timestamp", DayTransform(), name)
            if name == "date"
            else (name, IdentityTransform(), name)
            for name in partition_by
        ]
        if self._table is None:
            self._catalog.create_namespace_if_not_exists(self.name.rpartition(".")[0])
            with (
                self._catalog.create_table_transaction(self.name, schema) as change,
                change.update_spec() as spec,
            ):
                for part in parts:
                    spec.add_field(*part)
            self._table = self._catalog.load_table(self.name)
        elif STATE not in self._table.properties:
            columns = self._table.schema()
            found = [
                (columns.find_column_name(one.source_id), one.transform, one.name)
                for one in self._table.spec().fields
            ]
            if found != parts or [one.name for one in columns.fields] != schema.names:
                raise ExportError(
                    self.name,
                    "the Iceberg table is empty, and has other columns or partitions than this export: drop the table, or choose another one",
                )
        return self._location()

    def commit(self, job: Job, files: Sequence[File], before: State | None, after: State) -> None:
        """Add files and the state ``after`` to the table in one commit. PyIceberg retries it if
        another writer is faster; raise ExportError if that writer was another export, or the
        retries fail.
        """
        from pyiceberg.exceptions import CommitFailedException

        base = self._uri()
        known = None if before is None else before.to_json()
        refresh = self._table.refresh

        def refresh_unless_exported() -> Any:
            """Refresh the table before PyIceberg tries a commit again. Raise CommitFailedException if an export has changed it."""
            table = refresh()
            if table.properties.get(STATE) != known:
                raise CommitFailedException(
                    "another export committed to the table, so that nothing of this one is added"
                )
            return table

        self._table.refresh = refresh_unless_exported
        try:
            with self._table.transaction() as change:
                change.add_files(
                    [f"{base}/{file.path}" for file in files],
                    {"kafka-log.export.number": str(after.number)},
                    check_duplicate_files=False,
                )
                change.set_properties({STATE: after.to_json()})
        except CommitFailedException as error:
            raise ExportError(self.name, f"{CHANGED} ({error})") from error
        finally:
            self._table.refresh = refresh

    def clean(self, job_id: str) -> None:
        """Remove the files of a job that are not part of the table's current snapshot; a commit
        that seemed to fail may still have added them. Do nothing if there is no table. Raise
        OSError if a store cannot be listed, or a file cannot be removed. Errors of the catalog
        pass.
        """
        if self._table is None:
            return
        self._table.refresh()
        listed: list[str] = []
        if self._table.current_snapshot() is not None:
            listed = self._table.inspect.files()["file_path"].to_pylist()
        self._location().remove_unlisted(job_id, listed)

    def _uri(self) -> str:
        """Return the URI below which the table's files lie."""
        return f"{self._table.location().rstrip('/')}/data"

    def _location(self) -> Location:
        """Return the location of the table's files, with the options of its catalog."""
        properties = self._table.io.properties
        return table_location(self.name, self._uri(), options_of_iceberg(properties))
