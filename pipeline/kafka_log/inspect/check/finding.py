"""Findings of the checks, and the table of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_log.inspect.check.catalog import CATALOG, SEVERITIES, Severity
from kafka_log.segment.arrow_text import utf8

FINDINGS = pa.schema(
    [
        pa.field("severity", pa.string(), False, metadata={"doc": "error, warning or note."}),
        pa.field("code", pa.string(), False, metadata={"doc": "Id in the catalog of findings."}),
        pa.field("topic", pa.string(), metadata={"doc": "Null for files of the whole broker."}),
        pa.field("partition", pa.int64(), True, {"doc": "Null for files of the whole broker."}),
        pa.field("file", pa.string(), False, {"doc": "Path of the file or directory."}),
        pa.field("byte", pa.int64(), True, {"doc": "Position in the file, null if none."}),
        pa.field(
            "first_offset",
            pa.int64(),
            True,
            {"doc": "First affected offset, null if unknown."},
        ),
        pa.field(
            "last_offset",
            pa.int64(),
            True,
            {"doc": "Last affected offset, null if unknown."},
        ),
        pa.field(
            "records",
            pa.int64(),
            metadata={"doc": "Maximum of records lost or at risk, null if unknown."},
        ),
        pa.field("meaning", pa.string(), False, {"doc": "What was found, and what it means."}),
        pa.field("remedy", pa.string(), False, metadata={"doc": "The next step."}),
    ]
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Problem or note about one place of a log directory.

    Attributes:
        severity: One of the severities that the catalog allows for ``code``.
        code: Id of the finding in the catalog.
        path: File or directory that the finding is about.
        meaning: Sentence about what was found, and what it means.
        remedy: Sentence about the next step.
        topic: None for files of the whole broker.
        partition: None for files of the whole broker.
        byte: Position in the file; None if the whole file is meant.
        first_offset: First affected offset; None if unknown.
        last_offset: Last affected offset; None if unknown.
        records: Maximum of records lost or at risk; None if unknown.
        producer_id: Producer whose batches alone are affected; None if batches of any producer are.
    """

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


def make_finding(
    code: str,
    path: Path,
    meaning: str,
    *,
    severity: Severity | None = None,
    remedy: str | None = None,
    **place: Any,
) -> Finding:
    """Return a finding about ``path`` with the sentence ``meaning``. None as ``severity`` takes the
    first severity of ``code`` in the catalog, None as ``remedy`` the remedy there. ``place`` sets
    other attributes of Finding. Raise KeyError if the catalog has no such id, ValueError if it does
    not allow this severity for the id.

    Args:
        code: Id of the finding in the catalog.
        path: File or directory that the finding is about.
        meaning: Sentence about what was found, and what it means.
        severity: None: the first severity of the kind.
        remedy: None: the remedy of the kind.
        place: Other attributes of :class:`Finding`.
    """
    kind = CATALOG[code]
    found = severity or kind.severities[0]
    if found not in kind.severities:
        known = ", ".join(kind.severities)
        raise ValueError(f"findings {code} cannot have the severity {found}; known: {known}")
    return Finding(found, code, path, meaning, remedy or kind.remedy, **place)


def finding_table(findings: Iterable[Finding]) -> pa.Table:
    """Return a table with one row for each finding in the columns of :data:`FINDINGS`, ordered by
    severity (errors first), topic, partition, path, byte and id. Offsets and numbers of records
    that do not fit 64 bits become null.
    """
    ordered = sorted(findings, key=_sort_key)
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


def _sort_key(f: Finding) -> tuple[int, str, int, str, int, str]:
    """Return the sort key of a finding: severity (errors first), topic, partition, path, byte, id.
    A topic, partition or byte of None sorts first.
    """
    topic = "" if f.topic is None else f.topic
    partition = -1 if f.partition is None else f.partition
    byte = -1 if f.byte is None else f.byte
    return SEVERITIES.index(f.severity), topic, partition, os.fspath(f.path), byte, f.code


def _int64(value: int | None) -> int | None:
    """Return the number; None if it exceeds 64 bits, as numbers of damaged bytes may."""
    return None if value is None or not -(1 << 63) <= value < 1 << 63 else value
