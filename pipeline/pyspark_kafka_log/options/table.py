"""List all options: names, value parsers and defaults."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Generic, TypeVar, get_args

from kafka_log.logs.names import State
from kafka_log.logs.replicas import Replicas
from kafka_log.read.internal_topics import VIEWS
from kafka_log.read.selection import ISOLATIONS, Isolation
from kafka_log.segment.kernels import ENGINES, Engine
from kafka_log.write.encoding import CODECS
from kafka_log.write.sink.log_format import TIMESTAMP_TYPES
from pyspark_kafka_log.options import values
from pyspark_kafka_log.options.reports import REPORTS
from pyspark_kafka_log.options.session import parse_time_zone
from pyspark_kafka_log.options.values import MODES, Bound, Offsets, OptionError

T = TypeVar("T", covariant=True)

Moment = tuple[datetime, str | None]
"""A time, and the name of a zone that stands behind it."""


@dataclass(frozen=True)
class Option(Generic[T]):
    """An option: ``read`` returns its value from its name and text, and raises OptionError for an invalid text."""

    name: str
    read: Callable[[str, str], T]
    default: T


_NO_PATHS: tuple[str, ...] = ()

PATH = Option("path", values.path, _NO_PATHS)
PATHS = Option("paths", values.paths, _NO_PATHS)
PATH_GLOB_FILTER: Option[str | None] = Option("pathGlobFilter", values.name_pattern, None)
RECURSIVE_FILE_LOOKUP = Option("recursiveFileLookup", values.boolean, False)
MODIFIED_AFTER: Option[Moment | None] = Option("modifiedAfter", values.moment, None)
MODIFIED_BEFORE: Option[Moment | None] = Option("modifiedBefore", values.moment, None)
TIME_ZONE: Option[tzinfo | None] = Option("timeZone", parse_time_zone, None)
IGNORE_CORRUPT_FILES: Option[bool | None] = Option("ignoreCorruptFiles", values.boolean, None)
IGNORE_MISSING_FILES: Option[bool | None] = Option("ignoreMissingFiles", values.boolean, None)
SUBSCRIBE: Option[tuple[str, ...] | None] = Option("subscribe", values.topics, None)
SUBSCRIBE_PATTERN: Option[str | None] = Option("subscribePattern", values.pattern, None)
ASSIGN: Option[frozenset[tuple[str, int]] | None] = Option("assign", values.assign, None)
STARTING_OFFSETS: Option[Bound | None] = Option("startingOffsets", values.bound, None)
ENDING_OFFSETS: Option[Bound | None] = Option("endingOffsets", values.bound, None)
STARTING_TIMESTAMP: Option[int | None] = Option("startingTimestamp", values.milliseconds, None)
ENDING_TIMESTAMP: Option[int | None] = Option("endingTimestamp", values.milliseconds, None)
STARTING_TIMES: Option[Offsets | None] = Option("startingOffsetsByTimestamp", values.times, None)
ENDING_TIMES: Option[Offsets | None] = Option("endingOffsetsByTimestamp", values.times, None)
STRATEGY = Option("startingOffsetsByTimestampStrategy", values.one_of("error", "latest"), "error")
ISOLATION: Option[Isolation | None] = Option("isolationLevel", values.one_of(*ISOLATIONS), None)
KAFKA_ISOLATION: Option[Isolation | None] = Option(
    "kafka.isolation.level", values.one_of(*ISOLATIONS), None
)
INCLUDE_HEADERS = Option("includeHeaders", values.boolean, False)
INCLUDE_METADATA = Option("includeMetadata", values.boolean, False)
COLUMNS: Option[tuple[str, ...] | None] = Option("columns", values.names, None)
VIEW: Option[str | None] = Option("view", values.one_of(*sorted({*VIEWS, *REPORTS})), None)
SHOW_SECRETS = Option("showSecrets", values.boolean, False)
INCLUDE_CONTROL_RECORDS = Option("includeControlRecords", values.boolean, False)
INCLUDE_DELETED_RECORDS = Option("includeDeletedRecords", values.boolean, False)
MODE = Option("mode", values.mode, MODES["FAILFAST"])
POLICY: Option[Any] = Option("policy", values.policy, None)
CORRUPT_RECORD = Option("columnNameOfCorruptRecord", values.column, "_corrupt_record")
REPLICAS: Option[Replicas] = Option("replicas", values.one_of(*get_args(Replicas)), "error")
INCLUDE: Option[tuple[State, ...]] = Option("include", values.states, ())
SPLIT_BYTES = Option("splitBytes", values.number, 128 << 20)
MIN_PARTITIONS: Option[int | None] = Option("minPartitions", values.number, None)
MAX_RECORDS: Option[int | None] = Option("maxRecordsPerPartition", values.number, None)
BATCH_ROWS = Option("batchRows", values.number, 16_384)
MAX_DECOMPRESSED: Option[int | None] = Option("maxDecompressedBytes", values.number, None)
ENGINE: Option[Engine] = Option("engine", values.one_of(*ENGINES), "auto")
FAIL_ON_DATA_LOSS = Option("failOnDataLoss", values.boolean, True)
DEEP = Option("deep", values.boolean, False)

READING: tuple[Option[Any], ...] = (
    PATH,
    PATHS,
    PATH_GLOB_FILTER,
    RECURSIVE_FILE_LOOKUP,
    MODIFIED_AFTER,
    MODIFIED_BEFORE,
    TIME_ZONE,
    IGNORE_CORRUPT_FILES,
    IGNORE_MISSING_FILES,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    ASSIGN,
    STARTING_OFFSETS,
    ENDING_OFFSETS,
    STARTING_TIMESTAMP,
    ENDING_TIMESTAMP,
    STARTING_TIMES,
    ENDING_TIMES,
    STRATEGY,
    ISOLATION,
    KAFKA_ISOLATION,
    INCLUDE_HEADERS,
    INCLUDE_METADATA,
    COLUMNS,
    VIEW,
    SHOW_SECRETS,
    INCLUDE_CONTROL_RECORDS,
    INCLUDE_DELETED_RECORDS,
    MODE,
    POLICY,
    CORRUPT_RECORD,
    REPLICAS,
    INCLUDE,
    SPLIT_BYTES,
    MIN_PARTITIONS,
    MAX_RECORDS,
    BATCH_ROWS,
    MAX_DECOMPRESSED,
    ENGINE,
    FAIL_ON_DATA_LOSS,
    DEEP,
)
"""The options of batch queries, and of streams as well."""

KNOWN = tuple(option.name for option in READING)

MAX_OFFSETS: Option[int | None] = Option("maxOffsetsPerTrigger", values.number, None)
MIN_OFFSETS: Option[int | None] = Option("minOffsetsPerTrigger", values.number, None)
MAX_DELAY = Option("maxTriggerDelay", values.duration, 15 * 60 * 1000)

LIMITS = (MAX_OFFSETS.name, MIN_OFFSETS.name, MAX_DELAY.name)
"""Options of streams that have no effect in a batch query. Their values are checked there too."""

IGNORED = (
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    *LIMITS,
)
"""Options of Spark's Kafka source that mean nothing where no broker is asked, as do all that begin with ``kafka.``."""

