"""Logs that we wrote, taken in by a broker and read by a consumer."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

from kafka_log import read_table
from tests.brokers.brokers import KraftBroker
from tests.brokers.expected import consume
from tests.brokers.load import CLEAN_MARK, load_into_broker
from tests.support.sums import blob

INDEXES = (".index", ".timeindex", ".txnindex")


RECOVERY_POINT = "recovery-point-offset-checkpoint"


def digest(path: Path, isolation: str, start: int = 0) -> dict[str, Any]:
    """What a consumer says of a partition whose log starts at an offset, from our rows."""
    columns = ["offset", "timestamp", "key", "value", "headers"]
    options: Any = {"isolation": isolation, "offsets": (start, None), "deleted_records": True}
    table = read_table(path, columns, **options)
    table = table.set_column(1, "timestamp", table["timestamp"].cast("int64"))
    out = hashlib.sha256()
    for row in table.to_pylist():
        out.update(struct.pack(">qq", row["offset"], row["timestamp"]))
        out.update(blob(row["key"]) + blob(row["value"]))
        out.update(struct.pack(">i", len(row["headers"])))
        for header in row["headers"]:
            out.update(blob(header["key"].encode()) + blob(header["value"]))
    return {"count": table.num_rows, "sha256": out.hexdigest()}


def same_rows(broker: KraftBroker, names: dict[str, str], sources: dict[str, Path]) -> None:
    found = consume(broker)
    for name, word in names.items():
        for isolation in ("read_uncommitted", "read_committed"):
            theirs, ours = found[name][isolation], digest(sources[name], isolation)
            assert {key: theirs[key] for key in ours} == ours, (word, isolation)


def no_errors(broker: KraftBroker) -> None:
    lines = broker.log_text().splitlines()
    wrong = ("ERROR", "orrupt", "Exception")
    assert [line for line in lines if any(word in line for word in wrong)] == []


def taken_in(tmp: Path, made: dict[str, Path], other_indexes: str | None = None) -> None:
    """A broker takes in what was written, and after a crash makes the same files of it; but for those whose word begins so, which have
    entries of their own."""
    sources = {f"written-{i}": path for i, path in enumerate(made.values())}
    names = dict(zip(sources, made, strict=True))
    before = {
        name: {p.name: p.read_bytes() for p in path.iterdir() if p.suffix in (*INDEXES, ".log")}
        for name, path in sources.items()
    }
    with load_into_broker(tmp / "broker", sources, recover=False) as broker:
        no_errors(broker)
        same_rows(broker, names, sources)
        broker.stop()
        # Now as after a crash: it makes all indexes anew, and cuts what it does not take.
        for name in sources:
            for path in (broker.log_dir / name).iterdir():
                if path.suffix in (*INDEXES, ".snapshot"):
                    path.unlink()
        (broker.log_dir / CLEAN_MARK).unlink()
        (broker.log_dir / RECOVERY_POINT).unlink()
        broker.start()
        no_errors(broker)
        same_rows(broker, names, sources)
        broker.stop()
        for name, files in before.items():
            if other_indexes is not None and names[name].startswith(other_indexes):
                continue
            for file, data in files.items():
                path = broker.log_dir / name / file
                theirs = path.read_bytes() if path.exists() else b""
                assert theirs == data, (names[name], file)
