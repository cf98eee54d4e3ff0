"""Values that differ between versions: ``string: {0-3: i16, 4+: compact}`` becomes the types of a field by
version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from codecgen.diagnostics import Span
from codecgen.schema.reader import Ranged, Record, Value
from codecgen.schema.types import FieldType, Versions


def is_optional_by_version(key: str) -> bool:
    """Return whether a key by version can be missing in some versions: True for ``none`` and
    ``array.none``, False for all other keys.
    """
    return key.rpartition(".")[2] == "none"


def version_ranges(r: Record) -> dict[str, tuple[tuple[Versions, Span], ...]]:
    """Return the version ranges, with places, of each key whose value is given by version
    (``Ranged``). Keys of array elements begin with ``array.``. Return ``{}`` if there is none.
    """
    return {
        key: tuple((part, span) for part, _, span in ranged.parts)
        for key, ranged in _iterate_ranged(r)
    }


def types_by_version(
    r: Record, type_of: Callable[[Record], FieldType]
) -> tuple[tuple[Versions, FieldType], ...]:
    """Return (versions, type) for each range of versions, ascending, in which every key by version
    has a value; only ``none`` may lack one, and is then left out. Return ``()`` if no key is given
    by version. If no such range exists, return the type of the first values for all versions.
    ``type_of`` makes the type from a record without values by version.

    Of overlapping ranges the first counts. A check reports versions without a range.
    """
    ranged = dict(_iterate_ranged(r))
    if not ranged:
        return ()
    types = tuple((cell, type_of(record)) for cell, record in _iterate_cells(r, ranged))
    if types:
        return types
    first = {key: each.parts[0][1] for key, each in ranged.items()}
    return ((Versions(0, None), type_of(_with_values(r, first))),)


def _iterate_ranged(r: Record, before: str = "") -> Iterator[tuple[str, Ranged]]:
    """Yield (key, values by version) for each key of a record that is given by version, and for
    those of its array elements (``array.key``). ``before`` is the prefix of the keys.
    """
    for key, value in r.values.items():
        if isinstance(value.value, Ranged):
            yield before + key, value.value
        elif key == "array" and isinstance(value.value, Record):
            yield from _iterate_ranged(value.value, "array.")


def _iterate_cells(r: Record, ranged: Mapping[str, Ranged]) -> Iterator[tuple[Versions, Record]]:
    """Yield ranges of versions, ascending and cut wherever a range of some key begins or ends, each
    with the record of the values for that range. The range after the last boundary is open. Of
    overlapping ranges the first counts. Ranges in which a key has no value are left out, unless the
    key (``none``) may be missing in some versions. Without keys in ``ranged``, yield all versions
    as one range.
    """
    every = [part for each in ranged.values() for part, _, _ in each.parts]
    begins = {0} | {part.low for part in every}
    begins |= {part.high + 1 for part in every if part.high is not None}
    cuts: list[int | None] = [*sorted(begins), None]
    for low, after in pairwise(cuts):
        assert low is not None
        found: dict[str, Value] = {}
        for key, each in ranged.items():
            value = next((value for part, value, _ in each.parts if low in part), None)
            if value is not None:
                found[key] = value
        if all(key in found or is_optional_by_version(key) for key in ranged):
            yield Versions(low, None if after is None else after - 1), _with_values(r, found)


def _with_values(r: Record, found: Mapping[str, Value], before: str = "") -> Record:
    """Return the record with each value by version replaced by its value in ``found``, or left out
    if ``found`` has none. ``before`` is the prefix of the keys in ``found``.
    """
    values: dict[str, Value] = {}
    for key, value in r.values.items():
        if isinstance(value.value, Ranged):
            if before + key in found:
                values[key] = Value(found[before + key].value, value.span)
        elif key == "array" and isinstance(value.value, Record):
            values[key] = Value(_with_values(value.value, found, "array."), value.span)
        else:
            values[key] = value
    return Record(r.form, values, r.span)
