"""Flexible layouts: expand the lengths that the version settles into the keys of each field.

So ``type: string`` becomes ``string: {0: i16, 1+: compact}``, and what comes after knows of no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from codecgen.diagnostics import Span
from codecgen.schema.key_types import FLEXIBLE
from codecgen.schema.model import Field
from codecgen.schema.none import settled_versions, values_of_none
from codecgen.schema.reader import Ranged, Reader, Record, Value
from codecgen.schema.types import TagsType, Versions

UNKNOWN_TAGS = "unknown_tags"
"""The field of a flexible layout that holds the tagged fields that it does not name."""
_OLD = {"string": "i16", "bytes": "i32", "count": "i32"}


@dataclass(frozen=True, slots=True)
class Flexible:
    """Versions of a layout that are flexible (compact lengths, tagged fields): those from ``first``
    on, or none if it is None. ``versions`` are all versions of the layout.
    """

    first: int | None
    versions: Versions | None

    def split_versions(
        self, own: Versions | None, nullable: tuple[Versions, ...]
    ) -> Iterator[tuple[Versions, bool, bool]]:
        """Yield the versions of a field in ascending ranges as (versions, whether they are
        flexible, whether the field can be null). ``own`` limits the versions, ``nullable`` are
        those with null. Yield one range ``0+`` if the layout has no versions. If ``own`` lies
        outside the layout's versions, yield one version: the higher of the two first ones.
        """
        around = self.versions or Versions(0, None)
        low = max(around.low, own.low) if own is not None else around.low
        highs = [v.high for v in (around, own) if v is not None and v.high is not None]
        high = max(low, min(highs)) if highs else None
        edges = [self.first]
        for part in nullable:
            edges += [part.low, None if part.high is None else part.high + 1]
        cuts = {e for e in edges if e is not None and low < e and (high is None or e <= high)}
        for begin, after in pairwise([low, *sorted(cuts), None]):
            assert begin is not None
            flexible = self.first is not None and begin >= self.first
            null = any(begin in part for part in nullable)
            if self.versions is None:
                yield Versions(0, None), self.first is not None, bool(nullable)
                return
            yield Versions(begin, high if after is None else after - 1), flexible, null

    @property
    def section(self) -> Versions | None:
        """Return the open range of versions that end with a section of tagged fields. Return None
        if all do, if none is flexible (``first`` is None), or if the layout has no versions.
        """
        if self.versions is None or self.first is None or self.first <= self.versions.low:
            return None
        return Versions(self.first, None)

    @property
    def has_section(self) -> bool:
        """Return whether at least one version of the layout is flexible."""
        high = None if self.versions is None else self.versions.high
        return self.first is not None and (high is None or self.first <= high)


def flexible_of(r: Record) -> Flexible | None:
    """Return the Flexible of a layout from its record; ``first`` is None if it says ``never``.
    Return None if the record has no key ``flexible``.
    """
    declared = r["flexible"]
    if declared is None:
        return None
    first = declared.low if isinstance(declared, Versions) else None
    return Flexible(first, cast(Versions | None, r["versions"]))


def section(flexible: Flexible | None, span: Span, accepts: frozenset[str]) -> tuple[Field, ...]:
    """Return the hidden field, with the tolerances ``accepts``, for the section of tagged fields,
    in the flexible versions only, or ``()`` if the layout has no ``flexible`` or no version is
    flexible.
    """
    if flexible is None or not flexible.has_section:
        return ()
    doc = "Tagged fields that this layout does not name."
    return (
        Field(
            UNKNOWN_TAGS,
            TagsType(),
            span,
            doc=doc,
            versions=flexible.section,
            accepts=accepts,
            hidden=True,
        ),
    )


def field_record(word: str, span: Span) -> Record:
    """Return the record of a field that is written as a type alone: a record with ``word`` as its
    key ``type``.
    """
    return Record("field", {"type": Value(word, span)}, span)


def with_lengths(
    reader: Reader, r: Record, name: str, flexible: Flexible | None, *, counted: bool, tagged: bool
) -> Record:
    """Return the record of a field with the length and null types that follow from ``flexible`` for
    each version (None: no such types). A ``tagged`` field is flexible in all; an array that another
    field counts (``counted``) gets no count. Report a ``none`` that the field cannot have, and
    leave it out; report ``true`` in versions that do not exist.

    Args:
        reader: Collects diagnostics about keys that do not fit.
        r: Record as written.
        name: Name of the field.
        flexible: Settings of the layout; None adds no types.
        counted: Whether another field counts the array.
        tagged: Whether the field is tagged, so that every version is flexible.
    """
    values = dict(r.values)
    word = r["type"] if r["type"] in FLEXIBLE else r["array"] if r["array"] in FLEXIBLE else None
    if flexible is None:
        return values_of_none(reader, r, name, encodes_null=False)
    if tagged:
        flexible = Flexible(0, flexible.versions)
    nullable = settled_versions(r)
    parts = list(flexible.split_versions(cast(Versions | None, r["versions"]), nullable))

    def by_version(number: str, span: Span) -> Value:
        return _merge_ranges(parts, lambda new, _: "compact" if new else _OLD[number], span)

    encodes_null = False
    if r["type"] in FLEXIBLE:
        del values["type"]
        values[str(word)] = by_version(str(word), r.at("type"))
        encodes_null = True
    elif "array" in r:
        if word is not None:
            inner = {str(word): by_version(str(word), r.at("array"))}
            values["array"] = Value(Record("element", inner, r.at("array")), r.at("array"))
        declared = {"count", "length", "until", "compressed"} & values.keys()
        encodes_null = not declared and not counted
        if encodes_null:
            values["count"] = by_version("count", r.at("array"))
    held = "layout" in r or "fields" in r
    if nullable and (encodes_null or held):
        where = r.at("none")
        value = r["none"]
        if isinstance(value, Ranged):
            _check_ranges_of_none(reader, value, name, parts, flexible)
        if encodes_null:
            values["none"] = _merge_ranges(
                parts, lambda new, null: (0 if new else -1) if null else None, where
            )
        else:
            type_, null = ("uvarint", 0) if tagged else ("i8", -1)
            inner = {"type": Value(type_, where), "value": Value(null, where)}
            number = Record("presence", inner, where)
            values["none"] = _merge_ranges(parts, lambda _, null: number if null else None, where)
        return Record(r.form, values, r.span)
    return values_of_none(reader, Record(r.form, values, r.span), name, encodes_null=encodes_null)


def _check_ranges_of_none(
    reader: Reader,
    declared: Ranged,
    name: str,
    parts: list[tuple[Versions, bool, bool]],
    flexible: Flexible,
) -> None:
    """Report each range under ``none`` (``declared``) of the field ``name`` if the layout has no
    versions, or if the field is in no version of the range. ``parts`` are the versions of the
    field.
    """
    for versions, _, span in declared.parts:
        message = f'"{name}" may be null in versions {versions}, in which there is no "{name}"'
        if flexible.versions is None:
            message = f'"{name}" may be null in versions {versions}, but its layout has none'
        elif any(part.low in versions for part, _, null in parts if null):
            continue
        reader.report("C020", message, span, help="write `none: true` for all versions")


def _merge_ranges(
    parts: list[tuple[Versions, bool, bool]],
    value_of: Callable[[bool, bool], object],
    span: Span,
) -> Value:
    """Return one value if ``value_of(flexible, nullable)`` gives the same, and not None, for all
    ``parts``; otherwise a ``Ranged``, with adjacent equal ranges merged and ranges of None left
    out. It is empty if all are None.
    """
    found = [(versions, value_of(new, null)) for versions, new, null in parts]
    if all(value == found[0][1] for _, value in found) and found[0][1] is not None:
        return Value(found[0][1], span)
    merged: list[tuple[Versions, object]] = []
    for versions, value in found:
        if value is None:
            continue
        if merged and merged[-1][1] == value and merged[-1][0].high == versions.low - 1:
            merged[-1] = (Versions(merged[-1][0].low, versions.high), value)
        else:
            merged.append((versions, value))
    return Value(Ranged(tuple((v, Value(value, span), span) for v, value in merged)), span)
