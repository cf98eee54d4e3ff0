"""Segments as streams of Arrow record batches, and as tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

from codecgen.runtime.source import Limits
from kafka_log.model import Policy
from kafka_log.scanner import CHUNK_BYTES, BatchScanner, Engine, Range, Scanner


def scan_batches(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    policy: Policy | str = Policy.KAFKA,
    *,
    on_damage: Literal["raise", "keep"] | None = None,
    limits: Limits | None = None,
    engine: Engine = "auto",
) -> pa.RecordBatchReader:
    """The record batches and messages of a file, one row each, from their heads alone. See :class:`BatchScanner`."""
    return BatchScanner(
        path, columns, policy, on_damage=on_damage, limits=limits, engine=engine
    ).to_reader()


def scan(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    policy: Policy | str = Policy.KAFKA,
    *,
    offsets: Range | None = None,
    timestamps: Range | None = None,
    on_damage: Literal["raise", "keep"] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    limits: Limits | None = None,
    engine: Engine = "auto",
) -> pa.RecordBatchReader:
    """The records of a file of batches as a stream of Arrow record batches, in bounded memory.

    ``columns`` are those of the view records (None: all that need not be asked for); ``offsets`` and ``timestamps``
    (milliseconds) are ranges of which the first is in, the second not, and None is open. See :class:`Scanner`.
    """
    return Scanner(
        path,
        columns,
        policy,
        offsets=offsets,
        timestamps=timestamps,
        on_damage=on_damage,
        chunk_bytes=chunk_bytes,
        limits=limits,
        engine=engine,
    ).to_reader()


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    policy: Policy | str = Policy.KAFKA,
    *,
    offsets: Range | None = None,
    timestamps: Range | None = None,
    on_damage: Literal["raise", "keep"] | None = None,
    limits: Limits | None = None,
    engine: Engine = "auto",
) -> pa.Table:
    """Like :func:`scan`, all of it as a table."""
    return scan(
        path,
        columns,
        policy,
        offsets=offsets,
        timestamps=timestamps,
        on_damage=on_damage,
        limits=limits,
        engine=engine,
    ).read_all()
