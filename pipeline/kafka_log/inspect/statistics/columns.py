"""The columns of ``stat``: what is summed up of batches, and what tables say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from kafka_log.segment.header_columns import Arrays

By = Literal["topic", "partition", "producer", "codec", "hour"]
BY: tuple[By, ...] = get_args(By)
OF_FILES = ("topic", "partition")
"""What files belong to as a whole."""

IS_REST = "is_rest"
"""Which rows of :func:`kafka_log.inspect.statistics.totals.by_hours` are of hours before the newest of their batch."""
TIME = pa.timestamp("ms", "UTC")


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of each batch, and how those of several batches become one. ``mask``: what is none of it."""

    how: Literal["sum", "min", "max"]
    of: Callable[[Arrays], Any]
    mask: Callable[[Arrays], Any] | None = None


def _data(arrays: Arrays, name: str) -> Any:
    """Of data, not of markers."""
    return np.where(arrays["is_control"], 0, arrays[name])


def _once(arrays: Arrays, values: Any) -> Any:
    """Return values of whole batches where they count once: in the row of the newest record of each batch."""
    return np.where(arrays[IS_REST], 0, values).astype(np.int64)


def _no_time(name: str) -> Callable[[Arrays], Any]:
    return lambda a: a["is_control"] | (a[name] < 0)


MEASURES: dict[str, Measure] = {
    "batches": Measure("sum", lambda a: _once(a, np.ones(len(a["size"]), np.int64))),
    "records": Measure("sum", lambda a: _data(a, "records")),
    "control_records": Measure("sum", lambda a: np.where(a["is_control"], a["records"], 0)),
    "batch_bytes": Measure("sum", lambda a: _once(a, a["size"])),
    "smallest_batch": Measure("min", lambda a: a["size"], lambda a: a[IS_REST]),
    "largest_batch": Measure("max", lambda a: a["size"], lambda a: a[IS_REST]),
    "first_offset": Measure("min", lambda a: a["first"]),
    "last_offset": Measure("max", lambda a: a["last"]),
    "first_timestamp": Measure("min", lambda a: a["least_timestamp"], _no_time("least_timestamp")),
    "last_timestamp": Measure(
        "max", lambda a: a["largest_timestamp"], _no_time("largest_timestamp")
    ),
    "first_epoch": Measure("min", lambda a: a["leader_epoch"], lambda a: a["leader_epoch"] < 0),
    "last_epoch": Measure("max", lambda a: a["leader_epoch"], lambda a: a["leader_epoch"] < 0),
    "transactional_batches": Measure("sum", lambda a: _once(a, a["is_transactional"])),
    "empty_batches": Measure("sum", lambda a: (a["records"] == 0).astype(np.int64)),
    "invalid_batches": Measure("sum", lambda a: _once(a, a["is_invalid"])),
    "future": Measure("sum", lambda a: _data(a, "late")),
    "stored_bytes": Measure("sum", lambda a: _once(a, _data(a, "stored"))),
    "record_bytes": Measure("sum", lambda a: _once(a, _data(a, "plain"))),
}
"""What is summed up of batches, by the column of the table."""

NEEDED = (
    "position",
    "size",
    "magic",
    "codec",
    "timestamp_type",
    "max_timestamp",
    "producer_id",
    "leader_epoch",
    "is_transactional",
    "is_control",
    "first",
    "last",
    "records",
    "least_timestamp",
    "largest_timestamp",
    "late",
    "stored",
    "plain",
    "is_invalid",
    "hours",
)
"""What that takes of :data:`kafka_log.segment.header_columns.COLUMNS`."""


_MEANINGS = {
    "segments": "How many.",
    "bytes": "Of the files.",
    "trailing_bytes": "Bytes at the ends of segments that no reader takes.",
    "lost_bytes": "Bytes that salvage could not read.",
    "batches": "Batches, and messages of the older formats.",
    "records": "Data records.",
    "control_records": "Markers and what else brokers write for themselves.",
    "future": "Records whose timestamp is later than now.",
    "stored_bytes": "Of the records of batches, as they are stored.",
    "record_bytes": "Of the same records, not compressed.",
    "batch_bytes": "Of whole batches.",
    "smallest_batch": "Bytes.",
    "largest_batch": "Bytes.",
    "empty_batches": "Batches without a record.",
    "producers": "How many producer ids.",
    "transactional_batches": "Batches of transactions, markers too.",
    "invalid_batches": "Batches whose checksum is wrong.",
    "first_offset": "Of the batches.",
    "last_offset": "Of the batches.",
    "first_epoch": "The least leader epoch.",
    "last_epoch": "The largest leader epoch.",
}