OF_HADOOP = ("fs.s3a.", "fs.azure.", "fs.gs.", "google.cloud.auth.")
"""Prefixes of Hadoop settings for stores. The connector in Java sends the settings of Spark's configuration."""

OF_STORES = ("storage.", *OF_HADOOP)
"""How the names of options begin that stores are opened with."""


WRITE_PATH = Option("path", values.text, "")

FORMAT: Mapping[str, Option[Any]] = {
    "topic": Option("topic", values.text, None),
    "partitions": Option("numPartitions", values.integer, None),
    "codec": Option("compression", values.one_of(*CODECS), None),
    "level": Option("compressionLevel", values.integer, None),
    "batch_bytes": Option("batchBytes", values.integer, None),
    "batch_records": Option("batchRecords", values.integer, None),
    "segment_bytes": Option("segmentBytes", values.integer, None),
    "magic": Option("formatVersion", values.integer, None),
    "timestamp_type": Option("messageTimestampType", values.one_of(*TIMESTAMP_TYPES), None),
    "topic_id": Option("topicId", values.text, None),
}
"""The options of writes by the fields of :class:`~kafka_log.write.log_format.LogFormat` that they set. That class has the defaults."""

WRITING = (WRITE_PATH, *FORMAT.values())
"""The options of writes, in batch queries and in streams."""

WRITE_IGNORED = ("includeHeaders",)
"""Options of Spark's Kafka sink that have no effect without a broker, as all that begin with ``kafka.``."""

_NAMES = {
    name.lower(): name
    for name in (*(option.name for option in (*WRITING, *READING)), *IGNORED, *WRITE_IGNORED)
}
"""The documented names of all options, by their names in lower case."""


class Given:
    """The options that a query gives, by their names in any case.

    Attributes:
        names: The known options among them, as they are documented.
        ignored: Those without effect here.
        storage: Those of stores, by their names in lower case.

    Raises:
        OptionError: For an option that is not in ``known``.
    """

    def __init__(
        self,
        given: Mapping[str, str],
        known: tuple[Option[Any], ...] = READING,
        *,
        ignored: tuple[str, ...] = IGNORED,
        of_stores: tuple[str, ...] = OF_STORES,
        purpose: str = "",
    ) -> None:
        """Match the options of a query with the known ones. Raise OptionError for an unknown
        option.

        Args:
            given: Option texts by name. Names are compared without case.
            known: Known options.
            ignored: Names of options without effect. Unknown options that begin with ``kafka.`` have no effect either.
            of_stores: Prefixes of names of options for stores.
            purpose: End of the message for an unknown option.
        """
        self._texts = {str(name).lower(): str(value) for name, value in given.items()}
        typed = {str(name).lower(): str(name) for name in given}
        stored = [name for name in self._texts if name.startswith(of_stores)]
        self.storage = {name: self._texts.pop(name) for name in stored}
        without_effect = {name.lower() for name in ignored}
        names = {option.name.lower(): option.name for option in known}
        found = [
            name
            for name in self._texts
            if name in without_effect or (name.startswith("kafka.") and name not in names)
        ]
        self.ignored = tuple(_documented(typed[name]) for name in found)
        for name in self._texts:
            if name not in names and name not in found:
                raise _unknown(typed[name], names, purpose)
        self.names = tuple(names[name] for name in self._texts if name in names)

    def __getitem__(self, option: Option[T]) -> T:
        """Return the value of an option, its default if it is not given. Raise :class:`OptionError` if the value is invalid."""
        text = self._texts.get(option.name.lower())
        return option.default if text is None else option.read(option.name, text)


def _documented(name: str) -> str:
    """Return the documented spelling of an option, ``name`` itself if no option has it: Spark gives a Python source lower-case names."""
    return _NAMES.get(name.lower(), name)


def _unknown(name: str, names: Mapping[str, str], purpose: str) -> OptionError:
    """Return the OptionError for an option that is not in ``names`` (documented names by their
    lower-case forms). The message has the most similar name as a hint, if one is similar, and all
    known ones. ``purpose`` is text for the message.
    """
    near = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"did you mean {names[near[0]]}? " if near else ""
    reason = f"there is no such option{purpose}; {hint}known: {', '.join(names.values())}"
    return OptionError(_documented(name), reason)
