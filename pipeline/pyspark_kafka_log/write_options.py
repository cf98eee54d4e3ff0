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

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from kafka_log.segment.places import FileUrlError, is_url, path_of_file_url
from kafka_log.write.encoding import CODECS
from kafka_log.write.sink.log_format import TIMESTAMP_TYPES, FormatError, LogFormat
from pyspark_kafka_log.options import OptionError
from pyspark_kafka_log.options.table import KNOWN as READING
from pyspark_kafka_log.options.table import LIMITS, OF_HADOOP, spelled

NAMES = {
    "topic": "topic",
    "numPartitions": "partitions",
    "compression": "codec",
    "compressionLevel": "level",
    "batchBytes": "batch_bytes",
    "batchRecords": "batch_records",
    "segmentBytes": "segment_bytes",
    "formatVersion": "magic",
    "messageTimestampType": "timestamp_type",
    "topicId": "topic_id",
}
"""The options by the fields of :class:`~kafka_log.write.sink.log_format.LogFormat` that they say."""

KNOWN = ("path", *NAMES)
OF_SPARK = ("checkpointLocation", "queryName", "outputMode")
"""Options that Spark's streams have for themselves."""

IGNORED = ("includeHeaders",)
_TEXTS = ("topic", "topic_id")


@dataclass(frozen=True)
class WriteOptions:
    """All options of a write, checked. ``ignored`` mean nothing here."""

    path: str
    format: LogFormat
    ignored: tuple[str, ...] = ()


def parse_write(given: Mapping[str, str]) -> WriteOptions:
    """The options, checked. Raises :class:`~pyspark_kafka_log.options.OptionError` for the first that cannot be taken."""
    values = {
        str(name).lower(): str(value)
        for name, value in given.items()
        if not str(name).lower().startswith(OF_HADOOP)  # Spark's settings, for all that it reads
    }
    typed = {str(name).lower(): str(name) for name in given}
    nothing = {name.lower() for name in IGNORED}
    ignored = [name for name in values if name in nothing or name.startswith("kafka.")]
    for name in (*ignored, *(name.lower() for name in OF_SPARK)):
        values.pop(name, None)
    known = {name.lower(): name for name in KNOWN}
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {known[near[0]]}? " if near else ""
            told = f"there is no such option for writing; {hint}known: {', '.join(KNOWN)}"
            raise OptionError(spelled(typed[name], (*READING, *LIMITS)), told)
    path = values.pop("path", None)
    if not path:
        raise OptionError("path", "it says where to write: save(path), start(path)")
    fields = {NAMES[known[name]]: _value(known[name], value) for name, value in values.items()}
    try:
        made = LogFormat(**fields)  # type: ignore[arg-type]
    except FormatError as error:
        option = next(option for option, name in NAMES.items() if name == error.name)
        raise OptionError(option, error.reason) from None
    shown = tuple(spelled(typed[name], IGNORED) for name in ignored)
    return WriteOptions(_local(path), made, shown)


def _local(path: str) -> str:
    """A path of this machine."""
    if is_url(path):
        raise OptionError("path", f"{path!r} is not on a file system of this machine")
    try:
        return path_of_file_url(path) or path
    except FileUrlError as error:
        raise OptionError("path", str(error)) from None


def _value(option: str, value: str) -> str | int:
    name = NAMES[option]
    if name in _TEXTS:
        return value
    choices = {"codec": CODECS, "timestamp_type": TIMESTAMP_TYPES}.get(name)
    if choices is not None:
        for one in choices:
            if one.lower() == value.lower():
                return one
        raise OptionError(option, f"one of {', '.join(choices)} is expected, not {value!r}")
    try:
        return int(value)
    except ValueError:
        raise OptionError(option, f"a number is expected, not {value!r}") from None
