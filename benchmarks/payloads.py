"""How fast payloads become rows: offset commits of mixed versions, as a topic of offsets holds them.

    python -m benchmarks.payloads [--mib 128] [--rounds 9] [--output benchmarks/results/payloads.md]

The schema is that of the tests (tests/data/payloads). Keys and values lie in Arrow columns, as a log or a consumer gives them.
"""

from __future__ import annotations

import importlib
import io
import random
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from aiokafka.protocol.types import Int16, Int32, Int64, Schema, String

from benchmarks import measure
from benchmarks.measure import Candidate, Report, ratio
from codecgen.directories import load
from codecgen.plan import make_plan
from codecgen.runtime.arrow.payloads import decode
from codecgen.targets.registry import TARGETS

NOTES = """
Nanoseconds for each payload, and millions of them a second, on one core: medians of CPU time. *kernel* is the view with all its
default columns, the input row of each row with it; *two columns* shows only the committed offset and the partition.
*struct* is a loop that reads the same fields with Python's `struct`, *aiokafka* one with the types of its protocol; both make
tuples, of a part of the payloads. *codecs* are the reference codecs, which read what the kernel leaves. *copy* copies the
bytes of all keys and values.
""".strip()
SCHEMA = Path(__file__).resolve().parent.parent / "tests" / "data" / "payloads"
PART = 20_000
"""Payloads that slow readers get."""

KEY = Schema(
    ("version", Int16), ("group", String("utf-8")), ("topic", String("utf-8")), ("partition", Int32)
)
_SHORT = [("version", Int16), ("offset", Int64)]
_TEXT = ("metadata", String("utf-8"))
_TIME = ("commit_timestamp", Int64)
VALUES = {
    0: Schema(*_SHORT, _TEXT, _TIME),
    1: Schema(*_SHORT, _TEXT, _TIME, ("expire_timestamp", Int64)),
    2: Schema(*_SHORT, _TEXT, _TIME),
    3: Schema(*_SHORT, ("leader_epoch", Int32), _TEXT, _TIME),
}


def generated(folder: Path) -> None:
    """The codecs of the schema, where Python finds them."""
    model, found, _ = load(SCHEMA)
    assert model is not None and not found
    plan = make_plan(model)
    for name in ("construct", "arrow"):
        for path, text in TARGETS[name](plan).files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))


def text(data: str | None) -> bytes:
    encoded = b"" if data is None else data.encode()
    return struct.pack(">h", -1 if data is None else len(encoded)) + encoded


def payloads(count: int, versions: tuple[int, ...], null: float) -> dict[str, pa.Array]:
    """Offset commits; some of them are tombstones."""
    r = random.Random(1)
    groups = [f"consumer-group-{i}" for i in range(200)]
    topics = [f"orders.{i}.v1" for i in range(50)]
    keys, values = [], []
    for i in range(count):
        version = r.choice(versions)
        keys.append(
            struct.pack(">h", i & 1)
            + text(r.choice(groups))
            + text(r.choice(topics))
            + struct.pack(">i", i % 64)
        )
        if r.random() < null:
            values.append(None)
            continue
        epoch = struct.pack(">i", 3) if version == 3 else b""
        expires = struct.pack(">q", -1) if version == 1 else b""
        metadata = text(r.choice(("", "", "host-17")))
        time = struct.pack(">q", 1_700_000_000_000 + i)
        values.append(struct.pack(">hq", version, i) + epoch + metadata + time + expires)
    return {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}


def kernel(view: Any, parts: dict[str, pa.Array], *names: str, **options: Any) -> Candidate:
    return lambda: sum(one.batch.num_rows for one in decode(view, parts, names or None, **options))


def looped(read: Callable[[bytes, bytes | None], object], parts: dict[str, pa.Array]) -> Candidate:
    pairs = list(
        zip(
            parts["key"][:PART].to_pylist(),
            parts["value"][:PART].to_pylist(),
            strict=True,
        )
    )
    return lambda: [read(key, value) for key, value in pairs]


