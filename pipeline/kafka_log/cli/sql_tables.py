"""The tables of ``kafka-log sql``: records and batches of a log, and answers about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_codecs.columns.batches import BATCHES
from kafka_log.cli.damage import batch_lines
from kafka_log.inspect.check.finding import FINDINGS
from kafka_log.inspect.export import count_reasons
from kafka_log.inspect.groups.table import COMMITS, GROUPS
from kafka_log.inspect.listing import PARTITIONS, SEGMENTS, TOPICS
from kafka_log.inspect.producers.table import PRODUCERS
from kafka_log.inspect.transactions.table import TRANSACTIONS
from kafka_log.log_directory import LogDirectory
from kafka_log.logs.partitions import Segment
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.output import place_columns, record_columns
from kafka_log.read.scanning import scan, scan_batches
from kafka_log.read.schemas import PARTS
from kafka_log.read.schemas.registry import SchemaRegistry
from kafka_log.read.selection import Selection
from kafka_log.read.sql.lazy_tables import LazyTable
from kafka_log.segment.model import Batch, End, Lost, Policy, describe_lost
from kafka_log.segment.reader import damage

ABOUT = {
    "records": "records",
    "batches": "batch headers",
    "topics": "disk usage per topic",
    "partitions": "partitions",
    "segments": "segment files",
    "transactions": "transactions, as kafka-log txn",
    "producers": "producers, as kafka-log producers",
    "offsets": "committed offsets with lag, as kafka-log groups",
    "groups": "consumer groups, as kafka-log groups --states",
    "findings": "findings of kafka-log check",
}
"""What each table has."""


class LogTables:
    """Tables over a log. Nothing is read before a query needs it.

    ``damage`` has a line for each loss that the policy accepts, and for keys and values that could not be decoded; ``error`` the exception, or Ctrl-C, that ended the reading of a table, which DuckDB
    turns into an error of its own.

    Args:
        log: The selected partitions.
        selection: Selected rows of the tables records and batches.
        decode: How keys and values of records are decoded. None: bytes.
        read_schemas: Returns the schemas for ``decode``; None if it uses none.
    """

    def __init__(
        self,
        log: LogDirectory,
        selection: Selection,
        decode: Any = None,
        read_schemas: Callable[[], SchemaRegistry | None] = lambda: None,
    ) -> None:
        self.damage: list[str] = []
        self.error: BaseException | None = None
        self._log = log
        self._selection = selection.but(topics=None, partitions=None, include=(), replicas="keep")
        self._salvage = selection.policy is Policy.SALVAGE
        self._decode = decode
        self._registry = read_schemas()

    def make(self) -> dict[str, LazyTable]:
        """Return the tables for queries by name: records, batches, topics, partitions, segments,
        transactions, producers, offsets, groups and findings. Their rows are read only when a query
        asks for them, except first records for the schemas of decoded columns, and the ends of logs
        if offsets count from them. Raise ValueError if ``decode`` does not go with the selected
        topics; DirectoryError if two directories hold one partition; CodecError for damage at these
        ends that the policy does not accept.
        """
        log, note = self._log, self.damage.append
        answers: dict[str, tuple[pa.Schema, Callable[[], pa.Table]]] = {
            "topics": (TOPICS, lambda: log.ls(by="topic")),
            "partitions": (PARTITIONS, log.ls),
            "segments": (SEGMENTS, lambda: log.ls(segments=True)),
            "transactions": (TRANSACTIONS, lambda: log.txn(on_damage=note)),
            "producers": (PRODUCERS, lambda: log.producers(on_damage=note)),
            "offsets": (COMMITS, lambda: log.groups(salvage=self._salvage, on_damage=note)),
            "groups": (
                GROUPS,
                lambda: log.groups(states=True, salvage=self._salvage, on_damage=note),
            ),
            "findings": (FINDINGS, lambda: log.check(on_checked=lambda count: None)),
        }
        record_schema = self._read_records(record_columns()).schema
        batch_columns = [*place_columns(), *(column.name for column in BATCHES.columns)]
        batch_schema = self._read_batches(batch_columns).schema
        return {
            "records": LazyTable(record_schema, self._read_records, self._keep_error),
            "batches": LazyTable(batch_schema, self._read_batches, self._keep_error),
            **{
                name: LazyTable(schema, _select_columns(answer), self._keep_error)
                for name, (schema, answer) in answers.items()
            },
        }

    def _read_records(self, names: Sequence[str]) -> pa.RecordBatchReader:
        """Return a reader of the selected records with the columns ``names``, decoded by the
        schemas if ``decode`` was given. With the names of all columns it also has those that
        decoding adds. Reading raises CodecError for damage; under ``salvage`` lost ranges and
        damaged batches, whose records are returned, are noted instead. Raise DirectoryError if two
        directories hold one partition; ValueError if decoding is not possible.
        """
        partitions = self._log.refuse_duplicates(merge_tiered_segments(self._log.all_partitions))
        watch = _BatchNotes(self.damage) if self._salvage else None
        if self._decode is None:
            return scan(
                partitions,
                names,
                selection=self._selection,
                on_lost=self._note_lost,
                watch=watch,
            )
        # A decoded key or value brings columns about how it was decoded.
        wanted = [n for n in record_columns() if any(name == n or name.startswith(f"{n}_") for name in names)]  # fmt: skip
        rows = scan(
            partitions,
            wanted,
            selection=self._selection,
            on_lost=self._note_lost,
            watch=watch,
            decode=self._decode,
            schemas=self._registry,
        )
        if names == record_columns():  # all, for the schema
            return rows
        schema = pa.schema([rows.schema.field(name) for name in names])
        return pa.RecordBatchReader.from_batches(schema, self._note_undecoded(rows, names))

    def _note_undecoded(
        self, rows: pa.RecordBatchReader, names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the columns ``names`` of decoded rows. At the end note how many keys and values are
        null there because they could not be decoded, by reason, unless the query reads the reasons.
        """
        undecoded: Counter[str] = Counter()
        problems = {part: f"{part}_problem" for part in PARTS if f"{part}_problem" not in names}
        try:
            for batch in rows:
                for part, problem in problems.items():
                    if problem in batch.schema.names:
                        count_reasons(part, batch.column(problem), undecoded)
                yield batch.select(names)
        finally:
            for text, count in undecoded.most_common():
                part, _, reason = text.partition(": ")
                noun = count_noun(count, part if reason else "key or value", spec=",")
                self.damage.append(f"{noun} not decoded, null in the query: {reason or text}")

    def _read_batches(self, names: Sequence[str]) -> pa.RecordBatchReader:
        """Return a reader of the batches with the columns ``names`` that may hold selected records
        by offsets, timestamps and producers. Filters that only records can answer (keys, headers,
        isolation, control records) do not count. No checksum is verified. Reading raises CodecError
        for damaged headers; under ``salvage`` lost ranges are noted instead. Raise DirectoryError
        if two directories hold one partition.
        """
        partitions = self._log.refuse_duplicates(merge_tiered_segments(self._log.all_partitions))
        selection = self._selection.but(
            isolation=None, control_records=False, deleted_records=False, keys=None, headers=None
        )
        return scan_batches(partitions, names, selection=selection, on_lost=self._note_lost)

    def _note_lost(self, path: Path, lost: Lost) -> None:
        """Note a lost range as a line."""
        self.damage.append(describe_lost(path, lost))

    def _keep_error(self, error: BaseException) -> None:
        """Keep the exception that ended the reading of a table."""
        self.error = error


class _BatchNotes:
    """Notes of the batches with damage whose records a scan returns, as lines.

    Args:
        lines: Where lines are appended.
    """

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def unreadable(self, error: CodecError) -> None:
        """Note a partition directory that cannot be read."""
        self._lines.append(str(error))

    def missing(self, path: Path, lost: Lost) -> None:
        """Note offsets that no segment has."""
        self._lines.append(describe_lost(path, lost))

    def batch(self, batch: Batch) -> None:
        """Note the problems of a batch that a consumer would reject."""
        if damage(batch) or not batch.is_valid:
            self._lines.extend(map(str.strip, batch_lines(batch)))

    def end(self, segment: Segment, end: End | None) -> None:
        """Do nothing: lost ranges are noted for themselves."""


def _select_columns(
    answer: Callable[[], pa.Table],
) -> Callable[[Sequence[str]], pa.RecordBatchReader]:
    """Return a function that computes a table, at each call, and returns some of its columns."""
    return lambda names: answer().select(list(names)).to_reader()
