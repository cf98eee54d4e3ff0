"""What groups are, from ``__consumer_offsets``: their kind, epoch and members, and how far behind they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from kafka_log.logs.partitions import Partition
from kafka_log.logs.replicas import LAST_OFFSET
from kafka_log.report.groups import (
    Groups,
    commit_table,
    last_rows,
    offsets_partitions,
)
from kafka_log.text.json_values import plain_rows

GROUPS = pa.schema(
    [
        pa.field("group", pa.string(), False, {"doc": "Its name."}),
        pa.field("group_type", pa.string(), True, {"doc": "classic, consumer, share or streams."}),
        pa.field("protocol_type", pa.string(), True, {"doc": "What a classic group is for."}),
        pa.field("epoch", pa.int32(), True, {"doc": "Of a classic group its generation."}),
        pa.field("members", pa.int64(), False, {"doc": "How many."}),
        pa.field("partitions", pa.int64(), False, {"doc": "How many have a committed offset."}),
        pa.field("lag", pa.int64(), True, {"doc": "Sum of these, to the end on disk."}),
        pa.field(
            "state_time",
            pa.timestamp("ms", "UTC"),
            True,
            {"doc": "When the state of a classic group changed last."},
        ),
        pa.field(
            "last_commit_time", pa.timestamp("ms", "UTC"), True, {"doc": "Of its last commit."}
        ),
        pa.field("offsets_partition", pa.int32(), False, {"doc": "Where it is kept."}),
    ]
)

_CLASSIC = 2
_EPOCHS: Mapping[int, str] = {_CLASSIC: "classic", 3: "consumer", 11: "share", 17: "streams"}
_MEMBERS: Mapping[int, str] = {5: "consumer", 10: "share", 19: "streams"}
"""Types of records, and which groups they are of."""

_Key = tuple[str, int]
"""A group and the partition of ``__consumer_offsets``."""


def group_table(partitions: Sequence[Partition], wanted: Groups) -> pa.Table:
    """A row for each group that there is or that has committed offsets, in the columns of :data:`GROUPS`, by name. ``lag`` is the sum
    over the partitions whose logs are there, null without one. Raises as :func:`~kafka_log.report.groups.commit_table`."""
    found = offsets_partitions(partitions)
    kinds = _kinds(found, wanted)
    members = _members(found, wanted, kinds)
    commits = defaultdict(list)
    for row in plain_rows(commit_table(partitions, wanted)):
        commits[row["group"], row["offsets_partition"]].append(row)
    if wanted.chooses_commits:
        kinds = {key: kind for key, kind in kinds.items() if key in commits}
    rows = []
    for key in sorted({*kinds, *commits}):
        kind, mine = kinds.get(key, {}), commits.get(key, [])
        lags = [row["lag"] for row in mine if row["lag"] is not None]
        rows.append(
            {
                "group": key[0],
                "group_type": _EPOCHS.get(kind.get("record_type", -1)),
                "protocol_type": kind.get("protocol_type"),
                "epoch": kind.get("epoch"),
                "members": members[key],
                "partitions": len(mine),
                "lag": min(sum(lags), LAST_OFFSET) if lags else None,
                "state_time": kind.get("state_time"),
                "last_commit_time": max((row["commit_time"] for row in mine), default=None),
                "offsets_partition": key[1],
            }
        )
    return pa.Table.from_pylist(rows, GROUPS)


def _kinds(found: Sequence[Partition], wanted: Groups) -> dict[_Key, dict[str, Any]]:
    """The row of the view ``group_epochs`` that says what a group is. A group that became one of another kind has a deletion of
    what it was."""
    columns = ("record_type", "group", "epoch", "protocol_type", "state_time", "is_deleted")
    keys = ("record_type", "group", "record_partition")
    out = {}
    rows = plain_rows(last_rows(found, "group_epochs", columns, keys, wanted))
    for row in sorted(rows, key=lambda row: row["record_offset"]):
        if row["record_type"] in _EPOCHS and not row["is_deleted"]:
            out[row["group"], row["record_partition"]] = row
    return out


def _members(
    found: Sequence[Partition], wanted: Groups, kinds: Mapping[_Key, Mapping[str, Any]]
) -> Counter[_Key]:
    """How many members a group has: of a classic group those of the record that says what it is, of others those that are not
    deleted."""
    columns = ("record_type", "group", "member_id", "is_deleted")
    keys = ("record_type", "group", "member_id", "record_partition")
    out: Counter[_Key] = Counter()
    for row in last_rows(found, "groups", columns, keys, wanted).to_pylist():
        key = (row["group"], row["record_partition"])
        kind = kinds.get(key)
        if kind is None or row["is_deleted"]:
            continue
        if row["record_type"] == _CLASSIC:
            out[key] += row["record_offset"] == kind["record_offset"]
        else:
            out[key] += _MEMBERS.get(row["record_type"]) == _EPOCHS[kind["record_type"]]
    return out