def by_struct(key: bytes, value: bytes | None) -> object:
    """The row of an offset commit, with Python's own means."""
    size = int.from_bytes(key[2:4], "big")
    group = key[4 : 4 + size].decode()
    at = 4 + size
    size = int.from_bytes(key[at : at + 2], "big")
    topic = key[at + 2 : at + 2 + size].decode()
    (partition,) = struct.unpack_from(">i", key, at + 2 + size)
    if value is None:
        return group, topic, partition, None, None, None, None, None, True
    version, offset = struct.unpack_from(">hq", value)
    at, epoch = 10, None
    if version == 3:
        (epoch,) = struct.unpack_from(">i", value, at)
        at += 4
    (size,) = struct.unpack_from(">h", value, at)
    metadata = None if size < 0 else value[at + 2 : at + 2 + size].decode()
    at += 2 + max(size, 0)
    (time,) = struct.unpack_from(">q", value, at)
    expires = struct.unpack_from(">q", value, at + 8)[0] if version == 1 else None
    return group, topic, partition, offset, epoch, metadata, time, expires, False


def by_aiokafka(key: bytes, value: bytes | None) -> object:
    """The same with the types of aiokafka."""
    head = KEY.decode(io.BytesIO(key))
    if value is None:
        return head, None
    return head, VALUES[int.from_bytes(value[:2], "big")].decode(io.BytesIO(value))


def copied(parts: dict[str, pa.Array]) -> Candidate:
    data = [np.frombuffer(array.buffers()[2], np.uint8) for array in parts.values()]
    return lambda: [one.copy() for one in data]


def main() -> None:
    options = measure.parser(__doc__, rounds=9, mib=128).parse_args()
    report = Report("Payloads", measure.command("benchmarks.payloads", options))
    report.add(NOTES)
    names = ("kernel", "two columns", "codecs", "struct", "aiokafka", "copy")
    report.table("payloads", "number", "bytes", "M/s", *names, "x struct", "x aiokafka")
    with tempfile.TemporaryDirectory() as folder:
        generated(Path(folder))
        view = importlib.import_module("payload_codecs.columns.offsets").OFFSETS
        for title, versions, null in (
            ("versions 0, 1 and 3", (0, 1, 3), 0.0),
            ("version 3", (3,), 0.0),
            ("versions 0, 1 and 3, a third tombstones", (0, 1, 3), 0.33),
        ):
            line(
                report,
                view,
                title,
                payloads(max(1000, options.mib << 13), versions, null),
                options.rounds,
            )
    report.write(options.output)


def line(report: Report, view: Any, title: str, parts: dict[str, pa.Array], rounds: int) -> None:
    count = len(parts["key"])
    some = {name: array[:PART] for name, array in parts.items()}
    candidates = {
        "kernel": kernel(view, parts),
        "two columns": kernel(view, parts, "committed_offset", "partition"),
        "codecs": kernel(view, {n: a[:2000] for n, a in parts.items()}, compiled=False),
        "struct": looped(by_struct, parts),
        "aiokafka": looped(by_aiokafka, parts),
        "copy": copied(parts),
    }
    assert candidates["kernel"]() == count
    found = measure.rounds(candidates, rounds)
    numbers = {
        "struct": len(some["key"]),
        "aiokafka": len(some["key"]),
        "codecs": min(count, 2000),
    }
    ns = {name: m.median / numbers.get(name, count) * 1e9 for name, m in found.items()}
    bytes_ = sum(array.nbytes for array in parts.values()) / count
    report.row(
        title,
        f"{count:,}",
        f"{bytes_:.0f}",
        f"{1e3 / ns['kernel']:.1f}",
        *(f"{ns[name]:,.0f}" if ns[name] > 100 else f"{ns[name]:.1f}" for name in candidates),
        ratio(ns["struct"], ns["kernel"]),
        ratio(ns["aiokafka"], ns["kernel"]),
    )


if __name__ == "__main__":
    main()
