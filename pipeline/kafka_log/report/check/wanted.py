"""Which findings are meant by filters of offsets, times and producers: those of the batches that these choose, and those of which
nobody knows the batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kafka_log.report.check.finding import Finding
from kafka_log.report.check.walk import Walked
from kafka_log.segment.header_columns import UNBOUNDED
from kafka_log.segment.ranges import EVERYTHING
from kafka_log.tables.selection import Selection


def is_meant(finding: Finding, wanted: Selection) -> bool:
    """Whether a finding concerns some of the offsets and is of one of the producers, or does not say."""
    low, high = wanted.offsets
    if low is not None and finding.last_offset is not None and finding.last_offset < low:
        return False
    if high is not None and finding.first_offset is not None and finding.first_offset >= high:
        return False
    if wanted.producers is None or finding.producer_id is None:
        return True
    return finding.producer_id in wanted.producers


def is_meant_of(finding: Finding, wanted: Selection, walked: Walked) -> bool:
    """The same of a finding in a segment, by the headers of its good batches too: one of those with the offsets of the finding may have a
    record of the times and producers. What is lost or missing has no header, and may be anybody's; so may what begins in an earlier
    segment. A header that contradicts itself rules nothing out."""
    headers = walked.headers
    concerned = np.zeros(len(headers), np.bool_)
    if finding.first_offset is not None:
        concerned = headers.last >= finding.first_offset
    if finding.last_offset is not None:
        concerned &= headers.first <= finding.last_offset
    if (headers.offset_bound[concerned] == UNBOUNDED).any():
        finding = replace(finding, last_offset=None)  # nobody knows which offsets such a batch has
    if not is_meant(finding, wanted):
        return False
    if finding.first_offset is None or (
        wanted.timestamps == EVERYTHING and wanted.producers is None
    ):
        return True
    if not len(headers) or finding.first_offset < headers.first.min():
        return True
    if finding.producer_id is not None:
        concerned &= headers.producer_id == finding.producer_id
    return bool(not concerned.any() or (concerned & _chosen(walked, wanted)).any())


def count_judged(walked: Walked, wanted: Selection) -> int:
    """Return how many batches of a segment may have records of the offsets, times and producers."""
    low, high = wanted.offsets
    found = _chosen(walked, wanted)
    if low is not None:
        found &= walked.headers.offset_bound >= low
    if high is not None:
        found &= (walked.headers.first < high) | (walked.headers.offset_bound == UNBOUNDED)
    return int(np.count_nonzero(found))


def _chosen(walked: Walked, wanted: Selection) -> Any:
    """Which batches may have a record of the times and producers."""
    headers = walked.headers
    found = np.ones(len(headers), np.bool_)
    low, high = wanted.timestamps
    if low is not None:
        found &= walked.timestamp_bound >= low
    if high is not None:
        found &= (walked.least_timestamp < high) | (walked.timestamp_bound == UNBOUNDED)
    if wanted.producers is not None:
        found &= np.isin(headers.producer_id, wanted.producers)
    return found
