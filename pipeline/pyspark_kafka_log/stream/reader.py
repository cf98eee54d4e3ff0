"""Micro-batches of the Python source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.moved_files import locate_splits
from pyspark_kafka_log.options import OptionError, Options
from pyspark_kafka_log.reader import KafkaLogReader, Task
from pyspark_kafka_log.stream.offsets import add_initial, initial_offsets
from pyspark_kafka_log.stream.options import parse_stream
from pyspark_kafka_log.stream.polling import LogStream
from pyspark_kafka_log.worker_memory import freeze_loaded_objects

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.streaming import datasource as limits

    class _AvailableNow(limits.SupportsTriggerAvailableNow):
        """Interface of Spark 4.2 and newer for limits and the trigger AvailableNow."""
except ImportError:  # pragma: no cover (Spark 4.1)
    limits = None  # type: ignore[assignment]

    class _AvailableNow:  # type: ignore[no-redef]
        """Placeholder for Spark 4.1, which has neither limits nor the trigger AvailableNow for Python sources."""


class KafkaLogStreamReader(DataSourceStreamReader, _AvailableNow):
    """Reader of micro-batches.

    Spark sends it to every task, so :class:`LogStream` is created only on the driver, at the first request for offsets.
    """

    def __init__(self, options: Mapping[str, str], columns: tuple[str, ...]) -> None:
        """Parse the options of the stream. Raises OptionError."""
        self._options = parse_stream(options)
        self._reads = KafkaLogReader(self._options.reading, columns)
        self._made: LogStream | None = None
        self._start: dict[str, Any] | None = None
        self._initial: dict[str, Any] | None = None
        self._refusal: OptionError | None = None

    @property
    def reading(self) -> Options:
        """The options that decide which rows exist."""
        return self._options.reading

    @property
    def _stream(self) -> LogStream:
        """The logs of the query, created at the first access."""
        if self._made is None:
            self._made = LogStream(self._options)
        return self._made

    def initialOffset(self) -> dict[str, Any]:
        """Return the offsets at which a new query begins, as JSON. If an option does not fit the
        partitions, no record has the starting time, or a path matches nothing, return ``{}``, and
        keep the OptionError; later methods raise it, unless the end of the micro-batch contains its
        start. Raise DirectoryError for a path without logs; CodecError for damage unless the mode
        accepts it.

        Spark also calls this when it repeats the first micro-batch. Then the logged end of that micro-batch contains the start offsets, and
        options that no longer fit do not matter.
        """
        try:
            self._initial = self._start = self._stream.initial()
        except OptionError as error:
            self._refusal = error
            self._initial = self._start = {}
        return self._start

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Return the end of the micro-batch after ``start`` (None: the start noted last); ``start``
        itself if there is nothing to read, or less than minOffsetsPerTrigger before maxTriggerDelay
        is over. Minimum and maximum are those of the options; ``limit`` only lifts them if it is
        ReadAllAvailable. The end of the query's first micro-batch also contains its start, even if
        nothing lies between them. Raise OptionError if an option does not fit the partitions;
        DirectoryError for a path without logs; DataLossError if records are gone and
        ``failOnDataLoss`` is set; CodecError for damage unless the mode accepts it.
        """
        if self._refusal is not None:
            raise self._refusal
        limited = limits is None or not isinstance(limit, limits.ReadAllAvailable)
        start = self._start if start is None else start
        end = self._stream.latest(start, limited=limited)
        if start is None or start != self._initial:
            return end
        return add_initial(end, start)

    def getDefaultReadLimit(self) -> Any:
        """Return Spark's read limit for the options: ReadMaxRows if a maximum is set, else
        ReadMinRows if a minimum is set, else ReadAllAvailable.
        """
        given = self._options.limits
        if given.most is not None:
            return limits.ReadMaxRows(given.most)
        # LogStream applies the delay: Spark has no limit for it.
        return limits.ReadAllAvailable() if given.least is None else limits.ReadMinRows(given.least)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the current end of the logs as the end of the query."""
        self._stream.prepare()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the ends of the logs at the last poll, None before the first poll."""
        return self._stream.report()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of the micro-batch from ``start`` to ``end`` (excluded), and note
        ``end`` as the start of the next one. Raise the OptionError that :meth:`initialOffset` kept,
        unless ``end`` contains the start of the query; DataLossError if records of the micro-batch
        are gone and ``failOnDataLoss`` is set; CodecError for damage unless the mode accepts it.
        """
        self._start = end
        if self._refusal is not None and initial_offsets(end) is None:
            raise self._refusal
        self._refusal = None
        return [Task(splits) for splits in self._stream.tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task, then warn of lost ranges, if any. Yield nothing for a partition
        that is no Task. Drop a split whose file is found nowhere, with a warning, unless
        ``failOnDataLoss`` is set: then it is an unreadable file. Raise CodecError for damage and
        unreadable files unless the mode accepts damage. Raise OSError if a store cannot be asked
        for a file.
        """
        losses = Losses()
        splits = partition.splits if isinstance(partition, Task) else ()
        there = Task(locate_splits(splits, self._options.reading, fails=self._options.fails))
        with freeze_loaded_objects():
            yield from self._reads.read_rows(there, losses)
        losses.warn()
