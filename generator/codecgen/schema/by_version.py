"""Values that differ between versions: ``string: {0-3: i16, 4+: compact}`` -> the types of a field, version by version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from codecgen.schema.reader import Ranged, Record, Value
from codecgen.schema.types import FieldType, Span, Versions


def may_be_left_out(key: str) -> bool:
    """Whether a key need not be there in every version: without `null` null is not allowed."""
    return key.rpartition(".")[2] == "null"


def ranges_of(r: Record) -> dict[str, tuple[tuple[Versions, Span], ...]]:
    """The ranges of each key whose value differs between versions (``array.string``: of the elements of an array)."""
    return {
        key: tuple((part, span) for part, _, span in ranged.parts) for key, ranged in _ranged(r)
    }


def types_of(
    r: Record, type_of: Callable[[Record], FieldType]
) -> tuple[tuple[Versions, FieldType], ...]:
    """The type of a field in each range of versions in which it is another one; nothing for a type that is always the
    same. Where ranges overlap the first counts, and where there is none there is no type: a check says so."""
    ranged = dict(_ranged(r))
    if not ranged:
        return ()
    types = tuple((cell, type_of(record)) for cell, record in _cells(r, ranged))
    if types:
        return types
    first = {key: each.parts[0][1] for key, each in ranged.items()}
    return ((Versions(0, None), type_of(_with(r, first))),)


def _ranged(r: Record, before: str = "") -> Iterator[tuple[str, Ranged]]:
    for key, value in r.values.items():
        if isinstance(value.value, Ranged):
            yield before + key, value.value
        elif key == "array" and isinstance(value.value, Record):
            yield from _ranged(value.value, "array.")


def _cells(r: Record, ranged: Mapping[str, Ranged]) -> Iterator[tuple[Versions, Record]]:
    """The stretches of versions in which every key has one value, with these values."""
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
        if all(key in found or may_be_left_out(key) for key in ranged):
            yield Versions(low, None if after is None else after - 1), _with(r, found)


def _with(r: Record, found: Mapping[str, Value], before: str = "") -> Record:
    """The record with single values in the place of those by version."""
    values: dict[str, Value] = {}
    for key, value in r.values.items():
        if isinstance(value.value, Ranged):
            if before + key in found:
                values[key] = Value(found[before + key].value, value.span)
        elif key == "array" and isinstance(value.value, Record):
            values[key] = Value(_with(value.value, found, "array."), value.span)
        else:
            values[key] = value
    return Record(r.form, values, r.span)
