"""States of the transactions of one partition, for pages about its batches and records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafka_log.inspect.browse.listing import Listing
from kafka_log.inspect.browse.problems import MAX_BYTES, find_transactions
from kafka_log.inspect.report.html import Child
from kafka_log.inspect.report.section import make_badge
from kafka_log.inspect.report.verdict import find_stable_offsets
from kafka_log.logs.partitions import Partition
from kafka_log.text.json_values import to_rows

MAX_PLAIN_BYTES = 8 << 20
"""Maximum size of a partition whose transactions are read for records that are in none."""

HIDDEN = "hidden from read_committed"


@dataclass(frozen=True, slots=True)
class TransactionStates:
    """Transactions of a partition.

    Attributes:
        rows: Rows of ``txn``.
    """

    rows: Sequence[dict[str, Any]]

    @property
    def stable_offset(self) -> int | None:
        """Last stable offset; None without an open transaction."""
        open_rows = [row for row in self.rows if row["state"] == "open"]
        return min(find_stable_offsets(open_rows).values(), default=None)

    def find(self, producer_id: int, offset: int) -> dict[str, Any] | None:
        """Return the transaction of a producer that has an offset; None if there is none."""
        for row in self.rows:
            first, last = row["first_offset"] or 0, row["last_offset"]
            if row["producer_id"] == producer_id and first <= offset <= (last or first):
                return row
        return None

    def describe(self, producer_id: int, offset: int, *, is_transactional: bool) -> list[Child]:
        """Return the state of the transaction of a batch or record as a badge or text, and whether
        read_committed consumers do not get it. ``[]`` if there is nothing to say.
        """
        row = self.find(producer_id, offset) if is_transactional else None
        said: list[Child] = []
        if row is not None:
            state = "hanging" if row["hanging"] else row["state"]
            said.append(make_badge(state) if row["state"] == "open" else state)
        stable = self.stable_offset
        is_aborted = row is not None and row["state"] == "aborted"
        if is_aborted or (stable is not None and offset >= stable):
            said += [", " if said else None, HIDDEN]
        return said


def read_states(
    listing: Listing, partition: Partition, now: int | None, *, has_transactions: bool
) -> TransactionStates | None:
    """Return the transactions of a partition. Return None if it is larger than MAX_BYTES (if the
    records in question are in no transaction, ``has_transactions`` is False: MAX_PLAIN_BYTES), or a marker
    cannot be read.
    """
    if partition.size > (MAX_BYTES if has_transactions else MAX_PLAIN_BYTES):
        return None
    try:
        table = find_transactions([partition], listing.found, lambda _: None, now=now)
    except OSError:
        return None
    return TransactionStates(to_rows(table))
