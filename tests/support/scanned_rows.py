"""Rows of a file, from the reference codecs and from the kernels, in one form."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_codecs.arrow.records import RECORDS
from kafka_log import End, SegmentReader
from kafka_log.segment.model import Batch, Record
from kafka_log.segment.scanner import Scanner
from tests.paths import SAMPLES, VECTORS

ALL = tuple(column.name for column in RECORDS.columns)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass
class Read:
    """What was read: the rows by column name, the error that was raised, how the file ended."""

    rows: list[dict[str, Any]]
    error: str | None
    end: End | None
    fallbacks: int = 0
    """Batches that the kernels did not take."""
    noted: int = 0
    """Batches of which the reference codecs have something to say."""

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Read)
        return (self.rows, self.error, str(self.end)) == (other.rows, other.error, str(other.end))


def reference(path: Path, policy: str, limits: Limits | None = None) -> Read:
    """By the reference codecs, batch by batch. A file of the repository is read once; each caller gets its own copy."""
    if limits is None and (path.is_relative_to(VECTORS) or path.is_relative_to(SAMPLES)):
        read: Read = pickle.loads(_kept(path, policy))
        return read
    return read_by_reference(path, policy, limits)


@cache
def _kept(path: Path, policy: str) -> bytes:
    return pickle.dumps(read_by_reference(path, policy))


def read_by_reference(path: Path, policy: str, limits: Limits | None = None) -> Read:
    """By the reference codecs, whether or not they have read it before."""
    reader = SegmentReader(path, policy=policy, limits=limits)
    rows: list[dict[str, Any]] = []
    error = None
    noted = 0
    try:
        for batch in reader:
            noted += bool(batch.findings or batch.problems)
            rows += [row(batch, record) for record in batch.records]
    except CodecError as raised:
        error = str(raised)
    return Read(rows, error, reader.end, noted=noted)


def row(batch: Batch, record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": batch.timestamp_type,
        "key": record.key,
        "value": record.value,
        "headers": [{"key": key, "value": value} for key, value in record.headers],
        "base_offset": batch.base_offset,
        "position": batch.position,
        "magic": batch.magic,
        "codec": CODECS.index(batch.compression or "none"),
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "sequence": record.sequence,
        "leader_epoch": batch.partition_leader_epoch,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "delete_horizon": batch.delete_horizon,
    }


def scanned(
    path: Path,
    policy: str,
    *,
    columns: tuple[str, ...] = ALL,
    engine: Literal["auto", "arrow", "construct"] = "arrow",
    chunk_bytes: int = 4 << 20,
    kernels: ModuleType | None = None,
    limits: Limits | None = None,
) -> Read:
    """By the kernels, or those that are given. Every batch of Arrow is validated in full."""
    scanner = Scanner(
        path,
        columns,
        policy,
        on_damage="keep",
        engine=engine,
        chunk_bytes=chunk_bytes,
        limits=limits,
    )
    if kernels is not None:
        scanner.kernels = kernels
    rows: list[dict[str, Any]] = []
    error = None
    try:
        for batch in scanner:
            rows += unpacked(batch)
    except CodecError as raised:
        error = str(raised)
    return Read(rows, error, scanner.end, scanner.fallbacks)


def unpacked(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows with numbers for times, also inside of others: Python has none for some of them."""
    batch.validate(full=True)
    values = {}
    for name in batch.schema.names:
        column = batch.column(name)
        values[name] = column.cast(_without_times(column.type)).to_pylist()
    return [dict(zip(values, item, strict=True)) for item in zip(*values.values(), strict=True)]


def _without_times(kind: Any) -> Any:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_times(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_without_times(f.type)) for f in kind])
    return kind
