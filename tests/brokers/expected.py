"""What a real consumer reads from a broker, and what its files hold according to Kafka's record classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .brokers import Broker
from .maven import BrokerError
from .readback import java_read_many, record_digest

METADATA = "__cluster_metadata-0"


def partitions(log_dir: Path) -> list[str]:
    """The partition folders of a log directory, by name."""
    return sorted(path.name for path in log_dir.iterdir() if path.is_dir())


def consume(broker: Broker) -> dict[str, dict[str, Any]]:
    """For each partition what the Java consumer reads, read_uncommitted and read_committed."""
    wanted = []
    for name in partitions(broker.log_dir):
        topic, _, number = name.rpartition("-")
        # No consumer reads the metadata log: it is the controllers' own.
        if name != METADATA:
            wanted.append({"topic": topic, "partition": int(number)})
    with broker.client() as client:
        return dict(client.ask("digest", partitions=wanted))


def describe(log_dir: Path, consumed: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The consumer's results with what lies in the files beside them; raises where the two differ."""
    names = partitions(log_dir)
    paths = {name: sorted((log_dir / name).glob("*.log")) for name in names}
    # Snapshots of the metadata log: batches too, each file a log of its own.
    snapshots = sorted((log_dir / METADATA).glob("*-*.checkpoint"))
    every = [path for name in names for path in paths[name]] + snapshots
    read = dict(zip(every, java_read_many(every), strict=True))
    for path, found in read.items():
        if found[-1]["error"] is not None or found[-1]["trailingBytes"]:
            raise BrokerError(f"{path}: Kafka's own reader does not read it whole: {found[-1]}")
    described: dict[str, Any] = {}
    for name in names:
        rows = [row for path in paths[name] for row in read[path][:-1]]
        described[name] = _partition(name, rows, consumed.get(name))
    if snapshots:
        found_in = {path.name: _on_disk(read[path][:-1]) for path in snapshots}
        described[METADATA]["snapshots"] = found_in
    return described


def _partition(
    name: str, rows: list[dict[str, Any]], consumed: Mapping[str, Any] | None
) -> dict[str, Any]:
    if consumed is None:
        return {"on_disk": _on_disk(rows)}
    uncommitted = consumed["read_uncommitted"]
    # What DeleteRecords has cut off is still in the file.
    start = uncommitted["start_offset"]
    seen = [row for row in _data(rows) if row["offset"] >= start]
    if (len(seen), record_digest(seen)) != (uncommitted["count"], uncommitted["sha256"]):
        raise BrokerError(f"{name}: the file and the consumer differ: {len(seen)}, {uncommitted}")
    return {**consumed, "on_disk": _on_disk(rows)}


def _data(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["type"] == "record" and "control" not in row]


def _on_disk(rows: list[dict[str, Any]]) -> dict[str, Any]:
    codecs: Counter[str] = Counter()
    magics: Counter[str] = Counter()
    control: Counter[str] = Counter()
    batches = empty = horizons = 0
    codec, magic = "", ""
    for row in rows:
        if row["type"] == "batch":
            codec, magic = row["compression"], str(row["magic"])
            batches += 1
            empty += row["count"] == 0
            horizons += row["deleteHorizonMs"] is not None
        elif "control" in row:
            control[row["control"]] += 1
        else:
            codecs[codec] += 1
            magics[magic] += 1
    return {
        "batches": batches,
        "empty_batches": empty,
        "delete_horizons": horizons,
        "records": sum(magics.values()),
        "records_by_codec": dict(sorted(codecs.items())),
        "records_by_magic": dict(sorted(magics.items())),
        "control_records": dict(sorted(control.items())),
        "sha256": record_digest(_data(rows)),
    }