def _numbers(*names: str, nullable: bool = False) -> list[pa.Field]:
    return [pa.field(name, pa.int64(), nullable, {"doc": _MEANINGS[name]}) for name in names]


_KEYS: dict[By, list[pa.Field]] = {
    "topic": [pa.field("topic", pa.string(), False, {"doc": "Its name."})],
    "partition": [
        pa.field("topic", pa.string(), False, {"doc": "Its name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Its number."}),
        pa.field("state", pa.string(), False, {"doc": "live, or deleted and the like."}),
        pa.field("directory", pa.string(), False, {"doc": "Path of the partition."}),
    ],
    "producer": [pa.field("producer_id", pa.int64(), metadata={"doc": "Null for none."})],
    "codec": [pa.field("codec", pa.string(), False, {"doc": "What compresses."})],
    "hour": [
        pa.field(
            "hour",
            TIME,
            metadata={
                "doc": "Begin of the hour of records; whole batches count in that of their newest."
            },
        )
    ],
}
BATCH_HOUR = pa.field(
    "batch_hour",
    TIME,
    metadata={
        "doc": "Begin of the hour of the largest timestamp of batches, as headers say it: all their records count in it."
    },
)
"""What a row is by hours where records are not read."""

_FILES = [
    pa.field("problems", pa.int64(), False, {"doc": "Places of damage."}),
    pa.field(
        "first_problem", pa.string(), True, {"doc": "Where the first one is, and what it is."}
    ),
    *_numbers("segments", "bytes", "trailing_bytes", "lost_bytes"),
]

_SUMS = [
    *_numbers("batches", "records", "control_records"),
    *_numbers("first_offset", "last_offset", nullable=True),
    pa.field("first_timestamp", TIME, True, {"doc": "The lowest one of data."}),
    pa.field("last_timestamp", TIME, True, {"doc": "The highest one of data."}),
    *_numbers("future"),
    *_numbers("first_epoch", "last_epoch", nullable=True),
    pa.field("magics", pa.string(), False, {"doc": "Versions of the format."}),
    pa.field("timestamp_types", pa.string(), False, {"doc": "Who has set the timestamps."}),
    pa.field("codecs", pa.string(), False, {"doc": "What compresses."}),
    *_numbers("stored_bytes", "record_bytes", nullable=True),
    pa.field(
        "ratio",
        pa.float64(),
        True,
        {"doc": "record_bytes, divided by stored_bytes."},
    ),
    *_numbers("batch_bytes"),
    *_numbers("smallest_batch", nullable=True),
    pa.field("mean_batch", pa.float64(), True, {"doc": "Bytes."}),
    *_numbers("largest_batch", nullable=True),
    *_numbers("producers", "transactional_batches", "empty_batches", "invalid_batches"),
]

_OF_ONE_LOG = ("first_offset", "last_offset", "first_epoch", "last_epoch")
"""What has no meaning for several partitions."""


def keys_of(by: Sequence[By], deep: bool = False) -> list[pa.Field]:
    """The columns that say what a row is. ``deep``: records were read."""
    kinds = _KEYS if deep else {**_KEYS, "hour": [BATCH_HOUR]}
    return list({f.name: f for name in by for f in kinds[name]}.values())


def stat_schema(by: Sequence[By] = ("partition",), deep: bool = False) -> pa.Schema:
    """The columns of a table by these; ``deep`` says whether records were read. ``bytes`` are those of the files, ``lost_bytes`` what ``salvage`` could not read, ``trailing_bytes``
    what no reader takes at the ends of segments."""
    left_out = {*(() if "partition" in by else _OF_ONE_LOG)}
    left_out |= {"producers"} if "producer" in by else set()
    files = _FILES if has_files(by) else []
    keys = keys_of(by, deep)
    left_out |= {f.name for f in keys} | ({"codecs"} if "codec" in by else set())
    return pa.schema([*keys, *files, *(f for f in _SUMS if f.name not in left_out)])


def has_files(by: Sequence[By]) -> bool:
    """Whether files belong to one row each."""
    return bool(by) and set(by) <= set(OF_FILES)


STAT = stat_schema()
"""The columns of a table by partitions."""
