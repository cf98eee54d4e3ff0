"""Views that are answers about logs: which there are, and which options each of them takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark_kafka_log.options.values import OptionError

_FILES = ("pathGlobFilter", "modifiedAfter", "modifiedBefore", "timeZone", "include")
_OFFSETS = (
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
)
_EVERY = (
    "path",
    "paths",
    "recursiveFileLookup",
    "subscribe",
    "subscribePattern",
    "assign",
    "replicas",
    "view",
    "columns",
    "minPartitions",
    "splitBytes",
    "batchRows",
)
"""Options of all of them: where logs are, which are meant, and how many tasks there are."""

REPORTS: Mapping[str, Collection[str]] = {
    "batches": (*_OFFSETS, *_FILES, "mode", "policy", "engine", "maxDecompressedBytes"),
    "stat": (*_OFFSETS, *_FILES, "policy", "engine", "deep"),
    "segments": _FILES,
    "log_transactions": (*_OFFSETS, "mode"),
    "producers": (*_OFFSETS, "mode"),
    "keys": (*_OFFSETS, "isolationLevel", "kafka.isolation.level", "includeDeletedRecords"),
    "findings": (*_OFFSETS, "engine", "deep"),
}
"""Views with the options that they have in addition to the common ones."""

RAISING = ("batches", "log_transactions", "producers")
"""Views for which damage is an error by default. The others report damage in their rows, in any mode."""


def check(report: str, given: Collection[str]) -> None:
    """Raise OptionError for the first option in ``given`` that the view ``report`` does not take."""
    taken = (*_EVERY, *REPORTS[report])
    for name in given:
        if name not in taken:
            raise OptionError(
                name, f"the view {report} does not support it; it supports: {', '.join(taken)}"
            )
