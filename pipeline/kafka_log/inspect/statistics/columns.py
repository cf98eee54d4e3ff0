"""Columns of ``stat``: the measures of batches, and the schemas of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from kafka_log.segment.header_columns import Arrays

By = Literal["topic", "partition", "producer", "codec", "day", "hour", "minute"]
BY: tuple[By, ...] = get_args(By)
PERIODS: Mapping[By, int] = {"day": 86_400_000, "hour": 3_600_000, "minute": 60_000}
"""Length of the keys that are periods of time, in milliseconds. Days are those of UTC."""
OF_FILES = ("topic", "partition")
"""Keys to which whole files belong."""

IS_REST = "is_rest"
"""Column of :func:`kafka_log.inspect.statistics.totals.split_by_period`: True for periods before the newest one of their batch."""
TIME = pa.timestamp("ms", "UTC")


@dataclass(frozen=True, slots=True)
class Measure:
    """A number per batch, and how the numbers of several batches are aggregated. ``mask`` marks batches without one."""

    how: Literal["sum", "min", "max"]
    compute: Callable[[Arrays], Any]
    mask: Callable[[Arrays], Any] | None = None


def _zero_for_control(arrays: Arrays, name: str) -> Any:
    """Return a column with 0 for control batches."""
    return np.where(arrays["is_control"], 0, arrays[name])


def _count_once(arrays: Arrays, values: Any) -> Any:
    """Return values of whole batches with 0 in all rows but that of the newest period, so that each batch counts once."""
    return np.where(arrays[IS_REST], 0, values).astype(np.int64)


def _mask_no_timestamp(name: str) -> Callable[[Arrays], Any]:
    """Return a mask function: True for control batches, for batches without records or whose timestamp ``name`` is missing, and for damaged ones."""
    return lambda a: a["is_control"] | (a["records"] == 0) | (a[name] < 0) | a["is_invalid"]


def _mask_no_epoch(arrays: Arrays) -> Any:
    """Return a mask: True for batches without a leader epoch, and for damaged ones."""
    return (arrays["leader_epoch"] < 0) | arrays["is_invalid"]


def _mask_invalid(arrays: Arrays) -> Any:
    """Return a mask: True for batches with a wrong checksum, whose header may be wrong too."""
    return arrays["is_invalid"]


MEASURES: dict[str, Measure] = {
    "batches": Measure("sum", lambda a: _count_once(a, np.ones(len(a["size"]), np.int64))),
    "records": Measure("sum", lambda a: _zero_for_control(a, "records")),
    "control_records": Measure("sum", lambda a: np.where(a["is_control"], a["records"], 0)),
    "batch_bytes": Measure("sum", lambda a: _count_once(a, a["size"])),
    "smallest_batch": Measure("min", lambda a: a["size"], lambda a: a[IS_REST]),
    "largest_batch": Measure("max", lambda a: a["size"], lambda a: a[IS_REST]),
    "first_offset": Measure("min", lambda a: a["first"], _mask_invalid),
    "last_offset": Measure("max", lambda a: a["last"], _mask_invalid),
    "first_timestamp": Measure(
        "min", lambda a: a["least_timestamp"], _mask_no_timestamp("least_timestamp")
    ),
    "last_timestamp": Measure(
        "max", lambda a: a["largest_timestamp"], _mask_no_timestamp("largest_timestamp")
    ),
    "first_epoch": Measure("min", lambda a: a["leader_epoch"], _mask_no_epoch),
    "last_epoch": Measure("max", lambda a: a["leader_epoch"], _mask_no_epoch),
    "transactional_batches": Measure("sum", lambda a: _count_once(a, a["is_transactional"])),
    "empty_batches": Measure("sum", lambda a: (a["records"] == 0).astype(np.int64)),
    "invalid_batches": Measure("sum", lambda a: _count_once(a, a["is_invalid"])),
    "future": Measure("sum", lambda a: _zero_for_control(a, "late")),
    "stored_bytes": Measure("sum", lambda a: _count_once(a, _zero_for_control(a, "stored"))),
    "record_bytes": Measure("sum", lambda a: _count_once(a, _zero_for_control(a, "plain"))),
}
"""Measures of batches, by column of the table."""

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
    "periods",
)
"""Columns of :data:`kafka_log.segment.header_columns.COLUMNS` that the measures and keys are computed from."""


_MEANINGS = {
    "segments": "Number of segments.",
    "bytes": "Size of the .log files.",
    "trailing_bytes": "Number of bytes at the ends of segments that are no complete batch.",
    "lost_bytes": "Number of bytes that the policy salvage could not read.",
    "batches": "Number of batches; of messages in formats 0 and 1.",
    "records": "Number of data records.",
    "control_records": "Number of control records: transaction markers, leader changes and others.",
    "future": "Number of records with a timestamp later than now.",
    "stored_bytes": "Size of the records as stored, perhaps compressed.",
    "record_bytes": "Size of the same records, uncompressed.",
    "batch_bytes": "Size of the batches with their headers, as stored.",
    "smallest_batch": "Size of the smallest batch in bytes.",
    "largest_batch": "Size of the largest batch in bytes.",
    "empty_batches": "Number of batches without a record.",
    "producers": "Number of producer ids.",
    "transactional_batches": "Number of transactional batches, including markers.",
    "invalid_batches": "Number of batches with a wrong checksum.",
    "first_offset": "First offset of the batches with a valid checksum.",
    "last_offset": "Last offset of the batches with a valid checksum.",
    "first_epoch": "Lowest leader epoch of these batches.",
    "last_epoch": "Highest leader epoch of these batches.",
}


def _numbers(*names: str, nullable: bool = False) -> list[pa.Field]:
    """Return int64 fields with their documentation."""
    return [pa.field(name, pa.int64(), nullable, {"doc": _MEANINGS[name]}) for name in names]


_KEYS: dict[By, list[pa.Field]] = {
    "topic": [pa.field("topic", pa.string(), False, {"doc": "Topic name."})],
    "partition": [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
        pa.field(
            "state",
            pa.string(),
            False,
            {"doc": "State of the segments: live, deleted, stray and others."},
        ),
        pa.field("directory", pa.string(), False, {"doc": "Path of the partition directory."}),
    ],
    "producer": [
        pa.field(
            "producer_id",
            pa.int64(),
            metadata={"doc": "Producer id; null for batches without one."},
        )
    ],
    "codec": [pa.field("codec", pa.string(), False, {"doc": "Compression codec of the batches."})],
    **{
        name: [
            pa.field(
                name,
                TIME,
                metadata={
                    "doc": f"Start of the {name} of the records. Numbers of whole batches count in the {name} of the newest record."
                },
            )
        ]
        for name in PERIODS
    },
}
BATCH_PERIODS: Mapping[By, pa.Field] = {
    name: pa.field(
        f"batch_{name}",
        TIME,
        metadata={
            "doc": f"Start of the {name} of the largest timestamp in the batch header. All records of a batch count in it."
        },
    )
    for name in PERIODS
}
"""Key columns for periods if records are not decoded."""

_FILES = [
    pa.field("problems", pa.int64(), False, {"doc": "Number of damaged places."}),
    pa.field(
        "first_problem",
        pa.string(),
        True,
        {"doc": "Position and kind of the first damage; null if there is none."},
    ),
    *_numbers("segments", "bytes", "trailing_bytes", "lost_bytes"),
]

_SUMS = [
    *_numbers("batches", "records", "control_records"),
    *_numbers("first_offset", "last_offset", nullable=True),
    pa.field(
        "first_timestamp",
        TIME,
        True,
        {"doc": "Lowest timestamp of data records of these batches; negative ones do not count."},
    ),
    pa.field(
        "last_timestamp",
        TIME,
        True,
        {"doc": "Highest timestamp of data records of these batches; negative ones do not count."},
    ),
    *_numbers("future"),
    *_numbers("first_epoch", "last_epoch", nullable=True),
    pa.field("magics", pa.string(), False, {"doc": "Versions of the record format."}),
    pa.field(
        "timestamp_types",
        pa.string(),
        False,
        {"doc": "CreateTime (set by producers), LogAppendTime (set by brokers), or both."},
    ),
    pa.field("codecs", pa.string(), False, {"doc": "Compression codecs."}),
    *_numbers("stored_bytes", "record_bytes", nullable=True),
    pa.field(
        "ratio",
        pa.float64(),
        True,
        {"doc": "record_bytes divided by stored_bytes."},
    ),
    *_numbers("batch_bytes"),
    *_numbers("smallest_batch", nullable=True),
    pa.field("mean_batch", pa.float64(), True, {"doc": "Mean size of a batch in bytes."}),
    *_numbers("largest_batch", nullable=True),
    *_numbers("producers", "transactional_batches", "empty_batches", "invalid_batches"),
]

_OF_ONE_LOG = ("first_offset", "last_offset", "first_epoch", "last_epoch")
"""Columns that have no meaning for several partitions."""


def key_fields(by: Sequence[By], deep: bool = False) -> list[pa.Field]:
    """Return the key columns for ``by``. ``deep``: records were decoded, so periods are those of records."""
    kinds = _KEYS if deep else {**_KEYS, **{name: [f] for name, f in BATCH_PERIODS.items()}}
    return list({f.name: f for name in by for f in kinds[name]}.values())


def stat_schema(by: Sequence[By] = ("partition",), deep: bool = False) -> pa.Schema:
    """Return the schema of a table by the keys ``by``: key columns, then columns of files if every
    file belongs to one row, then sums. Offsets and epochs are there only by partition;
    ``producers`` and ``codecs`` only if they are no keys. ``deep``: records were decoded, so
    periods are those of records.

    ``bytes`` are the sizes of the files, ``lost_bytes`` the ranges that ``salvage`` could not read, ``trailing_bytes`` the incomplete
    tails of segments.
    """
    left_out = {*(() if "partition" in by else _OF_ONE_LOG)}
    left_out |= {"producers"} if "producer" in by else set()
    files = _FILES if has_files(by) else []
    keys = key_fields(by, deep)
    left_out |= {f.name for f in keys} | ({"codecs"} if "codec" in by else set())
    return pa.schema([*keys, *files, *(f for f in _SUMS if f.name not in left_out)])


def has_files(by: Sequence[By]) -> bool:
    """Return whether ``by`` has keys, and none but topic and partition. Every file then belongs to
    exactly one row, and the table has columns of files.
    """
    return bool(by) and set(by) <= set(OF_FILES)


STAT = stat_schema()
"""Schema of a table by partition."""
