"""The options of ``df.write.format("kafka-log")`` and ``writeStream``, checked.

| option | values | default |
| --- | --- | --- |
| ``path`` | what ``save`` or ``start`` is given: a log directory | |
| ``topic`` | the topic of all rows; it takes the place of the column ``topic`` | |
| ``numPartitions`` | partitions that rows without one are spread over, and that are there then | as many as the topic has, or 1 |
| ``compression`` | ``none``, ``gzip``, ``snappy``, ``lz4``, ``zstd`` | ``none`` |
| ``compressionLevel`` | that of the codec | the codec's own |
| ``batchBytes`` | bytes of records that a batch has, before it is compressed | 16384 |
| ``batchRecords`` | records that a batch has at most | |
| ``segmentBytes`` | bytes that a segment has at most, unless one batch has more | 1 GiB |
| ``formatVersion`` | ``2``, ``1``, ``0``: the version of the format (Kafka's magic) | ``2`` |
| ``messageTimestampType`` | ``CreateTime``, ``LogAppendTime`` | by the column ``timestampType``, or ``CreateTime`` |
| ``topicId`` | the id that a cluster knows the topic by | that of the topic in the directory, or a new one |

Options of Spark's Kafka sink that mean nothing where no broker is asked (``kafka.``..., ``includeHeaders``) are taken, with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_log.segment.urls import FileUrlError, is_url, path_of_file_url
from kafka_log.write.sink.log_format import FormatError, LogFormat
from pyspark_kafka_log.options.table import (
    FORMAT,
    OF_HADOOP,
    WRITE_IGNORED,
    WRITE_PATH,
    WRITING,
    Given,
)
from pyspark_kafka_log.options.values import OptionError

OF_SPARK = ("checkpointlocation", "queryname", "outputmode")
"""Options that Spark's streams take themselves, in lower case."""


@dataclass(frozen=True)
class WriteOptions:
    """The options of a write, checked. ``ignored`` names those without effect."""

    path: str
    format: LogFormat
    ignored: tuple[str, ...] = ()


def parse_write(given: Mapping[str, str]) -> WriteOptions:
    """Return the checked options of a write. Raise :class:`~pyspark_kafka_log.options.OptionError`
    for the first unknown or invalid one, a missing path, and a URL of a store: rows are written to
    local directories only.

    Settings of Hadoop and options of Spark's own streams are dropped.
    """
    own = {name: value for name, value in given.items() if str(name).lower() not in OF_SPARK}
    options = Given(
        own, WRITING, ignored=WRITE_IGNORED, of_stores=OF_HADOOP, purpose=" for writing"
    )
    path = options[WRITE_PATH]
    if not path:
        raise OptionError("path", "a path to write to is required: save(path), start(path)")
    fields = {
        field: options[option] for field, option in FORMAT.items() if option.name in options.names
    }
    try:
        log_format = LogFormat(**fields)
    except FormatError as error:
        raise OptionError(FORMAT[error.name].name, error.reason) from None
    return WriteOptions(_local(path), log_format, options.ignored)


def _local(path: str) -> str:
    """Return the local path of a ``file:`` URL, or the path itself. Raise OptionError for an
    invalid ``file:`` URL, or a URL of another scheme.
    """
    if is_url(path):
        raise OptionError("path", f"{path!r} is a URL: rows are written to local directories only")
    try:
        return path_of_file_url(path) or path
    except FileUrlError as error:
        raise OptionError("path", str(error)) from None
