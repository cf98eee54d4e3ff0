"""The template set kaitai: Kaitai's own compiler takes it, and what it makes reads the samples as our codecs do.

The compiler is the npm package kaitai-struct-compiler, looked for in the folder that KAITAI_STRUCT_COMPILER names and in
node_modules; its Python output needs the package kaitaistruct.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from codecgen.cli import GOOD, main
from codecgen.plan import make_plan
from codecgen.schema.loader import load, read_files
from codecgen.targets.live_codecs import load_codecs
from codecgen.targets.target_output import Emitted
from codecgen.targets.template import emit_kaitai
from codecgen.targets.template.build import build
from kafka_codecs import MESSAGE_V0, MESSAGE_V1, RECORD_BATCH
from tests.codecgen.schemas import model_of, our_model
from tests.codecgen.targets.docs.doc_pages import MAIL
from tests.paths import ROOT, SAMPLES, SCHEMAS
from tests.support.hostile_texts import hostile
from tests.support.language_blocks import BLOCKS, model_of_block

COMPILE = ROOT / "tests" / "data" / "kaitai" / "compile.js"
LOGS = sorted(SAMPLES.rglob("*.log"))


@cache
def ours() -> Emitted:
    return emit_kaitai(make_plan(our_model()), {})


def specifications(emitted: Emitted) -> dict[str, Any]:
    assert not emitted.diagnostics
    return {Path(path).stem: yaml.safe_load(text) for path, text in emitted.files.items()}


# ---------------------------------------------------------------- without the compiler


@pytest.mark.slow
def test_a_specification_for_each_version() -> None:
    layouts = build(make_plan(our_model())).layouts
    names = {version.name for layout in layouts for version in layout.versions}
    assert set(specifications(ours())) == names | {"base128_number"}
    assert {"record_batch", "message_v0", "message_v1", "record"} < names


@pytest.mark.slow
def test_ids_are_those_of_the_schema() -> None:
    found = specifications(ours())["record_batch"]
    assert [entry["id"] for entry in found["seq"]] == [
        "base_offset",
        "batch_length",
        "after_batch_length",
    ]
    inner = found["types"]["after_batch_length"]["seq"]
    assert [entry["id"] for entry in inner][:4] == [
        "partition_leader_epoch",
        "magic",
        "crc",
        "attributes",
    ]
    assert {name: value["id"] for name, value in found["enums"]["compression"].items()} == {
        0: "none",
        1: "gzip",
        2: "snappy",
        3: "lz4",
        4: "zstd",
    }


def test_what_is_left_out_is_listed_in_the_file_and_by_warnings() -> None:
    words = "records: it may be compressed, as attributes.compression says"
    assert f"# - {words}\n" in ours().files["kaitai/record_batch.ksy"]
    assert any(
        re.fullmatch(
            rf"records/record_batch\.yaml:\d+: record_batch: \.ksy leaves out {words}", line
        )
        for line in ours().warnings
    )
    listed = [
        line
        for text in ours().files.values()
        for line in text.splitlines()
        if line.startswith("# - ")
    ]
    assert sorted(listed) == sorted(
        "# - " + line.partition(" leaves out ")[2] for line in ours().warnings
    )


@pytest.mark.slow
def test_the_command_line_says_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert main(["generate", str(SCHEMAS), "--out", out, "--targets", "kaitai"]) == GOOD
    shown = capsys.readouterr()
    assert "codecgen: warning: records/record_batch.yaml:" in shown.err
    assert (tmp_path / "out" / "kaitai" / "record_batch.ksy").is_file()


def test_a_hostile_schema_stays_in_its_quotes() -> None:
    model, _ = load(hostile())
    assert model is not None
    found = specifications(emit_kaitai(make_plan(model), {}))["thing_v1"]
    assert set(found) == {"meta", "doc", "seq", "types", "enums"}
    assert found["doc"].startswith("<b>x</b> ![p](https://evil.example/p.png)")


# ---------------------------------------------------------------- with the compiler


def compiler() -> Path:
    named = os.environ.get("KAITAI_STRUCT_COMPILER")
    found = Path(named) if named else ROOT / "node_modules" / "kaitai-struct-compiler"
    if named and not found.is_dir():
        pytest.fail(f"KAITAI_STRUCT_COMPILER names {named}, which is no folder")
    if not found.is_dir() or shutil.which("node") is None:
        pytest.skip("needs node, and kaitai-struct-compiler from npm (or KAITAI_STRUCT_COMPILER)")
    return found.absolute()


def compiled(language: str, emitted: Emitted) -> dict[str, str]:
    given = {"language": language, "specifications": specifications(emitted)}
    done = subprocess.run(
        ["node", str(COMPILE), str(compiler())],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@cache
def modules(emit: Any = ours) -> dict[str, ModuleType]:
    """The compiler's Python, imported."""
    pytest.importorskip("kaitaistruct")
    emitted = emit()
    with tempfile.TemporaryDirectory() as folder:
        files = compiled("python", emitted)
        for name, text in files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        names = [name.removesuffix(".py") for name in files]
        sys.path.insert(0, folder)
        try:
            return {name: importlib.import_module(name) for name in names}
        finally:
            sys.path.remove(folder)
            for name in names:
                sys.modules.pop(name, None)


