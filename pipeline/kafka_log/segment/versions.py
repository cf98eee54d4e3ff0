"""Capabilities of the versions of the log format, taken from the choice of entries and the view of batch headers."""

from __future__ import annotations

from functools import cache
from typing import Any

from codecgen.runtime.construct import Array
from codecgen.runtime.rows import Case
from kafka_codecs import LOG_ENTRY, Compression
from kafka_codecs.rows.batches import BATCHES
from kafka_codecs.rows.records import RECORDS
from kafka_log.segment.framing import layout_of

VERSIONS = tuple(
    sorted(
        n for n, layout in LOG_ENTRY.cases.items() if any(c.layout is layout for c in BATCHES.cases)
    )
)
"""The versions whose entries hold records, oldest first."""

WRITTEN_VERSIONS = tuple(
    n
    for n in VERSIONS
    if all(case.writes for case in RECORDS.cases if case.layout is LOG_ENTRY.cases[n])
)
"""The versions that records can be written in, oldest first: the view ``records`` says how."""

NEWEST = (WRITTEN_VERSIONS or VERSIONS)[-1]
"""The newest version that is written, which is the default of writers; the newest one if none is written."""


def version_of(magic: int) -> int:
    """Return the version that a batch with a magic byte is read as. Kafka's reader does not check the byte."""
    layout = layout_of(magic)
    return next(version for version, known in LOG_ENTRY.cases.items() if known is layout)


def has_field(version: int, column: str) -> bool:
    """Return whether headers of a version (a magic byte) have a field for a column of the view
    ``batches``. Return False if the column is computed from no field: it has the same value in all
    batches of the version, or it is ``position`` or ``size``. Raise KeyError for an unknown version
    or column.
    """
    case = _case(version)
    return case is not None and bool(case.columns[column].paths)


def are_known(magics: Any) -> Any:
    """Return a mask of the magic bytes that are versions."""
    import numpy as np

    return np.isin(magics, VERSIONS)


def have_field(magics: Any, column: str) -> Any:
    """Return a mask of the magic bytes whose headers, as they are read, have a field for a column
    of the view ``batches``. Raise KeyError for an unknown column.
    """
    return _table(column)[magics]


def field_of(version: int, column: str) -> str:
    """Return the path of the only field that a column of the view ``batches`` is computed from.
    Raise ValueError if the column depends on several fields or none, or entries of the version are
    no batches; KeyError for an unknown version or column.
    """
    case = _case(version)
    paths = () if case is None else case.columns[column].paths
    if len(paths) != 1:
        raise ValueError(
            f"the column {column} is not made of exactly one field in version {version} of batches"
        )
    return paths[0]


def absent_value(column: str) -> int:
    """Return the number that stands for "no value", such as -1, in the field of the newest version
    that a column of the view ``batches`` is computed from. Raise ValueError if the field always has
    a value, or the column depends on several fields or none; KeyError for an unknown column.
    """
    field = LOG_ENTRY.cases[NEWEST].by_name[field_of(NEWEST, column)]
    if field.absent is None:
        raise ValueError(
            f"the column {column} always has a value: no number stands for a missing one"
        )
    return field.absent


def columns_from(version: int, path: str) -> frozenset[str]:
    """Return the columns of the view ``batches`` that are computed from the field with this path,
    alone or with others; an empty set if there are none. Raise KeyError for an unknown version.
    """
    case = _case(version)
    columns = {} if case is None else case.columns
    return frozenset(name for name, column in columns.items() if path in column.paths)


@cache
def codecs_of(version: int) -> frozenset[str]:
    """Return the labels of the codecs that records of a version may be compressed with; always with
    ``none``. Raise KeyError for an unknown version.
    """
    found = {Compression.NONE.label}
    for field in LOG_ENTRY.cases[version].fields:
        compressed = field.codec.compressed if isinstance(field.codec, Array) else None
        found |= (
            {Compression(n).label for n in compressed.codecs} if compressed is not None else set()
        )
    return frozenset(found)


@cache
def _table(column: str) -> Any:
    """Return a boolean array that tells, for each magic byte, whether the version that it is read
    as has a field for ``column``. It has 256 elements, so that a negative byte indexes from the
    end. Raise KeyError for an unknown column.
    """
    import numpy as np

    # A negative byte indexes from the end, where it stands.
    magics = np.arange(256).astype(np.int8).tolist()
    return np.array([has_field(version_of(magic), column) for magic in magics])


def _case(version: int) -> Case | None:
    """Return the case of the view batches for a version, None if its entries are no batches. Raise
    KeyError for an unknown version.
    """
    layout = LOG_ENTRY.cases[version]
    return next((case for case in BATCHES.cases if case.layout is layout), None)


BATCH_VERSIONS = tuple(version for version in VERSIONS if has_field(version, "record_count"))
"""The versions of record batches, oldest first: their headers say how many records they have. Others are legacy message formats."""

WRITTEN_BATCH_VERSIONS = tuple(version for version in BATCH_VERSIONS if version in WRITTEN_VERSIONS)
"""The versions of record batches that records can be written in, oldest first."""


def refuse_unwritten(version: int) -> None:
    """Raise ValueError, which names the versions that can be written, if records cannot be written
    in a version; return if they can. By the present schemas all known versions can be written (0, 1
    and 2), so that only unknown ones are refused.
    """
    if version in WRITTEN_VERSIONS:
        return
    listed = ", ".join(map(str, WRITTEN_VERSIONS))
    if version not in VERSIONS:
        raise ValueError(f"{version} is not a version of the format; known: {listed}")
    raise ValueError(
        f"records cannot be written in version {version}, which is only read: the view records "
        f"has no `write` for it; versions that are written: {listed}"
    )
