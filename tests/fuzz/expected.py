"""What becomes of a table that is written, worked out beside the kernels: which rows are refused, what is read again, and,
row by row with the reference codecs, the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_codecs import MESSAGE_V0, MESSAGE_V1, RECORD_BATCH
from tests.fuzz.made_tables import MOST_32, NAMES, TYPES, Case
from tests.support.column_values import Values, array, lists, numbers, plain, texts
from tests.support.scanned_rows import CODECS, unpacked

DEFAULTS = {"timestamp": -1, "codec": 0, "producer_id": -1, "producer_epoch": -1, "sequence": -1}
DEFAULTS |= {"leader_epoch": -1, "is_transactional": 0, "is_control": 0}
MOST_64 = (1 << 63) - 1
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Expected:
    """``columns`` as they are read again. ``refused`` says of each column in which rows it has what has no place,
    ``perhaps`` where that depends on the rows in front. ``said`` are the columns that are not left to their defaults."""

    columns: Mapping[str, Values]
    refused: Mapping[str, Any]
    perhaps: Mapping[str, Any]
    said: frozenset[str]

    def first_refused(self) -> int | None:
        found = [int(np.argmax(mask)) for mask in self.refused.values() if mask.any()]
        return min(found, default=None)

    def batch(self) -> pa.RecordBatch:
        layout = plain()
        arrays = [array(self.columns[name], layout) for name in NAMES]
        return pa.RecordBatch.from_arrays(arrays, list(NAMES))


def expected(case: Case) -> Expected:
    """What should become of a case."""
    n = case.rows
    constants: dict[str, int | None] = dict(case.settings.constants)
    if case.settings.codec is not None:
        constants["codec"] = CODECS.index(case.settings.codec)
    given = {name: v for name, v in case.given.items() if name not in constants}
    said = frozenset({*given, *constants})
    if case.settings.magic is not None or "magic" not in given:
        magic = 2 if case.settings.magic is None else case.settings.magic
        given["magic"] = numbers(TYPES["magic"], np.full(n, magic, np.int8))
    version = given["magic"].data
    columns = {}
    for name in NAMES:
        if name in given:
            columns[name] = given[name]
        elif name in ("key", "value"):
            columns[name] = _nothing(name, n)
        elif name == "headers":
            empty = np.zeros(0, np.int64), np.zeros(0, np.uint8)
            parts = (texts(pa.string(), *empty), texts(pa.binary(), *empty))
            columns[name] = lists(TYPES[name], np.zeros(n, np.int64), parts)
        elif name in constants:
            columns[name] = _constant(name, constants[name], n)
        elif name == "timestamp_type":
            columns[name] = numbers(TYPES[name], np.where(version == 0, -1, 0).astype(np.int8))
        elif name == "delete_horizon":
            columns[name] = _constant(name, None, n)
        elif name != "base_offset":
            columns[name] = _constant(name, DEFAULTS[name], n)
    columns.setdefault("base_offset", columns["offset"])
    return Expected(columns, *_refusals(case, columns, said), said)


def _nothing(name: str, n: int) -> Values:
    return texts(TYPES[name], np.zeros(n, np.int64), np.zeros(0, np.uint8), np.zeros(n, np.bool_))


def _constant(name: str, value: int | None, n: int) -> Values:
    kind = TYPES[name]
    valid = np.full(n, value is not None) if name == "delete_horizon" else None
    dtype: Any = np.bool_ if kind == pa.bool_() else f"i{kind.bit_width // 8}"
    return numbers(kind, np.full(n, value or 0, dtype), valid)


def _refusals(
    case: Case, columns: Mapping[str, Values], said: frozenset[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    n = case.rows
    data = {name: v.data.astype(np.int64) for name, v in columns.items() if v.data is not None and v.ends is None}  # fmt: skip
    version, codec, kind = data["magic"], data["codec"], data["timestamp_type"]
    v2, v1, v0 = version == 2, version == 1, version == 0
    old = v0 | v1
    counts = np.diff(columns["headers"].ends)
    bad_text = np.zeros(n, np.bool_)
    bad_text[list(case.bad_text)] = "headers" in said
    delta = data["offset"] - data["base_offset"]
    too_far = (delta < -MOST_32 - 1) | (delta > MOST_32)
    sequence = data["sequence"]
    base = np.where(sequence >= delta, sequence - delta, sequence - delta + (1 << 31))
    off_by = (base < 0) | (base > MOST_32)
    out_of_step = v2 & (sequence >= 0) & off_by & ("sequence" in said)
    # Apache Kafka's sum of a sequence number and a step back is below 0
    back = (delta < 0) | ("base_offset" not in said)
    after = v2 & back & ((sequence >= 0) | (sequence < -1))
    refused = {
        "magic": (version < 0) | (version > 2),
        "codec": (codec < 0) | (codec > np.where(v2, 4, 3)),
        "timestamp_type": np.where(v0, (kind != -1) & ("timestamp_type" in said), (kind < 0) | (kind > 1)),
        "timestamp": v0 & (data["timestamp"] != -1),
        "headers": np.where(old, counts > 0, counts > case.settings.elements),
        "headers.key": v2 & bad_text,
        "offset": v2 & (too_far | (delta < 0) | (data["base_offset"] > MOST_64 - delta)),
        "sequence": np.where(v2, (sequence < -1) & ~back, sequence != -1) | (out_of_step & (delta >= 0)),
        "base_offset": old & (codec == 0) & (delta != 0),
    }  # fmt: skip
    for name in ("producer_id", "producer_epoch", "leader_epoch"):
        refused[name] = old & (data[name] != -1)
    for name in ("is_transactional", "is_control"):
        refused[name] = old & (data[name] != 0)
    producer = v2 & (data["producer_id"] >= 0)
    refused["producer_id"] |= v2 & ~producer & (data["is_transactional"] != 0)
    refused["producer_epoch"] |= producer & (data["producer_epoch"] < 0)
    refused["sequence"] |= producer & (data["is_control"] == 0) & (sequence < 0)
    horizon = columns["delete_horizon"].valid
    refused["delete_horizon"] = old & (horizon if horizon is not None else np.ones(n, np.bool_))
    # No reader takes a wrapper of version 1 whose offset is below that of its last message, which is relative to its first one.
    wrapped = (version == 1) & (codec != 0)
    perhaps = {
        "offset": wrapped & bool((wrapped & (data["offset"] < 0)).any()),
        "base_offset": old & (codec != 0) & (delta != 0),
        "sequence": after | (v2 & too_far & (sequence >= 0)),
    }
    return refused, perhaps


# ------------------------------------------------------------ bytes


def built(case: Case, found: Expected) -> bytes:
    """The bytes of a table that is not refused, by the reference codecs. Raises Refused."""
    rows = unpacked(found.batch())
    entries = []
    at = 0
    while at < len(rows):
        version = rows[at]["magic"]
        after = at
        while after < len(rows) and rows[after]["magic"] == version:
            after += 1
        cut = _record_batches if version == 2 else _messages
        entries += list(cut(rows[at:after], case, found.said))
        at = after
    return b"".join(entries)


class Refused(Exception):
    """A row that no entry can hold."""


def _wrapped(value: int, bits: int) -> int:
    half = 1 << bits - 1
    return (value + half) % (1 << bits) - half


def _uvarint(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))


def _varint(value: int) -> int:
    return _uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def _part(data: bytes | None) -> int:
    return 1 if data is None else _varint(len(data)) + len(data)


def _record_size(row: Row, item: Row) -> int:
    size = 1 + _varint(item["timestamp_delta"]) + _varint(item["offset_delta"])
    size += _part(row["key"]) + _part(row["value"]) + _varint(len(row["headers"]))
    for header in row["headers"]:
        size += _part(header["key"].encode()) + _part(header["value"])
    return size + _varint(size)


def next_sequence(base: int, delta: int) -> int:
    """What Apache Kafka makes of the first sequence number of a batch."""
    if base < 0:
        return -1
    if base > _wrapped(MOST_32 - delta, 32):
        return _wrapped(delta - (MOST_32 - base) - 1, 32)
    return _wrapped(base + delta, 32)


SAME = ("codec", "timestamp_type", "producer_id", "producer_epoch", "leader_epoch")
SAME += ("is_transactional", "is_control", "delete_horizon")


def _record_batches(rows: list[Row], case: Case, said: frozenset[str]) -> Iterator[bytes]:
    at = 0
    while at < len(rows):
        head = rows[at]
        base = head["base_offset"] if "base_offset" in said else head["offset"]
        horizon = head["delete_horizon"]
        start = head["timestamp"] if horizon is None else horizon
        ahead = _wrapped(head["offset"] - base, 64)
        first = -1
        if head["sequence"] >= 0:
            first = head["sequence"] - ahead
            first += 0 if head["sequence"] >= ahead else 1 << 31
        size, i = 0, at
        items: list[Row] = []
        while i < len(rows) and i - at < case.settings.elements:
            row = rows[i]
            delta = _wrapped(row["offset"] - base, 64)
            if (
                any(row[name] != head[name] for name in SAME)
                or not -MOST_32 - 1 <= delta <= MOST_32
                or ("base_offset" in said and row["base_offset"] != base)
                or next_sequence(first, delta) != row["sequence"]
                or (row["timestamp_type"] == 1 and row["timestamp"] != head["timestamp"])
            ):
                break
            item = {
                "timestamp_delta": _wrapped(row["timestamp"] - start, 64),
                "offset_delta": delta,
            }
            if _breaks_a_rule(head, base, start, [*items, item], rows[at : i + 1]):
                break
            more = _record_size(row, item)
            if items and size + more > case.settings.batch_bytes:
                break
            size += more
            items.append(item | {name: row[name] for name in ("key", "value", "headers")})
            i += 1
        if not items:
            raise Refused(at)
        yield bytes(
            RECORD_BATCH.build(
                {
                    "base_offset": base,
                    "partition_leader_epoch": head["leader_epoch"],
                    "attributes": {
                        "compression": head["codec"],
                        "timestamp_type": head["timestamp_type"],
                        "is_transactional": head["is_transactional"],
                        "is_control": head["is_control"],
                        "has_delete_horizon": horizon is not None,
                    },
                    "last_offset_delta": items[-1]["offset_delta"],
                    "base_timestamp": start,
                    "max_timestamp": max(row["timestamp"] for row in rows[at:i]),
                    "producer_id": head["producer_id"],
                    "producer_epoch": head["producer_epoch"],
                    "base_sequence": first,
                    "records": items,
                }
            )
        )
        at = i


def _breaks_a_rule(head: Row, base: int, start: int, items: list[Row], rows: list[Row]) -> bool:
    """The rules about records, written down once more."""
    deltas = [item["offset_delta"] for item in items[-2:]]
    if deltas[-1] < len(items) - 1 or (deltas[0] >= deltas[-1] and len(items) > 1):
        return True
    if base + deltas[-1] > MOST_64:
        return True
    if head["is_control"] and head["producer_id"] >= 0 and len(items) > 1:
        return True
    if head["timestamp_type"] == 1:
        return False
    largest = _wrapped(start + max(item["timestamp_delta"] for item in items), 64)
    latest = max(row["timestamp"] for row in rows)
    return largest >= 0 if latest == -1 else largest != latest


def _messages(rows: list[Row], case: Case, said: frozenset[str]) -> Iterator[bytes]:
    version = rows[0]["magic"]
    layout = (MESSAGE_V0, MESSAGE_V1)[version]
    at = 0
    while at < len(rows):
        head = rows[at]
        if head["codec"] == 0:
            yield bytes(layout.build(_message(head, head["offset"])))
            at += 1
            continue
        size, i = 0, at
        while i < len(rows) and i - at < case.settings.elements:
            row = rows[i]
            if not _follows(row, rows[i - 1] if i > at else row, head, said):
                break
            more = 26 + 8 * version + len(row["key"] or b"") + len(row["value"] or b"")
            if i > at and size + more > case.settings.batch_bytes:
                break
            size += more
            i += 1
        if i == at:
            raise Refused(at)
        first = head["offset"] if version else 0
        wrapper = {
            "offset": rows[i - 1]["offset"],
            "magic": version,
            "attributes": {"compression": head["codec"]},
            "key": None,
            "messages": [_message(row, _wrapped(row["offset"] - first, 64)) for row in rows[at:i]],
        }
        for message in wrapper["messages"]:
            message["attributes"]["compression"] = 0
        if version:
            wrapper["timestamp"] = max(row["timestamp"] for row in rows[at:i])
            wrapper["attributes"]["timestamp_type"] = head["timestamp_type"]
        yield bytes(layout.build(wrapper))
        at = i


def _message(row: Row, offset: int) -> Row:
    out = {name: row[name] for name in ("magic", "key", "value")} | {"offset": offset}
    out["attributes"] = {"compression": 0}
    if row["magic"]:
        out["timestamp"] = row["timestamp"]
        out["attributes"]["timestamp_type"] = row["timestamp_type"]
    return out


def _follows(row: Row, before: Row, head: Row, said: frozenset[str]) -> bool:
    """Whether a row is read as it is from a wrapper that begins with the head. Where a wrapper says 0, the offsets in it
    are taken as they are; else they are counted from the last."""
    if any(row[name] != head[name] for name in ("codec", "timestamp_type")):
        return False
    if row["timestamp_type"] == 1 and row["timestamp"] != head["timestamp"]:
        return False
    if row["magic"] and 0 in (row["offset"], before["offset"]) and head["offset"] != 0:
        return False
    first = head["offset"] if row["magic"] else 0
    inner, inner_before = (_wrapped(one["offset"] - first, 64) for one in (row, before))
    if row is not before and inner <= inner_before:
        return False  # offsets ascend in a wrapper
    return "base_offset" not in said or row["base_offset"] == head["offset"]