def parsed(name: str, data: bytes, emit: Any = ours) -> Any:
    """What the compiler's Python makes of bytes, all of which it takes."""
    found = modules(emit)[name]
    cls = getattr(found, "".join(part.capitalize() for part in name.split("_")))
    return cls.from_bytes(data)


@pytest.mark.slow
@pytest.mark.share(ci=5)
@pytest.mark.parametrize("language", ["java", "rust", "cpp_stl", "go", "javascript"])
def test_the_compiler_takes_them_all(language: str) -> None:
    assert len(compiled(language, ours())) >= len(ours().files)


def test_counts_that_differ_and_counts_from_outside() -> None:
    text = """\
layout: fence
fields:
  posts: u16
  rails: {array: u8, count: posts - 1}
  gates: {array: u8, count: posts + 2}
  corners: {array: corner, count: u8, given: {posts: posts}}
---
layout: corner
given: {posts: u16}
fields: {angle: u8, heights: {array: u8, count: posts}}
"""
    files = emit_kaitai(make_plan(model_of_block(text)), {}).files
    counts = re.findall("repeat-expr: (.*)", files["kaitai/fence.ksy"])
    assert counts == ["posts - 1", "posts + 2", "num_corners"]
    assert "repeat" not in files["kaitai/corner.ksy"]
    assert "# - heights: the layout is given posts" in files["kaitai/corner.ksy"]


LETTER = """\
layout: letter
fields:
  size: u8
  text: {string: size - 2}
  more: i8
  tail: {bytes: more + 1}
  all: {type: u8, measures: {from: number}}
  number: uvarint
  data: {bytes: number - 1}
  width: u8
  stamps: {array: stamp, count: u8, given: {size: width}}
---
layout: stamp
given: {size: u8}
fields: {value: u8, mark: {bytes: size - 1}, ink: u8}
---
layout: sign
fields: {size: u8, word: {string: size - 1, const: abc}}
"""


@cache
def letter() -> Emitted:
    return emit_kaitai(make_plan(model_of_block(LETTER)), {})


def test_lengths_that_differ_and_lengths_from_outside() -> None:
    files = letter().files
    sizes = re.findall("size: (.*)", files["kaitai/letter.ksy"])
    assert sizes == ["size - 2", "more + 1", "all", "number.unsigned - 1"]
    assert "after_size" not in files["kaitai/letter.ksy"]
    assert "size" not in files["kaitai/stamp.ksy"].partition("seq:")[2]
    left_out = files["kaitai/stamp.ksy"].partition("meta:")[0]
    assert "# - mark: the layout is given size, the number of its bytes\n" in left_out
    assert "# - ink: it comes after that\n" in left_out
    assert "# - word: it always holds the same, and size says" in files["kaitai/sign.ksy"]


@pytest.mark.slow
def test_lengths_that_differ_are_read_as_they_are_written() -> None:
    found = parsed("letter", bytes.fromhex("04 6869 01 0a0b 05 03 cccd 07 00"), letter)
    assert (found.text, found.tail, found.all) == ("hi", b"\x0a\x0b", 5)
    assert (found.after_all.data, found.after_all.stamps) == (b"\xcc\xcd", [])


@pytest.mark.slow
@pytest.mark.soak
def test_the_compiler_takes_other_schemas() -> None:
    """Those of the language page, with every key that there is, and those of an invented format."""
    mail, _ = load(read_files(MAIL))
    assert mail is not None
    models = [mail, *(model_of_block(text) for _, text in BLOCKS)]
    for model in models:
        emitted = emit_kaitai(make_plan(model), {})
        assert len(compiled("python", emitted)) == len(emitted.files)
    assert len(models) > 10


def entries(log: Path) -> Iterator[tuple[int, bytes]]:
    """The entries of a segment with their magic, by hand: a segment of zeros or a torn one ends early."""
    data = log.read_bytes()
    at = 0
    while at + 17 <= len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        if size < 26 or at + size > len(data):
            return
        yield data[at + 16], data[at : at + size]
        at += size


def same(theirs: Any, mine: Any, names: list[str]) -> None:
    for name in names:
        assert getattr(theirs, name) == mine[name], name


def same_bits(theirs: Any, mine: Any) -> None:
    for name in mine:
        found = getattr(theirs, name)
        assert int(getattr(found, "value", found)) == int(mine[name]), name


