"""List the schemas of a registry, the topics that use each, and ids that are used and not registered."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kafka_log.logs.names import INTERNAL_TOPICS
from kafka_log.logs.partitions import Partition
from kafka_log.read.schemas.registry import SchemaError, SchemaId, SchemaRegistry, SchemaVersion
from kafka_log.read.schemas.sources import SCHEMAS_TOPIC
from kafka_log.read.schemas.usage import DEFAULT_RECORDS, Usage, count_ids
from kafka_log.segment.arrow_text import utf8

SCHEMAS = pa.schema(
    [
        pa.field("subject", pa.string(), True, {"doc": "Subject; null for an id that is used and not registered."}),
        pa.field("version", pa.int32(), True, {"doc": "Version of the subject; null if only the GUID of the schema is known."}),
        pa.field("id", pa.int64(), True, {"doc": "Id of the schema; null if only its GUID is known, and for a file that others import."}),
        pa.field("guid", pa.string(), True, {"doc": "GUID of the schema, if the registry stored it, or a header or value has it."}),
        pa.field("type", pa.string(), True, {"doc": "AVRO, PROTOBUF or JSON."}),
        pa.field(
            "state",
            pa.string(),
            False,
            {"doc": "registered, deleted (soft), removed (only its text is left in the log) or unregistered."},
        ),
        pa.field("references", pa.list_(pa.string()), False, {"doc": "Subjects and versions that the schema refers to."}),
        pa.field("used_by", pa.list_(pa.string()), False, {"doc": "Topics, each with key or value, whose records have the id."}),
        pa.field("records", pa.int64(), False, {"doc": "Number of keys and values with the id among the records that were read."}),
        pa.field("schema", pa.string(), True, {"doc": "Text of the schema."}),
    ]
)  # fmt: skip

OnProblem = Callable[[str], None]


def schema_table(
    registry: SchemaRegistry,
    partitions: Sequence[Partition],
    *,
    records: int | None = DEFAULT_RECORDS,
    only_used: bool = False,
    on_problem: OnProblem,
    advance: Callable[[int], None] = lambda _: None,
) -> pa.Table:
    """Return one row per version of a subject in the registry's order, and then one per id that
    keys or values use and ``registry`` lacks, by id, in the columns of :data:`SCHEMAS`. Ids of keys
    (or values) of a topic that the registry does not know at all are left out if some of these do
    not begin with an id. ``records`` limits the records read of each partition (None: all);
    ``only_used`` leaves out unused versions. Damage and unreadable files do not raise: lost ranges
    and unreadable files go to ``on_problem``, with problems of the registry. Ids in records with a
    wrong checksum are ignored.

    Args:
        registry: The schemas.
        partitions: Partitions whose keys and values are read. Internal topics and ``_schemas`` are left out.
        records: Maximum number of records to read of each partition. None: all.
        only_used: Leave out schemas that no key or value of the partitions uses.
        on_problem: Called with a line per problem of the registry and of the logs.
        advance: Called with the size of each partition after it is read.
    """
    for problem in registry.problems:
        on_problem(problem)
    usage: dict[tuple[str, str], Usage] = defaultdict(Usage)
    for partition in partitions:
        if partition.topic not in INTERNAL_TOPICS and partition.topic != SCHEMAS_TOPIC:
            count_ids(partition, records, registry, usage, on_problem)
        advance(partition.size)
    used: dict[SchemaVersion, dict[str, int]] = defaultdict(dict)
    unregistered: dict[SchemaId, dict[str, int]] = defaultdict(dict)
    for (topic, part), of_part in sorted(usage.items()):
        subject = f"{topic}-{part}"
        found, missing = _look_up(registry, of_part, subject)
        for version, count in found.items():
            used[version][f"{utf8(topic)} {part}"] = count
        if found or registry.subject_versions(subject) or _is_framed(of_part):
            for schema_id, count in missing.items():
                unregistered[schema_id][f"{utf8(topic)} {part}"] = count
    # A version of another subject has the same id if its content is the same.
    rows = [
        _registered_row(version, used.get(version, {}))
        for version in registry.versions
        if version in used or not only_used
    ]
    order = sorted(unregistered.items(), key=lambda item: (item[0].number or 0, item[0].guid or ""))
    rows += [_unregistered_row(schema_id, counts) for schema_id, counts in order]
    return pa.Table.from_pylist(rows, SCHEMAS)


def _look_up(
    registry: SchemaRegistry, usage: Usage, subject: str
) -> tuple[dict[SchemaVersion, int], dict[SchemaId, int]]:
    """Return two mappings from ``usage``, which counts records by schema id or GUID. The first has
    the number of records by registered version, the second that by id that is not registered or
    whose schemas differ. If several versions have an id, that of ``subject`` counts.
    """
    found: Counter[SchemaVersion] = Counter()
    missing: dict[SchemaId, int] = {}
    for schema_id, count in usage.counts.items():
        try:
            version = registry.find(schema_id, subject)
        except SchemaError:
            missing[schema_id] = count
        else:
            found[version] += count
    return found, missing


def _is_framed(usage: Usage) -> bool:
    """Return whether all bytes look like frames. Numbers of 8 bytes do too: they have the id 0."""
    return not usage.unframed and all(i.number != 0 for i in usage.counts)


def _registered_row(version: SchemaVersion, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the row of a registered version, without a version or id if only its GUID is known.
    ``counts`` has the number of records by topic and part (``orders value``) that use it:
    ``used_by`` lists its keys, and ``records`` is the sum of its numbers (``[]`` and 0 if it is
    empty).
    """
    return {
        "subject": version.subject,
        "version": version.version or None,
        "id": version.id if version.id >= 0 else None,
        "guid": version.guid,
        "type": version.type,
        "state": version.state,
        "references": [f"{r.subject} {r.version}" for r in version.references],
        "used_by": list(counts),
        "records": sum(counts.values()),
        "schema": version.text,
    }


def _unregistered_row(schema_id: SchemaId, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the row of an id that is used and not registered, with state ``unregistered``.
    ``counts`` has the number of records by topic and part (``orders value``): ``used_by`` lists its
    keys, and ``records`` is the sum of its numbers. ``references`` is ``[]``; the row has no keys
    for subject, version, type and schema.
    """
    return {
        "id": schema_id.number,
        "guid": schema_id.guid,
        "state": "unregistered",
        "references": [],
        "used_by": list(counts),
        "records": sum(counts.values()),
    }
