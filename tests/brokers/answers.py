"""What kafka_log says of a directory beside what consumers and the Admin client say of the cluster that it is of."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from kafka_log import LogDirectory, scan
from tests.brokers.brokers import KraftBroker
from tests.brokers.maven import ADMINISTRATOR
from tests.brokers.process import LineClient

ISOLATIONS: tuple[Literal["read_uncommitted", "read_committed"], ...] = (
    "read_uncommitted",
    "read_committed",
)
Place = tuple[str, int]


def administrator(broker: KraftBroker) -> LineClient:
    """The Admin client of Kafka 4; see Administrator.java."""
    log = broker.directory / "administrator.log"
    return LineClient(ADMINISTRATOR, [broker.bootstrap_servers], log)


def consumed(broker: KraftBroker, places: Iterable[Place]) -> dict[Place, dict[str, Any]]:
    """For each partition what a real consumer reads at both levels of isolation: offsets, count and digest."""
    with broker.client() as client:
        wanted = [{"topic": topic, "partition": number} for topic, number in places]
        found = client.ask("digest", partitions=wanted)
    return {(w["topic"], w["partition"]): found[f"{w['topic']}-{w['partition']}"] for w in wanted}


def ours(
    paths: Path | Sequence[Path], place: Place, start: int, isolation: Any, **more: Any
) -> dict[str, Any]:
    """The same of a directory, from the offset at which the consumer began."""
    columns = ["offset", "timestamp", "key", "value", "headers"]
    stream = scan(
        paths,
        columns,
        offsets=(start, None),
        isolation=isolation,
        topics=place[0],
        partitions=place[1],
        **more,
    )
    return summed(plain(stream.read_all()))


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Rows whose timestamps are milliseconds."""
    names = table.column_names
    at = names.index("timestamp")
    return table.set_column(at, "timestamp", table.column(at).cast(pa.int64())).to_pylist()


def summed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Count, ends and digest of such rows (see samples/README.md)."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(struct.pack(">qq", row["offset"], row["timestamp"]))
        digest.update(_blob(row["key"]) + _blob(row["value"]))
        digest.update(struct.pack(">i", len(row["headers"])))
        for header in row["headers"]:
            digest.update(_blob(header["key"].encode()) + _blob(header["value"]))
    ends = (rows[0]["offset"], rows[-1]["offset"]) if rows else (None, None)
    return {
        "count": len(rows),
        "first_offset": ends[0],
        "last_offset": ends[1],
        "sha256": digest.hexdigest(),
    }


def _blob(value: bytes | None) -> bytes:
    return struct.pack(">i", -1 if value is None else len(value)) + (value or b"")


def assert_same_records(
    theirs: Mapping[Place, Mapping[str, Any]], paths: Path | Sequence[Path], **more: Any
) -> None:
    """Every record that consumers got, and no other, at both levels of isolation."""
    for place, of_place in theirs.items():
        for isolation in ISOLATIONS:
            expected = of_place[isolation]
            found = ours(paths, place, expected["start_offset"], isolation, **more)
            assert found == {name: expected[name] for name in found}, (place, isolation)


def complaints(*paths: Path, deep: bool = True) -> list[dict[str, Any]]:
    """Return the errors and warnings of a check, which reads all segments. A broker may be writing them."""
    told: list[int] = []
    log = LogDirectory(paths)
    sizes = sum(segment.size for partition in log.partitions for segment in partition.segments)
    rows = log.check(deep=deep, advance=told.append).to_pylist()
    assert bool(sum(told)) == bool(sizes)
    return [row for row in rows if row["severity"] != "note"]
