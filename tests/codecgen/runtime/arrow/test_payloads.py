"""Views into payloads: rows of keys and values in Arrow columns, by the kernel and by the reference codecs."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from codecgen.runtime.arrow import payloads as decoding
from codecgen.runtime.arrow.payloads import decode
from codecgen.runtime.located_bytes import Limits
from tests.laws.compiled import compiled_module
from tests.laws.made import checked, generated, imported
from tests.laws.mutations import mutated
from tests.laws.payload_memory import anywhere, decoded, summed
from tests.laws.world import World
from tests.paths import ROOT

SCHEMA = ROOT / "tests" / "data" / "payloads"
VIEWS = ("offsets", "members", "marks")
Row = dict[str, Any]


@pytest.fixture(scope="module")
def codecs() -> Iterator[ModuleType]:
    world = World.read({path.name: path.read_text("utf-8") for path in SCHEMA.glob("*.yaml")})
    model, found = checked(world)
    assert not found
    made = generated(world, model)
    assert not made.refused
    with imported(made) as package:
        yield package


def view_of(name: str) -> Any:
    return getattr(importlib.import_module(f"payload_codecs.columns.{name}"), name.upper())


Pair = tuple[bytes | None, bytes | None]


def commit(codecs: Any, i: int) -> tuple[Pair, Row]:
    """A commit of an offset, and its row."""
    key = {"version": i % 2, "group": f"g{i}", "topic": "t\u00f6pic" * (i % 4), "partition": i}
    version, metadata = i % 5, None if i % 3 == 0 else "m" * (i % 50)
    value = {"version": version, "offset": i, "metadata": metadata, "commit_timestamp": 1000 + i}
    if version >= 3:
        value["leader_epoch"] = i % 4 - 1
    if version == 1:
        value["expire_timestamp"] = i % 2 - 1
    epoch, expires = value.get("leader_epoch", -1), value.get("expire_timestamp", -1)
    deleted = i % 7 == 0
    row = {
        "group": key["group"],
        "topic": key["topic"],
        "partition": i,
        "is_deleted": deleted,
        "committed_offset": i,
        "next_offset": i + 1,
        "metadata": metadata,
        "leader_epoch": None if epoch == -1 else epoch,
        "committed_at": 1000 + i,
        "expires_at": None if expires == -1 else expires,
    }
    if deleted:
        row = {name: row[name] for name in ("group", "topic", "partition", "is_deleted")}
        return (codecs.COMMIT_KEY.build(key), None), row
    return (codecs.COMMIT_KEY.build(key), codecs.COMMIT_VALUE.build(value)), row


def group(codecs: Any, i: int) -> tuple[Pair, list[Row]]:
    """A group, and a row for each of its members."""
    version, members, rows = i % 3, [], []
    leader, generation = None if i % 2 else "L\u00e9", i % 4 - 1
    for k in range(i % 5):
        member: Row = {"member_id": f"m{k}", "session_timeout": k, "subscription": b"s" * (i % 30)}
        if version >= 1:
            member["client_id"] = None if k % 2 else f"c{k}"
        if version >= 2:
            member["topics"] = [{"topic": "a" * n} for n in range(k)]
        members.append(member)
        own = {
            name: member.get(name) for name in ("member_id", "client_id", "subscription", "topics")
        }
        rows.append(
            {"group": f"g{i}", "generation": generation, "leader": leader, "timeout": k, **own}
            | {"is_leader_known": leader is not None}
        )
    value = {"version": version, "protocol_type": "p", "generation": generation, "leader": leader}
    key = codecs.GROUP_KEY.build({"group": f"g{i}"})
    if i % 11 == 10:
        return (key, None), []
    return (key, codecs.GROUP_VALUE.build(value | {"members": members})), rows * (generation >= 0)


def mark(codecs: Any, i: int) -> tuple[Pair, list[Row]]:
    """A mark, and its rows."""
    tags = [{"name": f"n{k}", "data": None if k == 1 else b"d" * k} for k in range(i % 4)]
    note, level = None if i % 2 else "note", i % 8
    value: Row = {"note": note, "tags": None if i % 5 == 0 else tags}
    value["flags"] = {"urgent": bool(i % 2), "level": level}
    ident, marked = i * 10, i % 3
    key = codecs.MARK_KEY.build({"id": ident, "marked": marked})
    data = None if i % 7 == 0 else codecs.MARK_VALUE.build(value)
    row: Row = {"kind": 3, "id": ident}
    if marked and data is not None:
        row |= {"note": note, "tags": value["tags"], "level": level, "urgent": bool(i % 2)}
    if not marked:
        return (key, data), [{"kind": 3, "id": -1}] if ident > 100 and data is not None else []
    return (key, data), [row]


def pairs_of(codecs: Any, count: int) -> tuple[list[Pair], dict[str, list[tuple[int, Row]]]]:
    """Payloads of all kinds, and the rows of each view with the payload that they are in."""
    pairs: list[Pair] = []
    rows: dict[str, list[tuple[int, Row]]] = {name: [] for name in VIEWS}
    for i in range(count):
        at = len(pairs)
        pair, row = commit(codecs, i)
        rows["offsets"].append((at, row))
        group_pair, members = group(codecs, i)
        rows["members"] += [(at + 1, member) for member in members]
        mark_pair, marks = mark(codecs, i)
        rows["marks"] += [(at + 2, one) for one in marks]
        forgotten = codecs.FORGOTTEN_KEY.build({"group": f"f{i}"})
        rows["marks"].append((at + 3, {"kind": 4, "group": f"f{i}", "id": 0}))
        pairs += [pair, group_pair, mark_pair, (forgotten, b"anything")]
    return pairs, rows


def parts_of(pairs: list[Pair]) -> dict[str, list[bytes | None]]:
    return {"key": [key for key, _ in pairs], "value": [value for _, value in pairs]}


def plain(view: Any, row: Row) -> Row:
    """A row with all its columns, as Arrow gives it back."""
    out = {c.name: row.get(c.name) for c in view.columns if not c.on_request}
    return out


def shown(rows: list[Row]) -> list[Row]:
    """Rows with numbers for times."""
    return [
        {k: round(v.timestamp() * 1000) if hasattr(v, "timestamp") else v for k, v in row.items()}
        for row in rows
    ]


@pytest.mark.slow
@pytest.mark.share(6)
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", VIEWS)
def test_rows(codecs: ModuleType, name: str, compiled: bool) -> None:
    pairs, rows = pairs_of(codecs, 40)
    view = view_of(name)
    found = summed(decoded(view, parts_of(pairs), compiled=compiled, before=3))
    assert shown(found["values"]) == [plain(view, row) for _, row in rows[name]]
    assert found["rows"] == [at for at, _ in rows[name]]
    assert not found["rejected"] and not found["unknown"]


@pytest.mark.slow
@pytest.mark.share(6)
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", VIEWS)
def test_damaged_payloads_are_read_as_by_the_codecs(
    codecs: ModuleType, name: str, strict: bool
) -> None:
    r = random.Random(name)
    pairs, _ = pairs_of(codecs, 12)
    for _ in range(6):
        some = list(pairs)
        for _ in range(10):
            at = r.randrange(len(some))
            key, value = some[at]
            if r.random() < 0.4 and key is not None:
                key = next(iter(mutated(key, r, 1)), key)
            elif value is not None:
                value = next(iter(mutated(value, r, 1)), value)
            some[at] = r.choice([(key, value), (key, value), (None, value), (key, None)])
        parts = parts_of(some)
        by_kernel = summed(decoded(view_of(name), parts, strict=strict, max_rows=7))
        assert by_kernel == summed(decoded(view_of(name), parts, strict=strict, compiled=False))


def test_what_is_rejected(codecs: ModuleType) -> None:
    (key, value), _ = commit(codecs, 3)
    assert key is not None and value is not None
    negative = value[:2] + b"\xff" * 8 + value[10:]
    keys = [key, key, key[:5], key, b"\x00\x09", None, key, b"\x00"]
    values = [value, value[:-1], value, negative, value, value, b"\x00\x63" + value[2:], value]
    found = summed(decoded(view_of("offsets"), {"key": keys, "value": values}, strict=True))
    assert found["rows"] == [0]
    assert found["unknown"] == [4, 5]
    said = [
        (w.row, w.part, w.at, w.field, str(w.place).partition(":")[0]) for w in found["rejected"]
    ]
    assert said == [
        (1, "value", 16, "commit_timestamp", "offsets.yaml"),
        (2, "key", 2, "group", "offsets.yaml"),
        (3, "value", 2, "offset", "offsets.yaml"),
        (6, "value", 0, "version", "offsets.yaml"),
        (7, "key", 0, "version", "offsets.yaml"),
    ]
    assert all(w.message for w in found["rejected"])
    first = found["rejected"][0]
    assert str(first) == (
        f"8 bytes are needed, 7 are left (row 1, value, commit_timestamp, byte 16, {first.place})"
    )


def test_trailing_bytes_are_a_freedom(codecs: ModuleType) -> None:
    pairs = [commit(codecs, i)[0] for i in range(1, 6)]
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    values[2] = (values[2] or b"") + b"more"
    parts = {"key": keys, "value": values}
    lenient = summed(decoded(view_of("offsets"), parts))
    assert lenient["rows"] == [0, 1, 2, 3, 4] and not lenient["rejected"]
    strict = summed(decoded(view_of("offsets"), parts, strict=True))
    assert strict["rows"] == [0, 1, 3, 4]
    assert [(w.row, w.part) for w in strict["rejected"]] == [(2, "value")]


def test_what_no_rows_name_is_passed_over(codecs: ModuleType) -> None:
    forgotten = codecs.FORGOTTEN_KEY.build({"group": "x"})
    parts = {"key": [forgotten, forgotten + b"damaged"], "value": [b"", None]}
    found = summed(decoded(view_of("offsets"), parts))
    assert not any(found.values())


def test_a_view_of_one_layout(codecs: ModuleType) -> None:
    values = [commit(codecs, i)[0][1] for i in range(8)]
    found = summed(decoded(view_of("commit_values"), {"value": [*values, b"\x00"]}))
    assert found["rows"] == [1, 2, 3, 4, 5, 6]
    assert [w.row for w in found["rejected"]] == [8]


def arrays(parts: dict[str, list[bytes | None]], kind: Any) -> dict[str, Any]:
    return {name: pa.array(data, kind) for name, data in parts.items()}


def test_kinds_of_arrays(codecs: ModuleType) -> None:
    pairs, _ = pairs_of(codecs, 10)
    parts, view = parts_of(pairs), view_of("offsets")
    wanted = summed(decoded(view, parts))
    with anywhere():
        check_kinds(view, parts, wanted)


def check_kinds(view: Any, parts: dict[str, list[bytes | None]], wanted: Any) -> None:
    count = len(parts["key"])
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        whole = arrays(parts, kind)
        assert summed(list(decode(view, whole))) == wanted
        more = {name: pa.concat_arrays([array, array]) for name, array in whole.items()}
        cut = {name: array.slice(count) for name, array in more.items()}
        assert summed(list(decode(view, cut))) == wanted
        chunked = {
            "key": pa.chunked_array([whole["key"][:7], whole["key"][7:7], whole["key"][7:]]),
            "value": pa.chunked_array([whole["value"][:20], whole["value"][20:]]),
        }
        assert summed(list(decode(view, chunked))) == wanted
    later = list(decode(view, arrays(parts, pa.binary()), ["record", "group"], first_row=100))
    assert later[0].start == 100 and later[-1].end == 100 + count
    assert [row["record"] for row in later[0].batch.to_pylist()] == later[0].rows.to_pylist()
    assert later[0].rows[0].as_py() == 100
    assert list(decode(view, {"key": pa.array([], pa.binary()), "value": pa.nulls(0)})) == []
    nothing = list(decode(view, {"key": pa.nulls(3), "value": pa.nulls(3)}))
    assert nothing[0].unknown.to_pylist() == [0, 1, 2]


def test_columns_that_nobody_wants(codecs: ModuleType) -> None:
    pairs, rows = pairs_of(codecs, 8)
    for names in (["tags"], ["level", "id"], []):
        found = decoded(view_of("marks"), parts_of(pairs), names)
        assert [row for one in found for row in one.rows.to_pylist()] == [
            at for at, _ in rows["marks"]
        ]
        assert sum(one.batch.num_rows for one in found) == len(rows["marks"])
        assert found[0].batch.schema.names == names


def test_many_rows_of_one_payload(codecs: ModuleType) -> None:
    """A key is in the row of each member: batches end where a column would be too large, a payload that is too large is
    rejected."""
    members = [{"member_id": "m", "session_timeout": 1, "subscription": b""}] * 50
    value = {"version": 0, "protocol_type": "", "generation": 1, "leader": None}
    small = codecs.GROUP_VALUE.build(value | {"members": members[:1]})
    large = codecs.GROUP_VALUE.build(value | {"members": members})
    key = codecs.GROUP_KEY.build({"group": "g" * 100})
    parts: dict[str, list[bytes | None]] = {
        "key": [key] * 8,
        "value": [small, small, small, small, large, small, large, small],
    }
    view = view_of("members")
    for compiled in (True, False):
        found = decoded(view, parts, compiled=compiled)
        assert [one.batch.num_rows for one in found if compiled] == (
            [4, 50, 1, 50, 1] if compiled else []
        )
        assert sum(one.batch.num_rows for one in found) == 106
        before = decoding.MAX_BYTES
        decoding.MAX_BYTES = 4999
        try:
            found = decoded(view, parts, compiled=compiled)
        finally:
            decoding.MAX_BYTES = before
        rejected = [wrong for one in found for wrong in one.rejected]
        assert [wrong.row for wrong in rejected] == [4, 6]
        assert "more than 4999 bytes in a column" in rejected[0].message
        assert sum(one.batch.num_rows for one in found) == 6


def test_more_elements_than_allowed(codecs: ModuleType) -> None:
    pair, _ = group(codecs, 4)
    for compiled in (True, False):
        found = decoded(
            view_of("members"), parts_of([pair]), compiled=compiled, limits=Limits(elements=3)
        )
        assert [(w.part, w.field) for w in found[0].rejected] == [("value", "members")]


def test_wrong_arguments(codecs: ModuleType) -> None:
    view = view_of("offsets")
    one = pa.array([b""], pa.binary())
    with pytest.raises(ValueError, match="the view needs the parts key, value, not key"):
        decode(view, {"key": one})
    with pytest.raises(
        ValueError,
        match="the arrays of the parts must have one length, but there are 1 of key, 2 of value",
    ):
        decode(view, {"key": one, "value": pa.nulls(2)})
    with pytest.raises(TypeError, match="value is string, not binary"):
        decode(view, {"key": one, "value": pa.array(["x"])})
    with pytest.raises(ValueError, match="no column is called 'nobody'"):
        decode(view, {"key": one, "value": one}, ["nobody"])


@pytest.mark.parametrize("offsets", [[0, 9, 3], [4, 3, 4]])
def test_offsets_that_lead_elsewhere(codecs: ModuleType, offsets: list[int]) -> None:
    buffers = [None, pa.py_buffer(np.array(offsets, np.int64)), pa.py_buffer(b"0123")]
    array = pa.Array.from_buffers(pa.large_binary(), 2, buffers)
    with pytest.raises(ValueError, match="offsets of the Arrow array do not ascend"):
        list(decode(view_of("commit_values"), {"value": array}))


@pytest.mark.share(ci=3)
@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_machine_code(codecs: ModuleType, name: str, tmp_path: Path) -> None:
    """The kernel as machine code reads what it reads as plain Python, also where it is damaged."""
    r = random.Random(name)
    pairs, _ = pairs_of(codecs, 30)
    view = view_of(name)
    text = importlib.import_module(view.kernels).__loader__.files[
        f"{view.kernels.replace('.', '/')}.py"
    ]
    module = compiled_module(f"compiled_payloads_{name}", text, tmp_path)
    for damaged in (False, True):
        if damaged:
            pairs = [
                (next(iter(mutated(k or b"", r, 1)), k), next(iter(mutated(v or b"", r, 1)), v))
                for k, v in pairs
            ]
        parts = parts_of(pairs)
        plain_rows = summed(decoded(view, parts, compiled=False))
        before = sys.modules[view.kernels]
        sys.modules[view.kernels] = module
        try:
            found = summed(list(decode(view, arrays(parts, pa.binary()))))
        finally:
            sys.modules[view.kernels] = before
        assert found == plain_rows


def test_the_package_says_what_the_views_are_of(codecs: ModuleType) -> None:
    columns = importlib.import_module(f"{codecs.__name__}.columns")
    text = "\n---\n".join(path.read_text("utf-8") for path in sorted(SCHEMA.glob("*.yaml")))
    documents = (d for d in yaml.safe_load_all(text) if isinstance(d, dict) and "view" in d)
    of = {document["view"]: document["of"] for document in documents}
    assert of == columns.PAYLOAD_VIEWS


def test_views_without_kernels_are_read_by_the_reference_codecs(codecs: ModuleType) -> None:
    view = view_of("offsets")
    assert decoding.load_kernels(replace(view, kernels=None)) is None
    for missing in (f"{codecs.__name__}.arrow.no_kernels", "no_package.arrow.offsets_kernels"):
        assert decoding.load_kernels(replace(view, kernels=missing)) is None
