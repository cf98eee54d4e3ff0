"""Where logs end now, as an option of queries that are to read no further."""

from __future__ import annotations

import json
from collections.abc import Mapping

from kafka_log.read.progress import Ends
from pyspark_kafka_log.logs import chosen, find_logs
from pyspark_kafka_log.options import LATEST, OptionError, Paths, parse_paths


def ending_offsets(path: Paths, options: Mapping[str, str] | None = None) -> str:
    """What the option ``endingOffsets`` is for queries that read what is there now, and not what comes later:
    ``{"orders":{"0":950}}``, as JSON.

    ``path`` and ``options`` are those of the queries. A partition ends after its last whole batch; with ``isolationLevel`` ``read_committed`` where
    its oldest open transaction begins. Files are looked at by this process. A query with these offsets fails when a partition is new since.

    Raises :class:`OptionError`, also for options that say where queries end; DirectoryError for a path without logs, and CodecError for damage.
    """
    wanted = parse_paths(path, options)
    if wanted.ending_offsets not in (None, LATEST) or wanted.ending_times is not None:
        raise OptionError(
            "endingOffsets", "it is asked for, so leave out what says where queries end"
        )
    ends = Ends(wanted.selection, wanted.engine)
    found: dict[str, dict[str, int]] = {}
    for log in chosen(find_logs(wanted), wanted):
        end = ends.of(log.key, log)
        if end is not None:
            of_topic = found.setdefault(log.topic, {})
            of_topic[str(log.partition)] = ends.readable(log.key, log, end).offset
    return json.dumps(found, separators=(",", ":"))
