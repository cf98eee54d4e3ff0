"""What the commands that write logs say of what they did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

SAID = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Its name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Its number."}),
        pa.field(
            "file",
            pa.string(),
            False,
            {"doc": "The segment that was read; for open the one that was written."},
        ),
        pa.field(
            "what",
            pa.string(),
            False,
            {
                "doc": "kept: as it was. copied: a snapshot of the metadata, as it was. rewritten: written anew. left out: not asked for. twice: its offsets are there from elsewhere. "
                "lost: not there any more. unfinished: what its broker had not written to its end, no damage. open: a transaction that has not ended. indexed: has indexes. "
                "understated: a batch whose header, and so its index entries, say less than its records."
            },
        ),
        pa.field("batches", pa.int64(), True, {"doc": "How many."}),
        pa.field("records", pa.int64(), True, {"doc": "How many, markers too."}),
        pa.field(
            "byte",
            pa.int64(),
            metadata={"doc": "Where in the file it begins; null where batches lie apart."},
        ),
        pa.field("bytes", pa.int64(), metadata={"doc": "How many it has in the file."}),
        pa.field(
            "first_offset",
            pa.int64(),
            True,
            {"doc": "The lowest one; of lost bytes the first that may have been there."},
        ),
        pa.field(
            "last_offset",
            pa.int64(),
            True,
            {"doc": "The highest one; of lost bytes the last that may have been there."},
        ),
        pa.field("reason", pa.string(), True, {"doc": "Why; null where nothing is to be said."}),
    ]
)


@dataclass(slots=True)
class Said:
    """A row of :data:`SAID`, of one partition."""

    file: str
    what: str
    batches: int | None = None
    records: int | None = None
    byte: int | None = None
    bytes: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    reason: str | None = None


def as_rows(topic: str, partition: int, said: Iterable[Any]) -> list[dict[str, Any]]:
    """The rows of a partition, as plain values."""
    return [{"topic": topic, "partition": partition, **asdict(one)} for one in said]


def is_lost(table: pa.Table) -> bool:
    """Whether a table says that something was lost."""
    return "lost" in table.column("what").to_pylist()
