"""Our reader on what brokers have just written, and the Java client and a broker on what we build."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from kafka_log import Batch, SegmentReader, discover, encode
from kafka_log.inspect.dump.json_objects import batch_object, record_object
from tests.support.client_batches import BASE, CODECS, RECORDS, message_set, record_batch
from tests.support.record_tables import table
from tests.support.sums import consumed, partition, sums

from .expected import consume
from .load import load_into_broker
from .make_samples import Made
from .readback import java_read_many

pytestmark = pytest.mark.broker


def test_we_read_what_a_consumer_read(made: Made) -> None:
    partitions = made.expected["partitions"]
    assert {"codecs-4", "transactions-0", "segments.small-1"} <= partitions.keys()
    for name, expected in partitions.items():
        found = partition(made.log_dir, name)
        assert sums(found, "kafka") == expected["on_disk"], name
        if "read_uncommitted" in expected:
            theirs = expected["read_uncommitted"]
            ours = consumed(found, theirs["start_offset"])
            assert ours == {key: theirs[key] for key in ours}, name


class Ignore:
    """Takes the digest that :func:`batch_object` makes of all records."""

    def update(self, data: bytes) -> None:
        """Nothing: the records themselves are compared."""


def rows(batches: Iterator[Batch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield batch_object(batch, Ignore())
        for record in batch.records:
            yield record_object(record)


def encoded() -> dict[str, bytes]:
    """Segments of every version and codec that were written from Arrow, in several batches each."""
    rows = [
        row | {"offset": i, "timestamp": 1_700_000_000_000 + 7 * i, "timestamp_type": 0}
        for i, row in enumerate(RECORDS * 30)
    ]
    for row in rows:
        row["headers"] = [{"key": key, "value": value} for key, value in row["headers"]]
    whole = table(rows)
    plain = table([row | {"headers": []} for row in rows])
    files = {f"arrow-v2-{codec}": (whole, {"codec": codec}) for codec in CODECS}
    for codec in CODECS[:4]:
        files[f"arrow-v1-{codec}"] = (plain, {"codec": codec, "magic": 1})
        untimed = plain.drop_columns(["timestamp", "timestamp_type"])
        files[f"arrow-v0-{codec}"] = (untimed, {"codec": codec, "magic": 0})
    producer = {"producer_id": 9, "producer_epoch": 2, "leader_epoch": 4}
    sequences = pa.array([((1 << 31) - 20 + i) % (1 << 31) for i in range(len(rows))], pa.int32())
    numbered = whole.append_column("sequence", sequences)
    files["arrow-v2-producer"] = (numbered, producer | {"is_transactional": True})
    files["arrow-v2-horizon"] = (whole, {"delete_horizon": 1_700_000_500_000})
    appended = [row | {"timestamp": 5 + i // 9, "timestamp_type": 1} for i, row in enumerate(rows)]
    files["arrow-v2-append"] = (table(appended), {"codec": "lz4"})
    return {
        name: b"".join(encode(data, batch_bytes=9000, **options))
        for name, (data, options) in files.items()
    }


def built() -> dict[str, bytes]:
    """Segments of every version and codec, and control and empty batches, all built by us."""
    files = {f"v2-{codec}": record_batch(codec) for codec in CODECS}
    files |= {f"v{m}-{codec}": message_set(m, codec) for m in (0, 1) for codec in CODECS[:4]}
    producer = {"producer_id": 9, "producer_epoch": 2, "partition_leader_epoch": 4}
    marker = {"key": bytes([0, 0, 0, 1]), "value": bytes([0, 0, 0, 0, 0, 7]), "offset_delta": 0}
    transactional = {"is_transactional": True}
    files["v2-transaction"] = b"".join(
        RECORD_BATCH.build(value)
        for value in (
            producer
            | {"base_sequence": 0, "attributes": transactional}
            | {"records": [{"offset_delta": i, "key": b"k", "value": b"v"} for i in range(3)]},
            producer
            | {"base_offset": 3, "attributes": transactional | {"is_control": True}}
            | {"records": [marker]},
            producer
            | {"base_offset": 4, "last_offset_delta": 5, "base_sequence": 3, "records": []},
            {
                "base_offset": 10,
                "attributes": {"has_delete_horizon": True, "timestamp_type": "log_append_time"},
                "base_timestamp": 1000,
                "max_timestamp": 5000,
                "records": [{"offset_delta": 0, "timestamp_delta": -7, "key": b"k", "value": None}],
            },
        )
    )
    files |= encoded()
    files["mixed"] = message_set(0, "gzip") + message_set(1, "lz4") + record_batch("zstd")
    return files


@pytest.mark.soak
def test_the_java_client_reads_what_we_build(tmp_path: Path) -> None:
    files = built()
    for name, data in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020}.log").write_bytes(data)
    paths = [tmp_path / name / f"{0:020}.log" for name in files]
    for path, theirs in zip(paths, java_read_many(paths), strict=True):
        end = theirs.pop()
        assert end["error"] is None, path
        assert end["trailingBytes"] == 0
        ours = list(rows(iter(SegmentReader(path, policy="strict"))))
        assert len(ours) == len(theirs)
        for mine, java in zip(ours, theirs, strict=True):
            control = java.pop("control", None)
            if control is not None:
                assert mine["control"]["type"] == control
            assert {name: mine[name] for name in java} == java, path


def test_a_broker_serves_what_we_build(tmp_path: Path) -> None:
    """A real broker recovers segments that we built, and a real consumer reads the records."""
    sources = {}
    for i, codec in enumerate(CODECS):
        folder = tmp_path / "built" / f"ours-{i}"
        folder.mkdir(parents=True)
        (folder / f"{BASE:020}.log").write_bytes(record_batch(codec))
        sources[f"ours-{i}"] = folder
    with load_into_broker(tmp_path / "broker", sources) as broker:
        found = consume(broker)
    for name, folder in sources.items():
        theirs = found[name]["read_uncommitted"]
        (mine,) = discover(folder)
        ours = consumed(mine, 0)
        assert ours["count"] == len(RECORDS)
        assert ours == {key: theirs[key] for key in ours}, name


def test_rebuilt_segments_are_read_the_same(made: Made, tmp_path: Path) -> None:
    """Parse what the brokers wrote, build it again, and let Java read it: compressed batches hold the same."""
    originals, copies = [], []
    for found in discover(made.log_dir):
        for segment in found.segments:
            data = segment.path.read_bytes()
            copy = tmp_path / f"{found.topic}-{found.partition}"
            copy.mkdir(parents=True, exist_ok=True)
            target = copy / segment.path.name
            parts = [
                LOG_ENTRY.build(LOG_ENTRY.parse(data[b.position : b.position + b.size]))
                for b in SegmentReader(segment.path, records=False)
            ]
            target.write_bytes(b"".join(parts))
            originals.append(segment.path)
            copies.append(target)
    changing = {"position", "sizeInBytes", "crc", "iteratedBytes"}
    read = java_read_many([*originals, *copies])
    assert originals
    for i, path in enumerate(originals):
        before, after = (
            [{k: v for k, v in row.items() if k not in changing} for row in rows_]
            for rows_ in (read[i], read[i + len(originals)])
        )
        assert before == after, path
