"""Comparison of written batches with their sources in all fields of their layouts, also those that no view has a column for."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from codecgen.runtime.building import default_value
from codecgen.runtime.construct import Array, Bits, Field, Layout, Padding, Tags
from codecgen.runtime.errors import Where
from codecgen.runtime.located_bytes import Session, Source
from kafka_log.segment.positioned_reads import open_segment, read_exactly
from kafka_log.write.verification import DEFECT, Written, WrittenError

_CHUNK = 1 << 17
"""Bytes that are read at once, few enough for the cache of a processor."""


class Rewritten(NamedTuple):
    """A batch and what was written in its place.

    Attributes:
        source: The bytes of the batch.
        written: The bytes that were written for it.
        older: The layout of the batch.
        newer: The layout of what was written.
        changes: The new values of fields by their paths (``attributes.compression``).
        offset: The first offset of the batch, for messages.
    """

    source: Written
    written: Written
    older: Layout
    newer: Layout
    changes: Mapping[str, Any]
    offset: int


class Made(NamedTuple):
    """A batch that was made of entries of another layout.

    Attributes:
        source: The bytes of its first entry.
        written: The bytes of the batch.
        offset: The first offset of the batch, for messages.
    """

    source: Written
    written: Written
    offset: int


class Difference(NamedTuple):
    """A field that has another value in what was written. ``path`` is the one of the source (``records[2].key``)."""

    path: str
    expected: Any
    found: Any


def compare_fields(batches: Sequence[Rewritten]) -> None:
    """Raise WrittenError, which names the field, if a written batch lacks a value of its source or
    has another one. Raise other CodecErrors if one of the two does not parse; UnreadableError if a
    file cannot be read.

    All fields of headers, records and their headers are compared. These may differ: fields that ``changes`` names, which must
    have the value there; and lengths, counts, checksums and versions, which builders compute. If the newer layout lacks a
    field, the source must have no value in it. If the source's layout lacks a field, what was written must have the default.
    """
    sources = read_ranges(one.source for one in batches)
    written = read_ranges(one.written for one in batches)
    bytes_of: dict[tuple[Any, ...], _EntryBytes] = {}
    for one, before, after in zip(batches, sources, written, strict=True):
        if one.older is one.newer:
            key = one.older, *one.changes.items()
            if key not in bytes_of:
                bytes_of[key] = _EntryBytes(one.older, one.changes)
            if bytes_of[key].are_same(before, after):
                continue
        parsed = _parse(one.older, before, one.source), _parse(one.newer, after, one.written)
        for found in _find_differences(*parsed, one.older, one.newer, one.changes, ""):
            raise _error_of(found, one)


def compare_defaults(batches: Sequence[Made], layout: Layout, carried: Collection[str]) -> None:
    """Raise WrittenError, which names the field, if a batch has a value other than the default in a
    field that its source does not have. Raise other CodecErrors if a batch does not parse;
    UnreadableError if a file cannot be read.

    Args:
        batches: What was written, ascending in each file.
        layout: The layout of what was written.
        carried: Paths of the fields that have values of the source (``records.key``).
    """
    written = read_ranges(one.written for one in batches)
    for one, data in zip(batches, written, strict=True):
        parsed = _parse(layout, data, one.written)
        for found in _find_set_values(parsed, layout, carried, ""):
            raise _error_of(found, one)


def _error_of(found: Difference, batch: Rewritten | Made) -> WrittenError:
    """Return the error that describes a difference in a batch, at the place of its source."""
    values = [_format_value(value) for value in (found.expected, found.found)]
    reason = (
        f"{found.path} of the batch at offset {batch.offset} is {values[0]}, but {values[1]} in what was written at byte"
        f" {batch.written.start} of {batch.written.path}; {DEFECT}"
    )
    return WrittenError(
        reason, Where(position=batch.source.start, file=os.fspath(batch.source.path))
    )


def is_computed(field: Field) -> bool:
    """Return whether builders compute the value of a field."""
    related = field.measures, field.checksum, field.const
    return bool(field.counts) or any(one is not None for one in related)


def read_ranges(ranges: Iterable[Written]) -> Iterator[memoryview]:
    """Yield the bytes of ranges, which ascend in each file. Raise UnreadableError if a file cannot
    be read, or is shorter.
    """
    for path, group in groupby(ranges, key=lambda one: one.path):
        with open_segment(path) as file:
            size = os.fstat(file.fileno()).st_size
            held, at = memoryview(b""), 0
            for one in group:
                if one.stop > at + len(held):
                    at = one.start
                    count = max(one.stop - at, min(_CHUNK, size - at))
                    held = memoryview(read_exactly(file, at, count))
                yield held[one.start - at : one.stop - at]


def _parse(layout: Layout, data: memoryview, place: Written) -> Any:
    """Return the fields of an entry. Raise CodecError if it does not parse."""
    session = Session(strict=False, file=os.fspath(place.path))
    return layout.read(Source(data, session, origin=place.start), None)


class _EntryBytes:
    """Compares entries of a layout by their bytes, which takes a hundredth of the time that parsing takes."""

    def __init__(self, layout: Layout, changes: Mapping[str, Any]) -> None:
        self._layout = layout
        self._changes = changes
        self._changed = {path.partition(".")[0] for path in changes}
        self._kept = _select_bytes(layout, self._changed)
        self._session = Session(strict=False)
        self._right: set[tuple[Any, ...]] = set()
        """Pairs of changed fields that were compared and are right."""

    def are_same(self, before: memoryview, after: memoryview) -> bool:
        """Return True if two entries have the same fields but for the changes. Return False if they
        may differ: then the fields have to be compared one by one.
        """
        if self._kept is None or self._kept(before) != self._kept(after):
            return False
        head = self._layout.leading_fields
        one, other = head.values(before, 0, len(before)), head.values(after, 0, len(after))
        if one is None or other is None:
            return False
        for name in self._changed:
            pair = name, getattr(one, name), getattr(other, name)
            if pair not in self._right:
                codec = self._layout.by_name[name].codec
                if any(_find_differences(*pair[1:], codec, codec, self._changes, name)):
                    return False
                self._right.add(pair)
        return self._read_section(before, one) == self._read_section(after, other)

    def _read_section(self, data: memoryview, head: Any) -> bytes | None:
        """Return the decompressed bytes of the array after the leading fields ``head``; None if it
        is empty. Raise CodecError if they cannot be decompressed.
        """
        last = self._layout.fields[-1].codec
        self._session.decompressed = 0
        self._session.findings.clear()
        source = Source(data, self._session, pos=self._layout.leading_fields.size)
        section = last.section(source, head, last.number(source, head._asdict()))
        if section is None:
            return None
        if section.pending is not None:
            raise section.pending
        return bytes(memoryview(section.data)[section.pos : section.end])


def _select_bytes(
    layout: Layout, changed: Collection[str]
) -> Callable[[memoryview], tuple[bytes, ...]] | None:
    """Return a function that returns the bytes of an entry's leading fields but for ``changed``,
    lengths and checksums. Return None if not all fields before the last array have fixed places, or
    no array ends the layout.
    """
    if not layout.leading_fields.leaves_an_array:
        return None
    code = "="
    for field in layout.fields[:-1]:
        is_kept = field.measures is None and field.checksum is None and field.name not in changed
        code += f"{layout.size_of(field.name)}{'s' if is_kept else 'x'}"
    return struct.Struct(code).unpack_from


def _find_differences(
    before: Any, after: Any, older: Any, newer: Any, changes: Mapping[str, Any], path: str
) -> Iterator[Difference]:
    """Yield the values of ``before``, parsed by the codec ``older``, that ``after``, parsed by
    ``newer``, does not have, in the order of the bytes. ``changes`` has the values that must differ,
    by the paths of fields; ``path`` is the path of the value.
    """
    if path in changes:
        before = changes[path]
    if before is None or after is None:
        if before is not after:
            yield Difference(path, before, after)
    elif isinstance(older, Array) and isinstance(newer, Array):
        for i, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from _find_differences(
                one, other, older.element, newer.element, changes, f"{path}[{i}]"
            )
        if len(before) != len(after):
            yield Difference(f"the number of {path}", len(before), len(after))
    elif isinstance(older, Bits) and isinstance(newer, Bits):
        for name in older.by_name:
            member = getattr(before, name)
            if name in newer.by_name:
                other = getattr(after, name)
                yield from _find_differences(member, other, None, None, changes, f"{path}.{name}")
            elif member:
                yield Difference(f"{path}.{name}", member, None)
    elif isinstance(older, Layout) and isinstance(newer, Layout):
        for field in older.fields:
            inner = f"{path}.{field.name}" if path else field.name
            target = newer.by_name.get(field.name)
            if is_computed(field) or (target is not None and is_computed(target)):
                continue
            if target is not None:
                pair = before[field.name], after[field.name]
                yield from _find_differences(*pair, field.codec, target.codec, changes, inner)
            elif before[field.name] not in (None, field.absent):
                yield Difference(inner, before[field.name], None)
        if older is not newer:
            yield from _find_set_values(after, newer, _shared_paths(older, newer), path)
    elif before != after and (before == before or after == after):  # NaN is no difference
        yield Difference(path, before, after)


def _shared_paths(older: Layout, newer: Layout) -> set[str]:
    """Return the names of the fields that builders compute in neither layout and both have; of bits
    their paths, such as ``attributes.compression``.
    """
    paths: set[str] = set()
    for field in newer.fields:
        source = older.by_name.get(field.name)
        if source is None or is_computed(source):
            continue
        if isinstance(source.codec, Bits) and isinstance(field.codec, Bits):
            paths.update(f"{field.name}.{name}" for name in source.codec.by_name)
        else:
            paths.add(field.name)
    return paths


def _find_set_values(
    fields: Any, layout: Layout, carried: Collection[str], path: str, prefix: str = ""
) -> Iterator[Difference]:
    """Yield the values of ``fields``, parsed by ``layout``, that differ from the default. Fields
    with a path in ``carried`` (without indexes of elements) are ignored. ``path`` is the path of
    ``fields`` in a message; ``prefix`` begins the paths of its fields in ``carried``.
    """
    for field in layout.fields:
        inner = f"{path}.{field.name}" if path else field.name
        plain = f"{prefix}{field.name}"
        if is_computed(field) or isinstance(field.codec, Padding | Tags) or plain in carried:
            continue
        if field.when is not None and not field.when(fields):
            continue
        value = fields[field.name]
        if isinstance(field.codec, Array) and any(c.startswith(f"{plain}.") for c in carried):
            element, start = field.codec.element, f"{plain}."
            checked = [
                f for f in element.fields if not is_computed(f) and start + f.name not in carried
            ]
            is_constant = not any(f.when or has_computed_default(f) for f in checked)
            right = None
            for i, item in enumerate(value):
                values = [_comparable(item[f.name]) for f in checked]
                if is_constant and values == right:
                    continue  # most elements have the values of the one before
                found = list(_find_set_values(item, element, carried, f"{inner}[{i}]", start))
                right = None if found else values
                yield from found
            continue
        default = default_value(field, fields)
        if isinstance(field.codec, Bits):
            for name in field.codec.by_name:
                if f"{plain}.{name}" not in carried:
                    pair = default[name], value[name]
                    yield from _find_differences(*pair, None, None, {}, f"{inner}.{name}")
        else:
            yield from _find_differences(default, value, field.codec, field.codec, {}, inner)


def _comparable(value: Any) -> Any:
    """Return the values of bits as a tuple, because dictionaries compare slowly; another value itself."""
    return tuple(value.values()) if isinstance(value, dict) else value


def has_computed_default(field: Field) -> bool:
    """Return whether the default of a field depends on other fields."""
    if field.default is None:
        return False
    try:
        field.default(None)
    except (AttributeError, TypeError):
        return True
    return False


def _format_value(value: Any) -> str:
    """Return a value as Python text, cut after 80 characters with ``...``; "missing" for None."""
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
