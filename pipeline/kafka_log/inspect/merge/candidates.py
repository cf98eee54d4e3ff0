"""The whole batches of several replicas, of which a merge chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafka_log.inspect.merge.replica import Replica

CONTENT = ("size", "crc", "magic")
"""Header fields that agree, with both offsets, if the bytes after the leader epoch do."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Batches of several replicas as arrays of one length.

    Attributes:
        replica: Number of the replica.
        index: Index of the batch among the whole batches of its replica.
        first: First offset.
        last: Last offset.
        records: Number of records.
        epoch: Leader epoch.
        content: Number of the content: equal for batches with the same offsets and bytes, whatever their leader epochs.
        rank: Order of preference among batches of one content, the best first.
    """

    replica: Any
    index: Any
    first: Any
    last: Any
    records: Any
    epoch: Any
    content: Any
    rank: Any

    def take(self, rows: Any) -> Candidates:
        """Return the batches that ``rows`` selects: a mask or an array of indexes."""
        return Candidates(*(getattr(self, name)[rows] for name in self.__slots__))

    def __len__(self) -> int:
        return len(self.first)

    def gather(self, replicas: Sequence[Replica], name: str) -> Any:
        """Return the header field ``name`` of each batch as an array of 64-bit integers; 0 for
        batches of a replica that ``replicas`` lacks.
        """
        found = np.zeros(len(self), np.int64)
        for one in replicas:
            own = self.replica == one.number
            found[own] = getattr(one.headers, name)[self.index[own]]
        return found


def list_candidates(replicas: Sequence[Replica]) -> Candidates:
    """Return the whole batches of all replicas, by first offset, last offset and content, all with
    the rank 0. ``replicas`` must not be empty.
    """
    fields = [
        np.concatenate([getattr(one.headers, name) for one in replicas])
        for name in ("first", "last", *CONTENT, "leader_epoch")
    ]
    counts = [len(one.headers) for one in replicas]
    order = np.lexsort(fields[-2::-1])
    ordered = [column[order].astype(np.int64) for column in fields]
    new = (np.diff(np.stack(ordered[:-1])) != 0).any(axis=0)
    return Candidates(
        replica=np.repeat([one.number for one in replicas], counts)[order],
        index=np.concatenate([np.arange(count) for count in counts])[order],
        first=ordered[0],
        last=ordered[1],
        records=np.concatenate([one.rows for one in replicas])[order],
        epoch=ordered[-1],
        content=np.append(np.zeros(min(len(order), 1), np.int64), np.cumsum(new)),
        rank=np.zeros(len(order), np.int64),
    )
