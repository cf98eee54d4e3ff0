"""Fields that the view ``records`` does not write: batches that are encoded again get them from their source."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from codecgen.runtime.construct import Array, Bits, Layout
from codecgen.runtime.errors import ValueRefused
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Case, Place
from kafka_codecs.rows.records import RECORDS
from kafka_log.segment.stored_fields import StoredFields
from kafka_log.write.field_comparison import is_computed


class _Change(NamedTuple):
    """A value to store under ``name`` in ``holder``, parsed fields or bits. ``path`` is the path of the field."""

    holder: Any
    name: str
    value: Any
    path: str


def restore_fields(
    entries: Sequence[tuple[Layout, bytes]], stored: StoredFields, records: Sequence[Any]
) -> list[bytes]:
    """Return encoded entries, given by layout and bytes, with the values of the source in all
    fields that the view ``records`` does not write, and in timestamps that none of its columns
    shows: those of producers where consumers get the time of the append. Raise CodecError if an entry has another layout
    than the source, or cannot hold a value.

    Args:
        entries: The entries that were encoded.
        stored: The fields of the source.
        records: The stored fields of each record that was encoded, in order.
    """
    restored: list[bytes] = []
    start = 0
    for layout, data in entries:
        if layout is not stored.layout:
            reason = f"the layout {stored.layout.layout_name} is only read, and the layout {layout.layout_name}, in which its records are written, lacks fields of it"
            raise ValueRefused(reason)
        parsed = _parse(layout, data)
        case = RECORDS.case(layout, parsed)
        assert case is not None
        count = 1 if case.each is None else len(parsed[case.each])
        rows = records[start : start + count]
        source = rows[0] if case.each is None else stored.entry | {case.each: rows}
        start += count
        hidden = _find_hidden_fields(source, data, layout, case)
        writes = [path for path in case.writes if path not in hidden]
        changes = list(_list_changes(source, parsed, layout, writes))
        if changes:
            for one in changes:
                one.holder[one.name] = one.value
            data = layout.build(parsed, strict=False)
            for one in _list_changes(source, _parse(layout, data), layout, writes):
                raise ValueRefused(f"{one.path} cannot be {one.value!r} in what is written")
        restored.append(data)
    return restored


def _find_hidden_fields(source: Any, data: bytes, layout: Layout, case: Case) -> set[str]:
    """Return the paths of the fields that the column ``timestamp`` and the columns of elements write,
    if the values of ``source`` in the encoded entry ``data`` change no row and break no rule.
    """
    rows = _list_rows(_parse(layout, data), case)
    hidden = set()
    for path in case.writes:
        if path not in case.columns["timestamp"].paths and not path.startswith(f"{case.each}."):
            continue
        trial = _parse(layout, data)
        others = [one for one in case.writes if one != path]
        for one in _list_changes(source, trial, layout, others):
            one.holder[one.name] = one.value
        is_valid = all(rule.find_breach(trial) is None for rule in layout.related.rules)
        if is_valid and _list_rows(trial, case) == rows:
            hidden.add(path)
    return hidden


def _list_rows(entry: Any, case: Case) -> list[tuple[Any, ...]]:
    """Return the rows of parsed fields, in all columns of the case."""
    values = case.values(tuple(case.columns))
    items = [None] if case.each is None else map(case.item_of, entry[case.each])
    return [tuple(value(entry, item, Place(0, 0)) for value in values) for item in items]


def _parse(layout: Layout, data: bytes) -> Any:
    """Return the fields of an encoded entry. Raise CodecError if it does not parse."""
    return layout.read(Source(data, Session(strict=False)), None)


def _list_changes(
    before: Any, after: Any, codec: Any, writes: Collection[str], path: str = "", shown: str = ""
) -> Iterator[_Change]:
    """Yield a change for each field of ``after``, parsed by ``codec``, that is neither computed nor
    in ``writes`` and has another value in ``before``, with that value. ``path`` is the path of both in ``writes``, ``shown`` the one with indexes of elements.
    """
    if before is None or after is None:
        return
    cases = getattr(codec, "cases", None)
    if cases is not None:
        codec = cases[int(after[codec.by])]
    if isinstance(codec, Array):
        for i, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from _list_changes(one, other, codec.element, writes, path, f"{shown}[{i}]")
        return
    members: dict[str, Any] = {}
    if isinstance(codec, Bits):
        members = dict.fromkeys(codec.by_name)
    elif isinstance(codec, Layout):
        members = {f.name: f.codec for f in codec.fields if not is_computed(f)}
    for name, member in members.items():
        inner, shown_inner = (f"{one}.{name}" if one else name for one in (path, shown))
        if isinstance(member, Bits) or any(one.startswith(f"{inner}.") for one in writes):
            yield from _list_changes(before[name], after[name], member, writes, inner, shown_inner)
        elif inner not in writes and before[name] != after[name]:
            yield _Change(after, name, before[name], shown_inner)
