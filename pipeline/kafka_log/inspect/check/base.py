"""Base class of the checks of one partition, and what they know before segments are read."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kafka_log.inspect.check.catalog import CATALOG, Severity, for_tiered_copy, without_replicas
from kafka_log.inspect.check.cluster import Cluster
from kafka_log.inspect.check.finding import Finding, make_finding
from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.logs.broker_files import BrokerFiles
from kafka_log.logs.names import State
from kafka_log.logs.partitions import Partition, Segment


@dataclass(frozen=True, slots=True)
class Context:
    """Facts about a partition that are known before its segments are read.

    Attributes:
        bases: Base offsets of all segments in the directory, ascending.
        is_whole: False if only some segments of the directory are checked.
        broker: Checkpoints and shutdown marker of the log directory.
        cluster: Cluster metadata of the log directory, empty if it has none.
        included: States of the segments that are checked.
        missing: Offset ranges that findings already report as missing.
    """

    partition: Partition
    bases: tuple[int, ...]
    is_whole: bool
    broker: BrokerFiles
    cluster: Cluster
    included: frozenset[State]
    missing: list[range] = field(default_factory=list)

    def may_grow(self, scanned: ScannedSegment) -> bool:
        """Return whether a broker may have appended to the segment after it was read. It may if the
        segment is the active one (the last one, not rolled), and the log directory has no marker of
        a clean shutdown.
        """
        return scanned.is_active and not self.broker.was_clean_shutdown

    @property
    def key(self) -> tuple[str, int]:
        """Return topic and partition number, the key of the partition in checkpoint files."""
        return self.partition.topic, self.partition.partition

    def finding(
        self,
        code: str,
        path: Path,
        meaning: str,
        *,
        severity: Severity | None = None,
        remedy: str | None = None,
        **place: Any,
    ) -> Finding:
        """Return a finding about the file ``path``, with topic and partition of this partition and
        the sentence ``meaning``. None as ``severity`` takes the first severity of ``code`` in the
        catalog, None as ``remedy`` the remedy there; ``place`` sets other attributes of Finding,
        such as ``byte``. A remedy copies nothing from another replica if the metadata has none, and
        that of a copy in tiered storage puts nothing into a partition directory. Raise KeyError if the catalog has no ``code``, ValueError if it does not
        allow ``severity`` for it.
        """
        topic, partition = self.key
        remedy = remedy or CATALOG[code].remedy
        if self.partition.state == "remote":
            remedy = for_tiered_copy(remedy)
        elif "replica" in remedy and self.cluster.replicas_of(self.key) == 1:
            remedy = without_replicas(remedy)
        return make_finding(
            code,
            path,
            meaning,
            severity=severity,
            remedy=remedy,
            topic=topic,
            partition=partition,
            **place,
        )


class Check:
    """Base class of the checks of one partition, which yield findings.

    Its methods are called for each segment in the order of base offsets, then once for the whole partition.
    The state of a check must not grow with the number of batches.
    """

    def __init__(self, context: Context) -> None:
        self.context = context

    def copy_state(self) -> Self:
        """Return a copy of the check from which a segment can be checked again. Attributes that are
        a dict, a list or a set are copied (shallow); all others are shared with the original.
        """
        other = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list | set):
                setattr(other, name, value.copy())
        return other

    def reload(self) -> None:
        """Read the other files of the partition again that the check has read. The base class does
        nothing.
        """

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        """Return the findings of one segment; none in the base class. Raise OSError if a file
        cannot be read.
        """
        return ()

    def skip_segment(self, segment: Segment) -> None:
        """Take note of a segment that cannot be read: its batches are unknown. The base class does
        nothing.
        """

    def check_end(self) -> Iterable[Finding]:
        """Return the findings about the whole partition, after its last segment; none in the base
        class. Raise OSError if a file cannot be read.
        """
        return ()
