"""Offsets of streams as checkpoints keep them: the JSON of Spark's Kafka source, and the leader epochs beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka_log.tables.batch_places import NO_EPOCH
from kafka_log.tables.progress import Key, Position

EPOCHS = "@leaderEpochs"
"""No topic can be called so."""

Positions = Mapping[Key, Position]


def to_json(positions: Positions) -> dict[str, Any]:
    """``{"topic": {"0": 23}, "@leaderEpochs": {"topic": {"0": 4}}}``, sorted. Epochs that are not known are left out."""
    out: dict[str, Any] = {}
    epochs: dict[str, dict[str, int]] = {}
    for (topic, partition), position in sorted(positions.items()):
        out.setdefault(topic, {})[str(partition)] = position.offset
        if position.leader_epoch != NO_EPOCH:
            epochs.setdefault(topic, {})[str(partition)] = position.leader_epoch
    return out | ({EPOCHS: epochs} if epochs else {})


def from_json(found: Any) -> dict[Key, Position]:
    """What :func:`to_json` made, or Spark's Kafka source. Raises ValueError for what is no offsets."""
    if not isinstance(found, dict):
        raise ValueError(f"these are no offsets of a stream: {found!r}")
    epochs = _flat(found.get(EPOCHS, {}))
    offsets = _flat({topic: inner for topic, inner in found.items() if topic != EPOCHS})
    return {key: Position(offset, epochs.get(key, NO_EPOCH)) for key, offset in offsets.items()}


def _flat(found: Any) -> dict[Key, int]:
    out: dict[Key, int] = {}
    try:
        for topic, partitions in found.items():
            for partition, number in partitions.items():
                if type(number) is not int:
                    raise ValueError
                out[topic, int(partition)] = number
    except (AttributeError, ValueError):
        raise ValueError(f"these are no offsets of a stream: {found!r}") from None
    return out


def name(key: Key) -> str:
    """A partition as its directory is called."""
    return f"{key[0]}-{key[1]}"
