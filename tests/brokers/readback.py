"""What Kafka's own record classes read from segment files."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .maven import READ_BACK, BrokerError, java_command, tail

READ_LIMIT_S = 120


def java_read(path: Path) -> list[dict[str, Any]]:
    """The batches and records of one segment file, in file order, and an "end" row.

    The rows are named as in ReadBack.java. Byte strings are standard base64. A file that Kafka's reader refuses gives an
    "end" row whose "error" is not null.
    """
    return java_read_many([path])[0]


def java_read_many(paths: Sequence[Path]) -> list[list[dict[str, Any]]]:
    """The same for many files with one JVM."""
    with tempfile.TemporaryDirectory() as scratch:
        errors = Path(scratch) / "readback.log"
        with errors.open("wb") as log:
            done = subprocess.run(
                java_command(READ_BACK, "ReadBack"),
                input="".join(f"{path.resolve()}\n" for path in paths).encode(),
                stdout=subprocess.PIPE,
                stderr=log,
                timeout=READ_LIMIT_S,
                check=False,
            )
        if done.returncode != 0:
            raise BrokerError(f"ReadBack ended with code {done.returncode}:\n{tail(errors)}")
    files: list[list[dict[str, Any]]] = [[]]
    for line in done.stdout.decode("utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        files[-1].append(row)
        if row["type"] == "end":
            files.append([])
    if len(files) != len(paths) + 1:
        raise BrokerError(f"ReadBack read {len(files) - 1} of {len(paths)} files")
    return files[:-1]


def record_digest(records: Iterable[dict[str, Any]]) -> str:
    """SHA-256 over record rows in the form that samples/README.md describes."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(struct.pack(">qq", record["offset"], record["timestamp"]))
        digest.update(_blob(_bytes(record["key"])) + _blob(_bytes(record["value"])))
        digest.update(struct.pack(">i", len(record["headers"])))
        for name, value in record["headers"]:
            digest.update(_blob(name.encode()) + _blob(_bytes(value)))
    return digest.hexdigest()


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)


def _blob(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
