"""Types of numbers: what the records say, and targets that refuse the types that they cannot express."""

from __future__ import annotations

import dataclasses
import importlib
import re
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codecgen.check import run
from codecgen.plan import make_plan
from codecgen.runtime.arrow.chunks import Chunk
from codecgen.runtime.arrow.decoder import Decoder, Rows
from codecgen.runtime.fast_path import without_fast_paths
from codecgen.schema import scalars
from codecgen.schema.model import Model
from codecgen.schema.scalars import COMPACT, SCALARS, Scalar, find_scalar, fixed_size
from codecgen.targets import arrow, construct
from codecgen.targets.registry import ON_REQUEST, TARGETS, Target
from tests.codecgen.schemas import model_of

LETTERS = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "f32": "f", "f64": "d", "bool": "?"}


@pytest.mark.parametrize("name", [*SCALARS, COMPACT.name])
def test_a_record_says_what_its_name_says(name: str) -> None:
    scalar = find_scalar(name)
    assert scalar is not None and scalar.name == name
    number = re.fullmatch("([iuf])([0-9]+)", name)
    if number:
        assert (scalar.bits, scalar.signed) == (int(number[2]), number[1] == "i")
        assert (scalar.min_size, scalar.max_size) == (scalar.width, scalar.width)
    if name.replace("u", "i") in LETTERS:
        assert fixed_size(name) == struct.calcsize("=" + LETTERS[name.replace("u", "i")])
    if "var" in name or "vlq" in name or scalar is COMPACT:
        long = "long" in name or "64" in name
        assert (scalar.min_size, scalar.max_size) == ((1, 10) if long else (1, 5))
        assert fixed_size(name) is None
    unsigned_64 = name in ("u64", "uvarlong", "vlq64", "bijective_vlq64")
    assert scalar.fits_int64 == (scalar.python in ("int", "bool") and not unsigned_64)


def test_what_is_no_type_has_no_record() -> None:
    for name in ("i40", "rest", "", 3, None):
        assert find_scalar(name) is None
        assert fixed_size(name) is None


# ------------------------------------------------------------ a type that nobody knows

VIEW = """
layout: entry
fields: {kind: {type: u8, const: 1}, size: {type: u32, measures: rest}, n: FIELD, tail: u8}
---
choice: log
by: kind
cases: {1: entry}
---
view: rows
of: log
columns: {c: COLUMN}
rows: [{of: entry, columns: {c: VALUE}WRITE}]
"""
UNKNOWN = {
    "i40": ("i24", Scalar("i40", "integer", 40, signed=True), {"construct", "docs", "html"}),
    "u40": ("u24", Scalar("u40", "integer", 40), {"construct", "docs", "html"}),
    "uvarint48": ("uvarint", Scalar("uvarint48", "varint", 48), {"kaitai"}),
    "f16": ("f32", Scalar("f16", "float", 16), {"docs", "html"}),
    "decimal": ("uuid", Scalar("decimal", "decimal", 128), set()),  # type: ignore[arg-type]
}
"""Types that were never there: the type whose place they take, their record, and the targets that can express them."""


def renamed(thing: Any, before: str, after: str) -> Any:
    """Return a model in which a type has another name."""
    if isinstance(thing, str):
        return after if thing == before else thing
    if isinstance(thing, tuple):
        return tuple([renamed(part, before, after) for part in thing])
    if isinstance(thing, Mapping):
        return {key: renamed(part, before, after) for key, part in thing.items()}
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        changed = {
            f.name: renamed(getattr(thing, f.name), before, after)
            for f in dataclasses.fields(thing)
            if f.init
        }
        return dataclasses.replace(thing, **changed)
    return thing


