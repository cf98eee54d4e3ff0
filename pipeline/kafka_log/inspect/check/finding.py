"""What a check gives: findings, and the table of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from kafka_log.segment.arrow_text import utf8

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""error: records are lost, readers get wrong ones, or no broker starts; warning: a file that a broker makes anew, ignores or passes over;
note: worth knowing, and normal in some directories."""

FINDINGS = pa.schema(
    [
        pa.field("severity", pa.string(), False, metadata={"doc": "error, warning or note."}),
        pa.field("code", pa.string(), False, metadata={"doc": "Short name of what is wrong."}),
        pa.field("topic", pa.string(), metadata={"doc": "Null for files of the whole broker."}),
        pa.field("partition", pa.int64(), True, {"doc": "Null for files of the whole broker."}),
        pa.field("file", pa.string(), False, {"doc": "Its path."}),
        pa.field("byte", pa.int64(), metadata={"doc": "Position in the file, null where none."}),
        pa.field(
            "first_offset",
            pa.int64(),
            True,
            {"doc": "The first one that is concerned, null if unknown."},
        ),
        pa.field(
            "last_offset",
            pa.int64(),
            True,
            {"doc": "The last one that is concerned, null if unknown."},
        ),
        pa.field(
            "records", pa.int64(), metadata={"doc": "Lost or at risk at most, null if unknown."}
        ),
        pa.field("meaning", pa.string(), False, {"doc": "What it means."}),
        pa.field("remedy", pa.string(), False, metadata={"doc": "The next step."}),
    ]
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or worth knowing. ``byte`` is a position in the file; offsets are the first and the last
    that are concerned, ``records`` how many records are lost or at risk at most; ``producer_id`` is whose batches alone are meant. None
    where unknown or where there is none."""

    severity: Severity
    code: str
    path: Path
    meaning: str
    remedy: str
    topic: str | None = None
    partition: int | None = None
    byte: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    records: int | None = None
    producer_id: int | None = None


def finding_table(findings: Iterable[Finding]) -> pa.Table:
    """A row for each finding in the columns of :data:`FINDINGS`: the worst first, then by topic, partition, file and byte."""
    ordered = sorted(findings, key=_order)
    rows = [
        {
            "severity": f.severity,
            "code": f.code,
            "topic": None if f.topic is None else utf8(f.topic),
            "partition": f.partition,
            "file": utf8(os.fspath(f.path)),
            "byte": f.byte,
            "first_offset": _int64(f.first_offset),
            "last_offset": _int64(f.last_offset),
            "records": _int64(f.records),
            "meaning": utf8(f.meaning),
            "remedy": utf8(f.remedy),
        }
        for f in ordered
    ]
    return pa.Table.from_pylist(rows, FINDINGS)


def _order(f: Finding) -> tuple[int, str, int, str, int, str]:
    topic = "" if f.topic is None else f.topic
    partition = -1 if f.partition is None else f.partition
    byte = -1 if f.byte is None else f.byte
    return SEVERITIES.index(f.severity), topic, partition, os.fspath(f.path), byte, f.code


def _int64(value: int | None) -> int | None:
    """A number that Arrow can hold: damaged bytes say anything."""
    return None if value is None or not -(1 << 63) <= value < 1 << 63 else value
