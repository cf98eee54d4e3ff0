"""No edit of a parsed entry gives bytes that contradict themselves: each field of each kind of entry in the reference files and
samples is set to other values, left out, and its arrays are changed."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from codecgen.runtime.errors import BuildError, CodecError
from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs import LOG_ENTRY
from tests.paths import SAMPLES, VECTORS

MOST = 2_000
"""Bytes of entries that are looked at."""
EXTREMES = [0, 1, -1, 2, 127, -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1]
COMPUTED = {"batch_length", "message_size", "crc", "record_count", "length"}
Path = tuple[str | int, ...]


def entries() -> Iterator[tuple[str, bytes]]:
    for root in (VECTORS, SAMPLES):
        for path in sorted(root.rglob("*.log")):
            data = path.read_bytes() if path.is_file() else b""
            source = Source(data, Session())
            while source.left > 17:
                try:
                    size = LOG_ENTRY.frame(source)
                except CodecError:
                    break
                if size is None or not 17 < size <= source.left:
                    break
                yield path.name, source.take(size)


def shape(entry: Any) -> tuple[Any, ...]:
    """What entries have in common that are of one kind."""
    items = entry.get("records") or entry.get("messages") or ()
    inner = {(item.get("key") is None, item.get("value") is None) for item in items}
    numbers = ((name, entry[name] < 0) for name in ("producer_id", "offset") if name in entry)
    return (
        entry.magic,
        *map(str, entry.attributes.values()),
        min(len(items), 3),
        *sorted(inner),
        *numbers,
    )


@cache
def kinds() -> dict[tuple[Any, ...], bytes]:
    """The smallest entry of each kind."""
    found: dict[tuple[Any, ...], bytes] = {}
    for _, data in entries():
        if len(data) > MOST:
            continue
        try:
            entry = LOG_ENTRY.parse(data)
        except CodecError:
            continue
        kind = shape(entry)
        if len(data) < len(found.get(kind, bytes(MOST + 1))):
            found[kind] = data
    return found


def paths_of(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all fields; of arrays those of the first and the last element."""
    for name, item in value.items():
        here = (*path, name)
        yield here
        if isinstance(item, dict):
            yield from paths_of(item, here)
        elif isinstance(item, list):
            for i in sorted({0, len(item) - 1} & set(range(len(item)))):
                if isinstance(item[i], dict):
                    yield from paths_of(item[i], (*here, i))


def at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value


def others(value: Any) -> list[Any]:
    """Values to set a field to."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        near = [int(value) - 1, int(value) + 1]
        return [*near, *(n for n in EXTREMES if n != value and n not in near)]
    if isinstance(value, bytes):
        return [None, b"", value + b"x"]
    return [b"x", 1] if value is None else [None]


def edits_of(entry: Any) -> Iterator[tuple[str, Path, Any]]:
    for path in paths_of(entry):
        value = at(entry, path)
        if isinstance(value, list):
            for kind in ("append", "remove first", "remove last", "reverse", "clear"):
                yield kind, path, None
            continue
        yield "leave out", path, None
        for other in () if isinstance(value, dict) else others(value):
            yield "set", path, other


def edited(entry: Any, kind: str, path: Path, value: Any) -> Any:
    out = copy.deepcopy(entry)
    holder, name = at(out, path[:-1]), path[-1]
    if kind == "set":
        holder[name] = value
    elif kind == "leave out":
        del holder[name]
    elif kind == "append":
        last = holder[name][-1] if holder[name] else {}
        holder[name].append(copy.deepcopy(last))
        if "offset_delta" in last or "offset" in last:
            number = "offset_delta" if "offset_delta" in last else "offset"
            holder[name][-1][number] += 1
    elif kind == "remove first":
        del holder[name][:1]
    elif kind == "remove last":
        del holder[name][-1:]
    elif kind == "reverse":
        holder[name].reverse()
    else:
        holder[name].clear()
    return out


def elements(entry: Any, array: str) -> list[tuple[Any, dict[str, Any]]]:
    """The elements of an array, with what is derived for them."""
    of_each = LOG_ENTRY.cases[entry["magic"]].by_name[array].of_each
    return [
        (item, {name: derived.display(entry, item) for name, derived in of_each.items()})
        for item in entry[array] or ()
    ]


def check(entry: Any, kind: str, path: Path, value: Any) -> bool:
    """Build an edited entry. Return whether it is built; what is built has to be good, and what was meant."""
    changed = edited(entry, kind, path, value)
    where = f"{kind} {path} {value!r} of {shape(entry)}"
    try:
        data = LOG_ENTRY.build(changed)
    except BuildError as error:
        assert error.where.path or "has no field" in error.reason, where
        return False
    again = LOG_ENTRY.parse(
        data
    )  # strict: lengths, counts and checksums fit, and all rules are met
    assert LOG_ENTRY.build(again) == data, where
    agree(changed, again, where)
    array = path[0]
    if array not in ("records", "messages"):
        return True
    # What happens to an array changes none of its other elements.
    touched = at(changed, path[:-1])
    after = elements(again, array)
    for fields, derived in elements(entry, array):
        for i, item in enumerate(changed[array]):
            if item is not touched and item == fields:
                assert after[i][1] == derived, f"{where}: element {i}"
                break
    return True


def agree(given: Any, found: Any, where: str) -> None:
    """What was given is there, except what is worked out."""
    for name, value in given.items():
        if name in COMPUTED or name not in found:
            continue
        if isinstance(value, dict):
            agree(value, found[name], where)
        elif isinstance(value, list):
            assert len(value) == len(found[name] or ()), where
            for one, other in zip(value, found[name] or (), strict=True):
                agree(one, other, where)
        else:
            assert found[name] == value, f"{where}: {name}"


def test_there_are_entries_of_many_kinds() -> None:
    found = {kind[0] for kind in kinds()}
    assert found == set(LOG_ENTRY.cases)
    assert len(kinds()) > 50


def run(one_in: int) -> None:
    built = refused = 0
    for kind, data in kinds().items():
        entry = LOG_ENTRY.parse(data)
        for number, edit in enumerate(edits_of(entry)):
            seed = hashlib.sha256(f"{kind} {number}".encode()).digest()
            if int.from_bytes(seed[:4], "big") % one_in:
                continue
            if check(entry, *edit):
                built += 1
            else:
                refused += 1
    assert built > 50
    assert refused > 50


@pytest.mark.slow
def test_an_edited_entry_is_good_or_refused() -> None:
    run(one_in=40)


@pytest.mark.soak
@pytest.mark.parametrize("one_in", [4, pytest.param(1, marks=pytest.mark.soak)])
def test_many_edits_of_entries_are_good_or_refused(one_in: int) -> None:
    run(one_in)