@pytest.mark.soak
def test_batch_headers_of_the_samples_are_read_as_ours() -> None:
    count = 0
    for log in LOGS:
        for magic, data in entries(log):
            if magic != 2:
                continue
            mine, theirs = RECORD_BATCH.parse(data), parsed("record_batch", data)
            same(theirs, mine, ["base_offset", "batch_length"])
            inner = theirs.after_batch_length
            fixed = [name for name in mine if name not in ("base_offset", "batch_length")]
            same(inner, mine, [n for n in fixed if n not in ("attributes", "records")])
            same_bits(inner.attributes, mine["attributes"])
            count += 1
    assert count > 100


@pytest.mark.slow
def test_old_messages_of_the_samples_are_read_as_ours() -> None:
    seen = set()
    for log in LOGS:
        for magic, data in entries(log):
            if magic == 2:
                continue
            codec, name = (MESSAGE_V0, "message_v0") if magic == 0 else (MESSAGE_V1, "message_v1")
            mine, theirs = codec.parse(data), parsed(name, data)
            inner = theirs.after_message_size
            same(theirs, mine, ["offset", "message_size"])
            same(inner, mine, ["crc", "magic"] + ["timestamp"] * magic)
            assert getattr(inner, "key", None) == mine["key"]
            same_bits(inner.attributes, mine["attributes"])
            seen.add((magic, mine["key"] is None))
    assert seen >= {(0, True), (1, True), (0, False), (1, False)}


@pytest.mark.slow
def test_records_with_their_varints_are_read_as_ours() -> None:
    count = 0
    for log in LOGS:
        for magic, data in entries(log):
            if magic != 2 or RECORD_BATCH.parse(data)["attributes"]["compression"] != 0:
                continue
            mine = RECORD_BATCH.parse(data)["records"]
            rest = data[61:]
            for record in mine:
                theirs = parsed("record", rest)
                assert theirs.length.signed == record["length"]
                inner = theirs.after_length
                assert inner.timestamp_delta.signed == record["timestamp_delta"]
                assert inner.offset_delta.signed == record["offset_delta"]
                assert getattr(inner, "key", None) == record["key"]
                assert getattr(inner, "value", None) == record["value"]
                headers = [(h.key, getattr(h, "value", None)) for h in inner.headers]
                assert headers == [(h["key"], h["value"]) for h in record["headers"]]
                rest = rest[len(theirs.length.groups) + record["length"] :]
                count += 1
            assert rest == b""
    assert count > 100


SMALL = """
enums:
  colour: {values: {red: 1, blue: 2}}
---
layout: every
endian: little
fields:
  a: u8
  b: {type: i16, enum: colour}
  c: {bits: u16, members: {low: {at: 0-2}, flag: {at: 5}, mid: {at: 6-8}, high: {at: 9-15}, unused: {reserved: keep}}}
  d: f64
  e: uuid
  f: {type: bool}
  g: {bytes: 3}
  h: {string: u16, none: 65535}
  i: {bytes: compact, none: 0}
  j: {array: u16, count: u8}
  k: {array: point, count: compact}
  ids: {array: uuid, count: u8}
  n: {type: u16, counts: xs}
  l: {type: u16, measures: rest}
  xs: {array: i32}
  m: {layout: point}
  z: {bytes: rest}
---
layout: point
endian: little
fields: {x: varint, y: uvarlong}
"""


def small() -> Emitted:
    return emit_kaitai(make_plan(model_of(SMALL)), {})


@pytest.mark.slow
def test_every_kind_of_field() -> None:
    found, _ = load_codecs(make_plan(model_of(SMALL)))
    assert found is not None
    plan = make_plan(model_of(SMALL)).versions["every"][0]
    value = {
        "a": 200,
        "b": 2,
        "c": {"low": 5, "flag": True, "mid": 0, "high": 100, "unused": 0},
        "d": 1.5,
        "e": uuid.UUID(int=7),
        "f": True,
        "g": b"abc",
        "h": "hé",
        "i": None,
        "j": [1, 65535],
        "k": [{"x": -5, "y": 300}, {"x": 2**31 - 1, "y": 2**64 - 1}],
        "ids": [uuid.UUID(int=1), uuid.UUID(int=2**127)],
        "xs": [-1, 5],
        "m": {"x": 0, "y": 0},
        "z": b"tail",
    }
    data = found.layout(plan).build(value)
    theirs = parsed("every", data, small)
    assert (theirs.a, theirs.b.value, theirs.d, theirs.f) == (200, 2, 1.5, 1)
    assert (theirs.c.low, theirs.c.flag, theirs.c.high) == (5, True, 100)
    assert (theirs.e, theirs.g, theirs.h) == (uuid.UUID(int=7).bytes, b"abc", "hé")
    assert getattr(theirs, "i", None) is None
    assert list(theirs.j) == [1, 65535]
    assert list(theirs.ids) == [uuid.UUID(int=1).bytes, uuid.UUID(int=2**127).bytes]
    assert [(p.x.signed, p.y.unsigned) for p in theirs.k] == [(-5, 300), (2**31 - 1, 2**64 - 1)]
    inner = theirs.after_l
    assert list(inner.xs) == [-1, 5]
    assert (inner.m.x.signed, inner.z) == (0, b"tail")
