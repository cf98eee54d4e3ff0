"""What is read of a segment, by Kafka's reader and by ours: rows with the names that Judge.java gives them."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kafka_log import SegmentReader
from kafka_log.report.json_dump import TIMESTAMP_TYPES
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.model import Batch, is_own_checksum
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
    for batch in reader:
        rows.append(_batch(batch))
        for record in batch.records:
            rows.append(
                {
                    "type": "record",
                    "offset": record.offset,
                    "timestamp": record.timestamp,
                    "sequence": record.sequence,
                    "key": _text(record.key),
                    "value": _text(record.value),
                    "headers": [[key, _text(value)] for key, value in record.headers],
                    "isValid": record.crc_error is None,
                }
            )
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


def _batch(batch: Batch) -> Row:
    row: Row = {
        "type": "batch",
        "position": batch.position,
        "sizeInBytes": batch.size,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "nextOffset": batch.next_offset,
        "magic": batch.magic,
        "crc": batch.crc,
        "isValid": batch.is_valid,
        "ensureValid": not any(map(is_own_checksum, batch.findings)),
        "compression": batch.compression,
        "timestampType": TIMESTAMP_TYPES[batch.timestamp_type],
        "maxTimestamp": batch.max_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "deleteHorizonMs": batch.delete_horizon,
        "count": batch.count,
    }
    if batch.problems:
        row["errors"] = [{"at": p.at, "error": str(p.error)} for p in batch.problems]
    return row


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def construct(path: Path) -> list[Row]:
    return ours(SegmentReader(path, policy="kafka"))


def arrow(path: Path) -> list[Row]:
    return ours(BlockReader(path, policy="kafka", engine="arrow"))
