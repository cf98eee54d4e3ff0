"""Committed offsets and states of groups, from ``__consumer_offsets``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import CodecError
from kafka_codecs import ConsumerOffsetsRecordType
from kafka_log.logs.broker_files import find_topic_id, read_broker_files
from kafka_log.logs.clusters import ClusterIds
from kafka_log.logs.incomplete_tails import ReadBroker, find_lost_end
from kafka_log.logs.names import CONSUMER_OFFSETS
from kafka_log.logs.partitions import Partition, Segment, make_not_found_error
from kafka_log.logs.replicas import LogEnd, read_log_end, select_newest_replicas
from kafka_log.read.scanning import scan
from kafka_log.read.topic_views import topic_view
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.batch_headers import headers
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.ranges import EVERYTHING, MAX_OFFSET, Range
from kafka_log.text.json_values import to_rows

COMMITS = pa.schema(
    [
        pa.field("group", pa.string(), False, {"doc": "Group id."}),
        pa.field("topic", pa.string(), False, {"doc": "Topic of the committed offset."}),
        pa.field("partition", pa.int32(), False, {"doc": "Partition of the committed offset."}),
        pa.field(
            "committed_offset", pa.int64(), False, {"doc": "Offset of the next record to read."}
        ),
        pa.field(
            "log_end_offset",
            pa.int64(),
            True,
            {
                "doc": "End offset of the partition on this disk; null if the partition is not there, or the end of a replica is damaged."
            },
        ),
        pa.field(
            "lag",
            pa.int64(),
            True,
            {"doc": "log_end_offset minus committed_offset; null if either is unknown."},
        ),
        pa.field(
            "leader_epoch",
            pa.int32(),
            True,
            {
                "doc": "Leader epoch of the last record that was read; null if the client did not say it."
            },
        ),
        pa.field("commit_time", pa.timestamp("ms", "UTC"), False, {"doc": "Time of the commit."}),
        pa.field(
            "metadata", pa.string(), False, {"doc": "Text that the client stored with the commit."}
        ),
        pa.field(
            "offsets_partition",
            pa.int32(),
            False,
            {"doc": "Partition of __consumer_offsets with the group."},
        ),
        pa.field(
            "record_offset",
            pa.int64(),
            False,
            {"doc": "Offset of the commit record in that partition."},
        ),
    ]
)

KEYS = ("group", "topic", "partition", "record_partition")
"""Columns that identify a commit. ``record_partition`` is one of them: record offsets can be compared within a partition only."""

_READ = ("committed_offset", "leader_epoch", "metadata", "commit_time", "topic_id", "is_deleted")
_COMPACT_ROWS = 1 << 18
"""Number of superseded rows that may be buffered before they are dropped."""

_Place = tuple[str, int]
"""A topic and a partition."""

OnLostEnd = Callable[[Segment, Lost], None]
"""Called with the last segment of a log and the lost range at its end."""


def ignore_lost_end(segment: Segment, lost: Lost) -> None:
    """Do nothing."""


Ends = Mapping[_Place, Sequence[tuple[bytes | None, LogEnd | None]]]


@dataclass(frozen=True)
class Groups:
    """Selection of groups and of their committed offsets.

    Attributes:
        names: Names of groups; None selects all.
        topics: Set of topics of committed offsets; None selects all.
        partitions: Set of partition numbers of committed offsets; None selects all.
        at: Time (milliseconds since 1970, inclusive) whose state is shown; None is the end of the log.
        offsets: Range of committed offsets, applied to the commits that are valid at ``at``.
        timestamps: Range of commit times in milliseconds, applied likewise.
        salvage: Continue after damage.
    """

    names: Collection[str] | None = None
    topics: Container[str] | None = None
    partitions: Container[int] | None = None
    at: int | None = None
    offsets: Range = EVERYTHING
    timestamps: Range = EVERYTHING
    salvage: bool = False

    @property
    def chooses_commits(self) -> bool:
        """True if only groups with a selected commit are wanted."""
        places = self.topics is not None or self.partitions is not None
        return places or self.offsets != EVERYTHING or self.timestamps != EVERYTHING


def offsets_partitions(partitions: Sequence[Partition]) -> list[Partition]:
    """Return the partitions of ``__consumer_offsets``: of each the replica whose log ends with the
    highest leader epoch, then offset. Raise NotFoundError if there are none; DirectoryError if they
    are of different clusters, or replicas of one state different topic ids.
    """
    found = [partition for partition in partitions if partition.topic == CONSUMER_OFFSETS]
    if not found:
        raise make_not_found_error(
            "topic", [CONSUMER_OFFSETS], {partition.topic for partition in partitions}
        )
    ClusterIds().find_only(found)
    return select_newest_replicas(found)


def commit_table(
    partitions: Sequence[Partition], wanted: Groups, on_lost_end: OnLostEnd = ignore_lost_end
) -> pa.Table:
    """Return one row per selected committed offset in force, in the columns of :data:`COMMITS`, by
    group, topic and partition. Call ``on_lost_end`` for each log that lost records at its end, also
    of ``__consumer_offsets``. ``lag`` counts to the end of the log on disk, also with
    ``wanted.at``. It is negative if the commit is beyond, and null if that end is unknown or the
    committed offset negative. Raise NotFoundError if no partition of ``__consumer_offsets`` is
    there; DirectoryError if they are of different clusters, or replicas of one state different topic
    ids; CodecError if it is damaged or a file of it cannot be read, unless ``wanted.salvage``.
    """
    found = offsets_partitions(partitions)
    rows = to_rows(newest_commits(found, wanted))
    read_broker = cache(read_broker_files)
    for partition in found:
        if (lost := find_lost_end(partition.segments, read_broker)) is not None:
            on_lost_end(partition.segments[-1], lost)
    places = {(row["topic"], row["partition"]) for row in rows}
    ends = _log_ends(ClusterIds().select_same(partitions, found), places, on_lost_end, read_broker)
    out = []
    for row in rows:
        end = _find_log_end(row, ends)
        committed = row["committed_offset"]
        lag = None if end is None or committed < 0 else end - committed
        out.append(row | {"log_end_offset": end, "lag": lag, "offsets_partition": row["record_partition"]})  # fmt: skip
    out.sort(key=lambda row: [row[name] for name in KEYS])
    return pa.Table.from_pylist(out, COMMITS)


def newest_commits(found: Sequence[Partition], wanted: Groups) -> pa.Table:
    """Return the selected rows of the view ``offsets`` that are in force at ``wanted.at`` (None: at
    the end): the last one of each group, topic and partition, unless it is a deletion. Of these,
    rows whose committed offset or commit time is outside of the selected ranges (end excluded) are
    left out; no earlier commit takes their place. Raise CodecError for damage, unless
    ``wanted.salvage``.
    """
    columns = ("group", "topic", "partition", *_READ)
    newest = last_rows(found, "offsets", columns, KEYS, wanted)
    keep = pc.invert(newest.column("is_deleted"))
    times = newest.column("commit_time").cast(pa.int64())
    for values, (low, high) in (
        (newest.column("committed_offset"), wanted.offsets),
        (times, wanted.timestamps),
    ):
        keep = keep if low is None else pc.and_(keep, pc.greater_equal(values, low))
        keep = keep if high is None else pc.and_(keep, pc.less(values, high))
    return newest.filter(keep)


def last_rows(
    found: Sequence[Partition],
    view: str,
    columns: Sequence[str],
    keys: Sequence[str],
    wanted: Groups,
) -> pa.Table:
    """Return the last selected row of each key (``keys``) of a view, also if it is a deletion, with
    ``record_offset`` and ``record_partition``, in scan order. Rows after the time ``wanted.at``, of
    transactions that ended later, and of aborted or open transactions do not count. Return an empty
    table if no partition has segments. Raise CodecError for damage, unless ``wanted.salvage``.
    """
    names = [*columns, "record_offset", "record_partition"]
    parts: list[pa.Table] = []
    rows = kept = 0
    for partition in found:
        if not partition.segments:
            continue
        late = (
            None
            if wanted.at is None
            else _find_uncommitted_ranges(partition, wanted.at, wanted.salvage)
        )
        stream = _scan(partition, view, names, wanted)
        parts.append(stream.schema.empty_table())
        for batch in stream:
            mine = _select_rows(batch, wanted, late)
            parts.append(pa.Table.from_batches([mine]))
            rows += mine.num_rows
            if rows > 2 * kept + _COMPACT_ROWS:
                parts = [_keep_last_rows(parts, keys)]
                rows = kept = parts[0].num_rows
    return _keep_last_rows(parts, keys) if parts else _empty_table(view, names)


def _scan(
    partition: Partition, view: str, names: list[str], wanted: Groups
) -> pa.RecordBatchReader:
    """Return a reader of the columns ``names`` of a view in one partition, of records with
    timestamps up to ``wanted.at`` (included; None: all). At damage it raises CodecError, or with
    ``wanted.salvage`` continues after it.
    """
    return scan(
        [partition],
        names,
        Policy.SALVAGE if wanted.salvage else Policy.KAFKA,
        view=view,
        timestamps=None if wanted.at is None else (None, wanted.at + 1),
        on_damage="drop" if wanted.salvage else "raise",
        on_lost=lambda *_: None,  # callers report the end of the log; brokers keep no copies of it
    )


def _empty_table(view: str, names: list[str]) -> pa.Table:
    """Return an empty table with the columns ``names`` of a view."""
    return topic_view(view, names).schema.empty_table()


def _select_rows(batch: pa.RecordBatch, wanted: Groups, late: Any) -> pa.RecordBatch:
    """Return the rows of a batch with selected group, topic and partition, as far as it has these
    columns. Rows whose record offset lies in one of the ranges ``late`` are left out (first, last,
    both included; sorted; None: no ranges).
    """
    for column, values in (
        ("group", wanted.names),
        ("topic", wanted.topics),
        ("partition", wanted.partitions),
    ):
        if values is not None and column in batch.schema.names:
            there = pc.unique(batch.column(column))
            wanted_values = [value for value in there.to_pylist() if value in values]
            batch = batch.filter(
                pc.is_in(batch.column(column), pa.array(wanted_values, there.type))
            )
    if late is not None and len(late) and batch.num_rows:
        firsts, lasts = late[:, 0], late[:, 1]
        offsets = batch.column("record_offset").to_numpy()
        at = np.searchsorted(firsts, offsets, side="right") - 1
        batch = batch.filter(pa.array((at < 0) | (offsets > lasts[at])))
    return batch


def _keep_last_rows(parts: Sequence[pa.Table], keys: Sequence[str]) -> pa.Table:
    """Concatenate ``parts`` (at least one) and return the last row of each key, in their original
    order.
    """
    rows = pa.concat_tables(parts).combine_chunks()
    numbered = rows.select(list(keys)).append_column("row", pa.array(np.arange(rows.num_rows)))
    last = numbered.group_by(list(keys)).aggregate([("row", "max")]).column("row_max")
    return rows.take(np.sort(last.to_numpy()))


def _find_uncommitted_ranges(partition: Partition, at: int, salvage: bool) -> Any:
    """Return the sorted offset ranges (first and last, both included; an array with two columns) of
    batches whose transaction ended after ``at`` (milliseconds since 1970), by the time of its
    commit or abort marker; also of transactions that began after ``at``. Transactions without a
    marker are left out. Raise CodecError for damage in headers (checksums are not verified) or an
    unreadable file; with ``salvage`` skip the rest of that segment.
    """
    columns = ("last_offset", "base_offset", "producer_id", "is_control", "is_transactional", "max_timestamp")  # fmt: skip
    open_ranges: dict[int, list[tuple[int, int]]] = {}
    found: list[tuple[int, int]] = []
    for segment in partition.segments:
        try:
            for last, first, producer, is_control, is_transactional, time in headers(segment.path, columns):  # fmt: skip
                if is_transactional and not is_control:
                    open_ranges.setdefault(producer, []).append((first, last))
                elif is_transactional:
                    ended = open_ranges.pop(producer, [])
                    found += ended if time > at else []
        except CodecError:
            if not salvage:
                raise
    return np.array(sorted(found), np.int64).reshape(-1, 2)


def _log_ends(
    partitions: Sequence[Partition],
    places: set[_Place],
    on_lost_end: OnLostEnd,
    read_broker: ReadBroker,
) -> Ends:
    """Return topic id (None if unknown) and end offset of each replica of the topic-partitions
    ``places``; the end is None if damage or an unreadable file hides the end or the id, and after a
    call of ``on_lost_end`` if records are lost at the end. Replicas without segments are left out.
    """
    ends: dict[_Place, list[tuple[bytes | None, LogEnd | None]]] = {}
    for partition in partitions:
        place = (utf8(partition.topic), partition.partition)
        if place in places and partition.segments:
            topic_id, hidden = find_topic_id(partition.directory)
            end = read_log_end(partition.segments) if hidden is None else None
            lost = None if end is None else find_lost_end(partition.segments, read_broker)
            if lost is not None:
                on_lost_end(partition.segments[-1], lost)
                end = None
            ends.setdefault(place, []).append((topic_id, end))
    return ends


def _find_log_end(row: Mapping[str, Any], ends: Ends) -> int | None:
    """Return the log end offset of a commit's partition: that of the replica whose log ends with
    the highest leader epoch, then offset; None if there is none, or the end of one is not known. A
    replica with another topic id does not count, because the topic was deleted and created again;
    an unknown id matches every id.
    """
    mine = None if row["topic_id"] in (None, bytes(16)) else row["topic_id"]
    found = ends.get((row["topic"], row["partition"]), ())
    matching = [end for other, end in found if mine is None or other in (None, mine)]
    known = [end for end in matching if end is not None]
    return max(known).offset if known and len(known) == len(matching) else None


GROUPS = pa.schema(
    [
        pa.field("group", pa.string(), False, {"doc": "Group id."}),
        pa.field("group_type", pa.string(), True, {"doc": "classic, consumer, share or streams."}),
        pa.field(
            "protocol_type",
            pa.string(),
            True,
            {"doc": "Protocol type of a classic group, such as consumer or connect."},
        ),
        pa.field(
            "epoch", pa.int32(), True, {"doc": "Group epoch; the generation of a classic group."}
        ),
        pa.field("members", pa.int64(), False, {"doc": "Number of members."}),
        pa.field(
            "partitions",
            pa.int64(),
            False,
            {"doc": "Number of partitions with a committed offset."},
        ),
        pa.field(
            "lag",
            pa.int64(),
            True,
            {"doc": "log_end_offset minus committed_offset; null if either is unknown."},
        ),
        pa.field(
            "state_time",
            pa.timestamp("ms", "UTC"),
            True,
            {"doc": "Time of the last state change of a classic group."},
        ),
        pa.field(
            "last_commit_time", pa.timestamp("ms", "UTC"), True, {"doc": "Time of the last commit."}
        ),
        pa.field(
            "offsets_partition",
            pa.int32(),
            False,
            {"doc": "Partition of __consumer_offsets with the group."},
        ),
    ]
)

_CLASSIC = ConsumerOffsetsRecordType.GROUP_METADATA
_EPOCHS: Mapping[int, str] = {
    _CLASSIC: "classic",
    ConsumerOffsetsRecordType.CONSUMER_GROUP_METADATA: "consumer",
    ConsumerOffsetsRecordType.SHARE_GROUP_METADATA: "share",
    ConsumerOffsetsRecordType.STREAMS_GROUP_METADATA: "streams",
}
_MEMBERS: Mapping[int, str] = {
    ConsumerOffsetsRecordType.CONSUMER_GROUP_MEMBER_METADATA: "consumer",
    ConsumerOffsetsRecordType.SHARE_GROUP_MEMBER_METADATA: "share",
    ConsumerOffsetsRecordType.STREAMS_GROUP_MEMBER_METADATA: "streams",
}
"""Type of group by record type."""

_Key = tuple[str, int]
"""A group and the partition of ``__consumer_offsets``."""


def group_table(
    partitions: Sequence[Partition], wanted: Groups, on_lost_end: OnLostEnd = ignore_lost_end
) -> pa.Table:
    """Return one row per selected group that exists or has committed offsets, in the columns of
    :data:`GROUPS`, by name. Call ``on_lost_end`` for each log that lost records at its end. ``lag``
    is the sum over the partitions whose logs are there, null if none is. Raise NotFoundError if no
    partition of ``__consumer_offsets`` is there; DirectoryError if they are of different clusters,
    or replicas of one state different topic ids; CodecError if it is damaged or a file of it cannot
    be read, unless ``wanted.salvage``.
    """
    found = offsets_partitions(partitions)
    kinds = _read_group_types(found, wanted)
    members = _count_members(found, wanted, kinds)
    commits = defaultdict(list)
    for row in to_rows(commit_table(partitions, wanted, on_lost_end)):
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
                "lag": min(sum(lags), MAX_OFFSET) if lags else None,
                "state_time": kind.get("state_time"),
                "last_commit_time": max((row["commit_time"] for row in mine), default=None),
                "offsets_partition": key[1],
            }
        )
    return pa.Table.from_pylist(rows, GROUPS)


def _read_group_types(found: Sequence[Partition], wanted: Groups) -> dict[_Key, dict[str, Any]]:
    """Return the newest row of the view ``group_epochs`` of each group that is not deleted, by
    group and partition. Raise CodecError for damage, unless ``wanted.salvage``.

    A group that changed its type has a deletion record for the old type.
    """
    columns = ("record_type", "group", "epoch", "protocol_type", "state_time", "is_deleted")
    keys = ("record_type", "group", "record_partition")
    out = {}
    rows = to_rows(last_rows(found, "group_epochs", columns, keys, wanted))
    for row in sorted(rows, key=lambda row: row["record_offset"]):
        if row["record_type"] in _EPOCHS and not row["is_deleted"]:
            out[row["group"], row["record_partition"]] = row
    return out


def _count_members(
    found: Sequence[Partition], wanted: Groups, kinds: Mapping[_Key, Mapping[str, Any]]
) -> Counter[_Key]:
    """Return the number of members by group and partition of ``__consumer_offsets``, of groups in
    ``kinds`` only. Members of a classic group come from its newest record, those of others are
    member records of its type that are not deleted. Raise CodecError for damage, unless
    ``wanted.salvage``.
    """
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
