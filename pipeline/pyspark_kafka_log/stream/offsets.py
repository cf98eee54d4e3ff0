"""Offsets of streams in checkpoints: the JSON of Spark's Kafka source, with leader epochs in addition."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kafka_log.read.batch_places import NO_EPOCH
from kafka_log.read.progress import Key, Position

EPOCHS = "@leaderEpochs"
"""With this begin the names that hold leader epochs: no topic can be called so."""
INITIAL = "@initialOffsets"
"""With this begin the names that hold where a query began, in the end of its first micro-batch."""

Positions = Mapping[Key, Position]


def to_json(positions: Positions) -> dict[str, Any]:
    """Return positions as a JSON object, ``{"topic": {"0": 23}, "@leaderEpochs topic 0:4": {}}``:
    offsets by topic and partition, sorted, then one member for each topic with leader epochs.
    Unknown and impossible epochs, which are negative, are left out.

    Spark's Kafka source ignores a topic without partitions, so it accepts these offsets too.
    """
    out: dict[str, Any] = {}
    epochs: dict[str, list[str]] = {}
    for (topic, partition), position in sorted(positions.items()):
        out.setdefault(topic, {})[str(partition)] = position.offset
        if position.leader_epoch > NO_EPOCH:  # no checksum covers it, so it may be any number
            epochs.setdefault(topic, []).append(f"{partition}:{position.leader_epoch}")
    return out | {" ".join((EPOCHS, topic, *some)): {} for topic, some in epochs.items()}


def from_json(found: Any) -> dict[Key, Position]:
    """Return the positions in a parsed JSON object of :func:`to_json`, or of Spark's Kafka source,
    where leader epochs are NO_EPOCH. Ignore initial offsets in it. Raise ValueError for any other
    value.
    """
    epochs: dict[Key, int] = {}
    offsets: dict[Key, int] = {}
    try:
        for name, partitions in found.items():
            if name.startswith(EPOCHS):
                epochs |= _parse_numbers(EPOCHS, name, digits=10)
                continue
            if name.startswith(INITIAL):
                continue
            for partition, number in partitions.items():
                if type(number) is not int:
                    raise ValueError
                offsets[name, int(partition)] = number
    except (AttributeError, ValueError):
        raise ValueError(
            "not the offsets of a stream of kafka-log: restart the query with a checkpoint that this source wrote, or"
            f" with a new one: {found!r}"
        ) from None
    return {key: Position(offset, epochs.get(key, NO_EPOCH)) for key, offset in offsets.items()}


def add_initial(end: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of ``end``, the offsets at which a first micro-batch ends, with members for
    ``start``, the offsets at which it begins: Spark gives Python sources no checkpoint.
    ``@initialOffsets`` is added even if ``start`` is empty, then one member for each topic of
    ``start``. Leader epochs of ``start`` are left out.

    ``{"@initialOffsets": {}, "@initialOffsets topic 0:23": {}}`` stands beside the offsets.
    """
    out = {**end, INITIAL: {}}
    for topic, partitions in start.items():
        if not topic.startswith("@"):
            pairs = (f"{partition}:{offset}" for partition, offset in partitions.items())
            out[" ".join((INITIAL, topic, *pairs))] = {}
    return out


def initial_offsets(end: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the start offsets that :func:`add_initial` added to ``end``, without leader epochs;
    None if it was not called. Raise ValueError if a member has another form.
    """
    if INITIAL not in end:
        return None
    out: dict[str, Any] = {}
    for text in end:
        if text.startswith(INITIAL + " "):
            for (topic, partition), offset in _parse_numbers(INITIAL, text, digits=19).items():
                out.setdefault(topic, {})[str(partition)] = offset
    return out


def _parse_numbers(what: str, name: str, *, digits: int) -> dict[Key, int]:
    """Return the numbers in a name such as ``@leaderEpochs topic 0:4 1:4``, by (topic, partition).
    ``what`` is its first word; numbers have at most ``digits`` digits. Raise ValueError if the name
    has another form.
    """
    if not re.fullmatch(rf"{what} [^ ]+( [0-9]{{1,10}}:[0-9]{{1,{digits}}})+", name, re.ASCII):
        raise ValueError(
            f"not the offsets of a stream of kafka-log: {name!r} is not in the form of this source; restart the query with a"
            " checkpoint that this source wrote, or with a new one"
        )
    _, topic, *some = name.split(" ")
    pairs = (one.split(":") for one in some)
    return {(topic, int(partition)): int(number) for partition, number in pairs}


def partition_name(key: Key) -> str:
    """Return the name of a partition as its directory has it: ``orders-0``."""
    return f"{key[0]}-{key[1]}"
