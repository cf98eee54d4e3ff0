"""Where two replicas part by their leader epochs, as brokers find it out (OffsetsForLeaderEpoch, KIP-101 and KIP-279)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from codecgen.runtime.errors import CodecError
from kafka_codecs import LEADER_EPOCH_CHECKPOINT
from kafka_log.disk.small_files import small_file
from kafka_log.inspect.check.leader_epochs import NAME

Epochs = Sequence[tuple[int, int]]
"""Leader epochs, each with its first offset; both rise."""


class Common(NamedTuple):
    """The last leader epoch that both replicas have, and the offset up to which both have it."""

    epoch: int
    offset: int


def checkpoint(directory: Path) -> Epochs | None:
    """What the file leader-epoch-checkpoint of a partition says, None when it is not there, or cannot be trusted."""
    path = directory / NAME
    try:
        parsed = LEADER_EPOCH_CHECKPOINT.parse(small_file(path), file=os.fspath(path), strict=False)
    except (CodecError, OSError):
        return None
    found = [(e.epoch, e.start_offset) for e in parsed.epochs or ()]
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(found))
    return found if found and rising else None


def last_common(a: Epochs, end_a: int, b: Epochs, end_b: int) -> Common | None:
    """Where a follower with one log would truncate it, when a leader has the other. None: no epoch is in both.

    The follower asks for the end of its last epoch, the leader answers with the largest epoch that it knows up to that one,
    and so on: this ends at the largest epoch that both have, at the lower of its two ends.
    """
    ends_a, ends_b = _ends(a, end_a), _ends(b, end_b)
    both = ends_a.keys() & ends_b.keys()
    if not both:
        return None
    epoch = max(both)
    return Common(epoch, min(ends_a[epoch], ends_b[epoch]))


def _ends(epochs: Epochs, end: int) -> dict[int, int]:
    stops = [start for _, start in epochs[1:]] + [end]
    return {epoch: stop for (epoch, _), stop in zip(epochs, stops, strict=False)}
