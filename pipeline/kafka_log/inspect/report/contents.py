"""Contents of a report: answers about logs, gathered once, with what could not be read. Nothing here knows HTML."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.diff.table import Epochs, read_epochs
from kafka_log.inspect.report.segment_maps import SegmentMap, find_damaged_segments, map_segments
from kafka_log.inspect.statistics.columns import BATCH_PERIODS, PERIODS
from kafka_log.logs.broker_files import (
    get_node_id,
    is_broker_running,
    read_broker_files,
    read_meta_properties,
)
from kafka_log.logs.partitions import DirectoryError, NotFoundError, Partition
from kafka_log.logs.replicas import find_duplicate
from kafka_log.text.json_values import to_rows
from kafka_log.text.values import format_uuid

if TYPE_CHECKING:
    from kafka_codecs import MetaProperties

Row = dict[str, Any]
Advance = Callable[[int], None]
Period = Literal["minute", "hour"]

PASSES = 4
"""How often :func:`gather` reads the logs, for a progress bar."""
CLUSTER_KINDS = ("features", "brokers", "topics", "configs")
"""Kinds of metadata in a report."""
POLICY = "salvage"
"""Policy of the counts: records after damage are counted too."""

TRANSACTION_KEY = ("topic", "partition", "producer_id", "first_offset")
"""Columns that identify a transaction, in whichever copy of the partition."""

_PREFIX = "kafka-log: "
_HOUR = PERIODS["hour"]


class Answers(Protocol):
    """The questions that a report asks; LogDirectory answers them."""

    @property
    def all_partitions(self) -> list[Partition]:
        """Return the selected partitions."""

    def ls(self, *, by: Literal["partition", "topic"]) -> pa.Table:
        """Return sizes."""

    def check(self, *, deep: bool, advance: Advance, on_checked: Callable[[int], None]) -> pa.Table:
        """Return findings."""

    def stat(
        self,
        *,
        by: Any,
        policy: str,
        deep: bool,
        on_problem: Callable[[str], None],
        advance: Advance,
    ) -> pa.Table:
        """Return counts of batches, one row per combination of the keys ``by``; ``policy`` says
        what damage is and whether reading continues after it. ``deep`` decodes records;
        ``on_problem`` is called with a line for each problem, ``advance`` with bytes read.
        """

    def txn(
        self, *, now: int | None, on_damage: Callable[[str], None], advance: Advance
    ) -> pa.Table:
        """Return transactions."""

    def groups(self, *, states: bool, salvage: bool, on_damage: Callable[[str], None]) -> pa.Table:
        """Return committed offsets or groups."""

    def metadata(self, kind: str, *, on_damage: Callable[[str], None]) -> pa.Table:
        """Return metadata of the cluster."""


@dataclass(frozen=True, slots=True)
class BrokerDirectory:
    """What a log directory says about its broker.

    Attributes:
        path: Path of the log directory.
        cluster_id: Cluster id in ``meta.properties``; None if unknown.
        node_id: Node id, likewise.
        directory_id: Directory id, likewise.
        was_clean_shutdown: Whether the broker was shut down cleanly.
        is_running: Whether a broker on this machine holds its lock; None if unknown.
    """

    path: Path
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    was_clean_shutdown: bool
    is_running: bool | None


@dataclass
class Contents:
    """Answers about logs.

    Attributes:
        partitions: The selected partitions, all copies.
        has_replicas: Whether several directories hold one partition.
        deep: Whether records were decoded.
        checked: Number of batches that were checked.
        findings: Rows of ``check``, the most severe first.
        topics: Rows of ``ls --by topic``.
        stat: Rows of ``stat`` by partition.
        traffic: Table of ``stat`` by codec and ``period``, of one copy of each partition; None if it is not known.
        period: Period of ``traffic``.
        transactions: Table of ``txn``; None if they are not known.
        commits: Rows of ``groups``; None if they are not known.
        groups: Rows of ``groups --states``; None if they are not known.
        cluster: Rows of ``metadata`` by kind; kinds that are not known are missing.
        brokers: The log directories.
        epochs: Leader epochs with start offsets, by index of the partition.
        maps: Maps of damaged segments.
        damaged_segments: Number of damaged segments, with or without a map.
        missing: Why an answer is missing, by its name.
        unread: Lines about what could not be read.
        remarks: Lines about what was left out on purpose, or counts twice.
    """

    partitions: Sequence[Partition]
    has_replicas: bool
    deep: bool
    checked: int = 0
    findings: list[Row] = field(default_factory=list)
    topics: list[Row] = field(default_factory=list)
    stat: list[Row] = field(default_factory=list)
    traffic: pa.Table | None = None
    period: Period = "hour"
    transactions: pa.Table | None = None
    commits: list[Row] | None = None
    groups: list[Row] | None = None
    cluster: dict[str, list[Row]] = field(default_factory=dict)
    brokers: list[BrokerDirectory] = field(default_factory=list)
    epochs: dict[int, Epochs] = field(default_factory=dict)
    maps: list[SegmentMap] = field(default_factory=list)
    damaged_segments: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def open_transactions(self) -> list[Row]:
        """Rows of :func:`list_open_transactions`."""
        return list_open_transactions(self.transactions)

    @property
    def hanging(self) -> int:
        """Number of hanging transactions; one in several copies of a partition counts once. 0 if
        transactions are not known.
        """
        return sum(bool(row["hanging"]) for row in merge_copies(self.open_transactions))

    @property
    def has_problems(self) -> bool:
        """Whether a finding is an error or a warning, a transaction hangs, or something could not be read."""
        return bool(
            self.hanging or self.unread or any(row["severity"] != "note" for row in self.findings)
        )


def list_open_transactions(table: pa.Table | None) -> list[Row]:
    """Return rows of ``txn`` about the open transactions that hang or hide offsets: hanging ones
    first, then by hidden offsets, the most first. Return ``[]`` for None.
    """
    if table is None:
        return []
    rows = to_rows(table.filter(pc.equal(table.column("state"), "open")))
    wanted = [row for row in rows if row["hanging"] or row["hides"]]
    return sorted(wanted, key=lambda row: (row["hanging"] is not True, -(row["hides"] or 0)))


def merge_copies(rows: Iterable[Row]) -> list[Row]:
    """Return one row for each open transaction in ``rows``, with the number of copies of the
    partition that have it as ``copies``. A transaction that hangs in some copies only has two rows.
    """
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = row["hanging"] is True, *(row[name] for name in TRANSACTION_KEY)
        found.setdefault(key, row | {"copies": 0})["copies"] += 1
    return list(found.values())


def gather(
    log: Answers,
    newest: Answers,
    *,
    deep: bool = False,
    now: int | None = None,
    remarks: Iterable[str] = (),
    advance: Advance = lambda _: None,
) -> Contents:
    """Read the logs PASSES times and return the answers: all of ``log``, but counts over time of
    ``newest`` (one copy of each partition). ``deep`` decodes records; ``now`` (None: the present)
    judges open transactions. Damage, unreadable files and missing internal topics do not raise: the
    contents name them, also if copies of a partition state different topic ids. Warnings of
    kafka-log become remarks; others are issued again. Raise DirectoryError if a path holds no log,
    NotFoundError if a selected topic or partition does not exist.

    Args:
        log: The logs, with all copies of a partition.
        newest: The same logs with one copy of each partition, for sums over partitions.
        deep: Decode every record, not only batch headers and checksums.
        now: Time in milliseconds at which the log was copied, as for ``txn``; None: the present.
        remarks: Lines about what was left out.
        advance: Called with numbers of bytes that were read.
    """
    partitions = log.all_partitions
    contents = Contents(partitions, find_duplicate(partitions) is not None, deep)
    contents.remarks.extend(remarks)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        _gather_answers(contents, log, newest, now, advance)
    for warning in warned:
        text = str(warning.message)
        if text.startswith(_PREFIX):
            contents.remarks.append(text.removeprefix(_PREFIX))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    contents.unread = list(dict.fromkeys(contents.unread))
    contents.remarks = list(dict.fromkeys(contents.remarks))
    return contents


def _gather_answers(
    contents: Contents, log: Answers, newest: Answers, now: int | None, advance: Advance
) -> None:
    """Fill ``contents`` with the answers of ``log``; only the counts by codec and time are those of
    ``newest``, which has one copy of each partition. Damage, missing or unreadable internal topics
    and copies with different topic ids are noted in ``missing`` and ``unread``, not raised. Raise
    DirectoryError if a path holds no log, NotFoundError if a selected topic or partition does not
    exist.
    """
    counts: list[int] = []
    contents.topics = to_rows(log.ls(by="topic"))
    table = log.check(deep=contents.deep, advance=advance, on_checked=counts.append)
    contents.checked = sum(counts)
    contents.findings = to_rows(table)
    # A problem of the counts is damage, which check reports as a finding.
    options: dict[str, Any] = {
        "policy": POLICY,
        "deep": contents.deep,
        "on_problem": lambda _: None,
        "advance": advance,
    }
    contents.stat = to_rows(log.stat(by="partition", **options))
    contents.period = choose_period(contents.stat)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the counts by partition gave the same warnings
        try:
            contents.traffic = newest.stat(by=("codec", contents.period), **options)
        except DirectoryError as error:  # topics of one name, none of which is a copy of the other
            contents.missing["traffic"] = str(error)
            contents.unread.append(str(error))
    try:
        contents.transactions = log.txn(now=now, on_damage=contents.unread.append, advance=advance)
    except (CodecError, DirectoryError, OSError) as error:
        contents.missing["transactions"] = str(error)
        contents.unread.append(str(error))
    _gather_groups(contents, log)
    for kind in CLUSTER_KINDS:
        try:
            rows = to_rows(log.metadata(kind, on_damage=contents.unread.append))
        except NotFoundError:
            contents.missing["cluster"] = "there is no __cluster_metadata below the paths"
        except (CodecError, DirectoryError, OSError) as error:
            contents.missing["cluster"] = str(error)
            contents.unread.append(str(error))
        else:
            contents.cluster[kind] = rows
    contents.brokers = list_broker_directories(contents.partitions)
    for i, partition in enumerate(contents.partitions):
        if partition.state == "live" and (epochs := read_epochs(partition.directory)):
            contents.epochs[i] = epochs
    damaged = find_damaged_segments(contents.findings, contents.partitions)
    contents.damaged_segments = len(damaged)
    contents.maps = map_segments(damaged, contents.partitions, deep=contents.deep)


def _gather_groups(contents: Contents, log: Answers) -> None:
    """Fill in ``commits`` and ``groups`` of ``contents``; after damage those that can be read, with
    a line in ``unread``. If ``__consumer_offsets`` is not there or cannot be read, they stay None,
    and ``missing`` has the reason.
    """
    for name, states in (("commits", False), ("groups", True)):
        try:
            try:
                rows = to_rows(
                    log.groups(states=states, salvage=False, on_damage=contents.unread.append)
                )
            except CodecError as error:
                contents.unread.append(f"{error}; newer commits of groups may be missing")
                rows = to_rows(
                    log.groups(states=states, salvage=True, on_damage=contents.unread.append)
                )
        except NotFoundError:
            contents.missing["groups"] = "there is no __consumer_offsets below the paths"
            return
        except (CodecError, DirectoryError, OSError) as error:
            contents.missing["groups"] = str(error)
            contents.unread.append(str(error))
            return
        setattr(contents, name, rows)


def choose_period(stat: Sequence[Row]) -> Period:
    """Return ``minute`` as the period of counts over time if most bytes of the rows of ``stat`` lie
    within 12 hours; else ``hour``, also if no row has a timestamp. A few wrong timestamps change
    nothing.
    """
    rows = [row for row in stat if row["first_timestamp"] is not None]
    low = find_quantile([(row["first_timestamp"], row["batch_bytes"]) for row in rows], 0.25)
    high = find_quantile([(row["last_timestamp"], row["batch_bytes"]) for row in rows], 0.98)
    return "hour" if low is None or high is None or high - low > 12 * _HOUR else "minute"


def find_quantile(values: Iterable[tuple[int, int]], share: float) -> int | None:
    """Return the smallest value at which the values up to it have ``share`` (0 to 1) of the total
    weight. ``values`` are pairs of value and weight, in any order; if there are none, return None.
    """
    ordered = sorted(values)
    total = sum(weight for _, weight in ordered)
    reached = 0
    for value, weight in ordered:
        reached += weight
        if reached >= total * share:
            return value
    return None


def _format_directory_id(properties: MetaProperties | None) -> str | None:
    """Return the id of a log directory as Kafka spells it; None if the file has none."""
    found = None if properties is None else properties.directory_id
    return None if found is None else format_uuid(found.bytes)


def period_column(contents: Contents) -> str:
    """Return the name of the column of ``traffic`` with the begin of the period."""
    return contents.period if contents.deep else BATCH_PERIODS[contents.period].name


def list_broker_directories(partitions: Iterable[Partition]) -> list[BrokerDirectory]:
    """Return the directories that hold partition directories, sorted by path, with what their files
    say about their brokers. Attributes from files that are missing or cannot be read are None, and
    ``was_clean_shutdown`` is False. Raise OSError only if a directory may not be searched, or its
    store cannot be asked.
    """
    found = []
    for path in sorted({partition.directory.parent for partition in partitions}):
        properties = read_meta_properties(path)
        found.append(
            BrokerDirectory(
                path,
                None if properties is None else properties.cluster_id,
                None if properties is None else get_node_id(properties),
                _format_directory_id(properties),
                read_broker_files(path).was_clean_shutdown,
                is_broker_running(path),
            )
        )
    return found
