"""What is read of a segment, by Kafka's reader and by ours: rows with the names that Judge.java gives them."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kafka_log import SegmentReader
from kafka_log.inspect.dump.json_objects import batch_object, record_object
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.model import Batch, Record
from kafka_log.segment.reader import Batches

from .maven import JUDGE, BrokerError, java_command

Row = dict[str, Any]


class Java:
    """Kafka's reader in one JVM."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process = process
        self.stdin: IO[bytes] = process.stdin
        self.stdout: IO[bytes] = process.stdout

    def ask(self, paths: Sequence[Path]) -> None:
        """Have files read; the answers are there to be taken later."""
        self.stdin.write("".join(f"{path}\n" for path in paths).encode())
        self.stdin.flush()

    def answer(self) -> list[Row]:
        """What was read from the next file that was asked for."""
        rows: list[Row] = []
        while not rows or rows[-1]["type"] != "end":
            line = self.stdout.readline()
            if not line:
                raise BrokerError(f"Judge ended with code {self.process.wait()}")
            rows.append(json.loads(line))
        return rows


@contextmanager
def java() -> Iterator[Java]:
    with subprocess.Popen(
        java_command(JUDGE, "Judge"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Java(process)
        finally:
            process.kill()


def ours(reader: Batches) -> list[Row]:
    """The rows that Kafka's reader gives, from one of ours."""
    rows: list[Row] = []
    whole = hashlib.sha256()
    for batch in reader:
        rows.append(_batch(batch, whole))
        rows += map(_record, batch.records)
    end = reader.end
    assert end is not None
    rows.append(
        {
            "type": "end",
            "batches": end.batches,
            "records": end.records,
            "validBytes": end.valid_bytes,
            "iteratedBytes": end.iterated_bytes,
            "trailingBytes": end.trailing_bytes,
            "stop": end.stop,
            "exception": None if end.error is None else str(end.error),
        }
    )
    return rows


OURS_ALONE = ("attributes", "baseTimestamp", "recordsDecoded", "recordsSha256")
"""What is dumped of a batch, and not asked of Kafka's reader."""


ERROR_PLACE = ("message", "path", "position", "streamPosition", "schema")
"""What is dumped of an error beside its name."""


def _batch(batch: Batch, whole: Any) -> Row:
    row = {k: v for k, v in batch_object(batch, whole).items() if k not in OURS_ALONE}
    row["ensureValid"] = row["ensureValid"] is None
    if batch.problems:
        row["errors"] = [{"at": p.at, "error": str(p.error)} for p in batch.problems]
    return row


def _record(record: Record) -> Row:
    row = {k: v for k, v in record_object(record).items() if k != "crcError"}
    if record.control is not None and record.control.error is not None:
        row["control"] = {k: v for k, v in row["control"].items() if k not in ERROR_PLACE}
    return row | {"isValid": record.crc_error is None}


def construct(path: Path) -> list[Row]:
    return ours(SegmentReader(path, policy="kafka"))


def arrow(path: Path) -> list[Row]:
    return ours(BlockReader(path, policy="kafka", engine="arrow"))
