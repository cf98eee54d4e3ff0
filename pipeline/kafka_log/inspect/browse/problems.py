"""Findings and hanging transactions of some partitions, in bounded work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from kafka_log.inspect.check.table import PartitionTest, check_table
from kafka_log.inspect.overview.quick_check import check_ends
from kafka_log.inspect.report.contents import list_open_transactions
from kafka_log.inspect.transactions.coordinator_states import CoordinatorsOfClusters
from kafka_log.inspect.transactions.hanging import MAX_TIMEOUT_MS, Clock
from kafka_log.inspect.transactions.table import transaction_table
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.discovery import Survey
from kafka_log.logs.incomplete_tails import find_losses
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.names import TRANSACTION_STATE
from kafka_log.logs.partitions import Partition
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.selection import Selection
from kafka_log.segment.model import describe_lost
from kafka_log.segment.ranges import EVERYTHING
from kafka_log.segment.times import present
from kafka_log.text.json_values import to_rows

MAX_BYTES = 64 << 20
"""Maximum size of partitions that are checked whole for one page. Of larger ones the ends are looked at."""
MAX_SEGMENTS = 150
"""Maximum number of partitions that are looked at for one page, and of their segments; one partition may have more."""
GLANCE_SECONDS = 0.5
"""Time for the ends of partitions of which there are too many to check."""


@dataclass(frozen=True, slots=True)
class Problems:
    """What is wrong with some partitions.

    Attributes:
        checked: Partitions that were checked whole.
        glanced: Larger partitions of which only the ends were looked at.
        findings: Rows of ``check``, the most severe first.
        transactions: Rows of :func:`list_open_transactions`.
        lines: Lines about what could not be read, and problems at the ends of large partitions.
        following: Index of the first partition that was not looked at; None if all were.
    """

    checked: Sequence[Partition]
    glanced: Sequence[Partition]
    findings: Sequence[dict[str, Any]]
    transactions: Sequence[dict[str, Any]]
    lines: Sequence[str]
    following: int | None = None


def find_problems(
    partitions: Sequence[Partition],
    found: Survey,
    begin: int = 0,
    *,
    now: int | None = None,
    with_directories: bool,
    selects: PartitionTest | None = None,
) -> Problems:
    """Return the problems of ``partitions`` from index ``begin`` on, as many as one page may look
    at (at least one, if there are any). Those of at most MAX_BYTES are checked whole, with their
    open transactions; of larger ones only both ends are read. What cannot be read is in
    ``findings`` or ``lines``. Raise OSError only if a transaction marker cannot be read
    (UnreadableError), or a log directory may not be searched.

    Args:
        partitions: The partitions.
        found: All partitions, among them those with the states of transactions.
        begin: Index of the first partition to look at.
        now: Time at which the log was in this state (milliseconds since 1970), for hanging transactions. None is the present; only a given time lets the age of a transaction alone make it hanging.
        with_directories: Add findings about files of log directories.
        selects: Selects these findings by their partition; None: all.
    """
    checked, glanced, end = choose_partitions(partitions, begin)
    directories = found.directories if with_directories else []
    findings = check_table(checked, directories, selects=selects)
    quick = check_ends(glanced, GLANCE_SECONDS)
    lines = list(quick.problems)
    if quick.skipped:
        lines.append(f"{quick.skipped} large partitions were not looked at, because it takes long")
    transactions = find_transactions(checked, found, lines.append, now=now, states=("open",))
    return Problems(
        checked,
        glanced,
        to_rows(findings),
        list_open_transactions(transactions),
        list(dict.fromkeys(lines)),
        end if end < len(partitions) else None,
    )


def choose_partitions(
    partitions: Sequence[Partition], begin: int
) -> tuple[list[Partition], list[Partition], int]:
    """Return those of ``partitions`` from index ``begin`` on that one page may look at: of at most
    MAX_BYTES, to be read whole; larger ones; and the index of the first one that is left.
    """
    checked: list[Partition] = []
    glanced: list[Partition] = []
    size = segments = 0
    end = begin
    for one in partitions[begin : begin + MAX_SEGMENTS]:
        is_large = one.size > MAX_BYTES
        size += 0 if is_large else one.size
        segments += sum(not segment.is_empty for segment in one.segments)
        if end > begin and (size > MAX_BYTES or segments > MAX_SEGMENTS):
            break
        (glanced if is_large else checked).append(one)
        end += 1
    return checked, glanced, end


def find_transactions(
    partitions: Sequence[Partition],
    found: Survey,
    on_damage: Callable[[str], None],
    *,
    now: int | None,
    states: Collection[str] = (),
) -> pa.Table:
    """Return the transactions of ``partitions`` in ``states`` (``()``: all) as rows of ``txn``. The
    coordinators' states are those in ``found``, unless they are larger than MAX_BYTES. What cannot
    be read, and what the files of the broker prove to be lost, is reported to ``on_damage``. Raise
    OSError if a transaction marker cannot be read.
    """
    coordinators = [p for p in found.partitions if p.topic == TRANSACTION_STATE]
    if sum(p.size for p in coordinators) > MAX_BYTES:
        coordinators = []
        on_damage(
            f"{TRANSACTION_STATE} is too large to be read here, so it is not known which transactions hang: kafka-log txn reads it"
        )
    merged = merge_tiered_segments(partitions)
    starts, read_broker = LogStarts(), cache(read_broker_files)
    for partition in (*merged, *(p for p in coordinators if p not in merged)):
        for path, lost in find_losses(partition, EVERYTHING, starts, read_broker):
            on_damage(describe_lost(path, lost))
    return transaction_table(
        merged,
        CoordinatorsOfClusters(coordinators, on_damage),
        Clock(present() if now is None else now, now is not None, MAX_TIMEOUT_MS),
        on_damage,
        states=states,
        wanted=Selection(),
    )


def glance_at(partitions: Sequence[Partition]) -> Problems:
    """Return the problems at the ends of as many partitions as there is time for, the largest first."""
    quick = check_ends(partitions, GLANCE_SECONDS)
    largest = sorted(partitions, key=lambda one: -one.size)[: quick.checked]
    return Problems([], largest, [], [], list(quick.problems), 0)