def model_with(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Model:
    before, record, _ = UNKNOWN[name]
    monkeypatch.setitem(scalars.SCALARS, name, record)
    model: Model = renamed(model_of(text.replace("TYPE", before)), before, name)
    assert f"'{name}'" in repr(model)
    return model


def view_of(field: str, column: str = "{type: int16}", value: str = "tail", write: str = "") -> str:
    words = {"FIELD": field, "COLUMN": column, "VALUE": value, "WRITE": write}
    return re.sub("|".join(words), lambda match: words[match[0]], VIEW)


TEMPLATE = {"types.txt.j2": "types\n"}
"""What the target of the user's own templates needs. It tells them all facts of a type, and refuses none."""


CASES = [
    ("i40", "TYPE", "{type: int64}", "n"),
    ("i40", "{array: TYPE, count: u8}", "{list: int64}", "n"),
    ("i40", "{array: u8, count: TYPE}", "{type: int16}", "tail"),
    ("i40", "{bytes: TYPE}", "{type: int16}", "tail"),
    ("i40", "{string: TYPE}", "{type: string}", "n"),
    ("i40", "{array: {bytes: TYPE}, count: u8}", "{type: int16}", "tail"),
    ("i40", "{bits: TYPE, members: {low: {at: 0}, others: {reserved: keep}}}", "{type: bool}", "n.low"),
    ("u40", "TYPE", "{type: int64}", "n"),
    ("u40", "{bytes: TYPE}", "{type: int16}", "tail"),
    ("u40", "{string: TYPE}", "{type: string}", "n"),
    ("uvarint48", "TYPE", "{type: int16}", "tail"),
    ("uvarint48", "{bytes: TYPE}", "{type: binary}", "n"),
    ("f16", "TYPE", "{type: float}", "n"),
    ("f16", "{array: TYPE, count: u8}", "{list: float}", "n"),
    ("decimal", "TYPE", "{type: uuid}", "n"),
    ("decimal", "{array: TYPE, count: u8}", "{list: uuid}", "n"),
]  # fmt: skip
"""Types, fields that need them, and columns that make kernels read the field."""


@pytest.mark.slow
@pytest.mark.share(5)
@pytest.mark.parametrize("target", [*TARGETS.values(), *ON_REQUEST.values()], ids=lambda t: t.name)
@pytest.mark.parametrize(("name", "field", "column", "value"), CASES)
def test_targets_refuse_what_they_cannot_express(
    name: str,
    field: str,
    column: str,
    value: str,
    target: Target,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A target is tested because it is in the registry, and may take a type only if `UNKNOWN` names it."""
    plan = make_plan(model_with(name, view_of(field, column, value), monkeypatch))
    emitted = target(plan, TEMPLATE if target.name == "template" else {})
    findings = (*emitted.diagnostics, *emitted.notes)
    _, _, able = UNKNOWN[name]
    if target.name in able | {"kaitai", "template"}:
        assert emitted.files and not findings
        left_out = [line for line in emitted.warnings if "entry: .ksy leaves out n: it" in line]
        assert len(left_out) == (target.name == "kaitai" and "kaitai" not in able)
        return
    (refused,) = findings
    assert refused.code == "C023" and not (emitted.diagnostics and emitted.files)
    assert re.fullmatch(rf'"n" is .*\b{name}, which .* cannot express', refused.message)


@pytest.mark.parametrize("name", ["i40", "u40"])
@pytest.mark.parametrize("order", ["big", "little"])
def test_construct_reads_and_writes_integers_of_any_size(
    name: str, order: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = f"layout: entry\nendian: {order}\nfields: {{n: TYPE, many: {{array: TYPE, count: u8}}}}"
    model = model_with(name, text, monkeypatch)
    assert run(model) == []
    (tmp_path / "example_codecs").mkdir()
    for path, source in construct.emit(make_plan(model)).files.items():
        (tmp_path / path).write_text(source, "utf-8")
    for module in [m for m in sys.modules if m.partition(".")[0] == "example_codecs"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.syspath_prepend(tmp_path)
    codec: Any = importlib.import_module("example_codecs.case").ENTRY
    size, signed = SCALARS[name].width, SCALARS[name].signed
    high = (1 << 8 * size - signed) - 1
    numbers = [0, 1, high, -high - 1 if signed else 0x0102030405]
    for number in numbers:
        data = number.to_bytes(size, order, signed=signed) + b"\1" + bytes(size)
        assert codec.build({"n": number, "many": [0]}) == data
        assert codec.fast_path is not None
        assert codec.parse(data) == {"n": number, "many": [0]}
        with without_fast_paths():
            assert codec.parse(data) == {"n": number, "many": [0]}
    for module in [m for m in sys.modules if m.partition(".")[0] == "example_codecs"]:
        del sys.modules[module]


@pytest.mark.parametrize("name", ["i40", "decimal"])
def test_readers_pass_over_what_no_column_asks_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    emitted = arrow.emit(make_plan(model_with(name, view_of("TYPE"), monkeypatch)))
    assert emitted.notes == emitted.diagnostics == ()
    texts = {path.rpartition("/")[2]: text for path, text in emitted.files.items()}
    modules: dict[str, Any] = {}
    for file in ("rows.py", "rows_numpy.py"):
        exec(texts[file], modules)
    view = modules["ROWS"]
    decoder = Decoder(view, view.columns, kernels=SimpleNamespace(**modules))  # type: ignore[arg-type]
    size = SCALARS[name].width
    data = b"".join(
        struct.pack(f">BI{size}sB", 1, size + 1, b"\xff" * size, tail) for tail in (7, 200)
    )
    chunk = Chunk(len(data))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    (found,) = decoder.decode(chunk, 0)
    assert isinstance(found, Rows)
    assert found.batch.to_pylist() == [{"c": 7}, {"c": 200}]


def test_rows_that_kernels_cannot_write_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    text = view_of("TYPE", "{type: int16}", "tail", ", write: {entry: {n: c, tail: c}}")
    text = text.replace("tail: u8}", "tail: i8}")
    emitted = arrow.emit(make_plan(model_with("i40", text, monkeypatch)))
    (refused,) = emitted.diagnostics
    assert emitted.files == {}
    assert refused.message == '"n" is a number of 5 bytes, which target arrow cannot express'
