"""What generated stubs say of Kafka's formats is so: of every example, every message of Kafka's own topics, every segment and
file of the samples and of the reference vectors. Mypy and stubtest read the stubs too."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import kafka_codecs
from codecgen.examples.text_trial import TriedText, try_text
from codecgen.examples.trial import Tried, try_example
from codecgen.plan import make_plan
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.targets.construct.homes import module_path, symbol
from codecgen.targets.live_codecs import load_codecs
from kafka_codecs import LOG_ENTRY, META_PROPERTIES
from tests.brokers.message_shapes import codec, layout_of, prefix
from tests.codecgen.schemas import our_model
from tests.laws.stub_types import Stubs
from tests.paths import ROOT, SAMPLES, VECTORS
from tests.support.topic_messages import MESSAGES, VERSIONS

GENERATED = ROOT / "generated"
LARGE = 1 << 17
PACKAGES = sorted(
    f"kafka_codecs.{path.name}"
    for path in (GENERATED / "kafka_codecs").iterdir()
    if any(path.glob("*.pyi"))
)


@pytest.fixture(scope="module")
def stubs() -> Stubs:
    files = GENERATED.rglob("*.pyi")
    return Stubs(
        {path.relative_to(GENERATED).as_posix(): path.read_text("utf-8") for path in files}
    )


def entries(path: Path) -> Iterator[object]:
    """The entries of a segment that a strict parser takes, up to the first that has no frame."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        try:
            size = LOG_ENTRY.frame(Source(data, Session(), pos=at))
        except CodecError:
            return
        if not size:
            return
        try:
            yield LOG_ENTRY.parse(data[at : at + size])
        except CodecError:
            pass
        at += size


@pytest.mark.slow
def test_examples_are_of_their_types(stubs: Stubs) -> None:
    plan = make_plan(our_model())
    codecs, _ = load_codecs(plan)
    assert codecs is not None
    seen = 0
    for layout in plan.model.layouts.values():
        for example in layout.examples:
            tried = try_example(plan, codecs, layout, example)
            assert isinstance(tried, Tried)
            name = symbol(tried.plan.name, tried.plan.version)
            module = import_module(".".join(("kafka_codecs", *module_path(layout.span.file))))
            assert not stubs.wrong(name, getattr(module, name).parse(tried.data))
            seen += 1
    for text in plan.model.texts.values():
        for one in text.examples:
            found = try_text(codecs, text, one)
            assert isinstance(found, TriedText)
            name = symbol(text.name)
            assert not stubs.wrong(name, getattr(kafka_codecs, name).parse(found.data))
            seen += 1
    assert seen > 50


def test_messages_of_topics_are_of_their_types(stubs: Stubs) -> None:
    for name, version in VERSIONS:
        layout = codec(name, version)
        known = symbol(layout_of(name), layout.version)
        for example in MESSAGES[name]["examples"][str(version)]:
            data = prefix(name, version) + bytes.fromhex(example)
            assert not stubs.wrong(known, layout.parse(data)), known


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("root", [SAMPLES / "kafka-2.8", SAMPLES / "kafka-4.x", VECTORS])
def test_entries_of_segments_are_of_their_types(stubs: Stubs, root: Path) -> None:
    seen: set[str] = set()
    for path in sorted(p for p in root.rglob("*.log") if p.stat().st_size < LARGE):
        for entry in entries(path):
            assert not stubs.wrong("LOG_ENTRY", entry), path
            seen.add(type(entry).__name__)
    assert "RecordBatch" in seen


def test_properties_are_of_their_types(stubs: Stubs) -> None:
    paths = [*SAMPLES.rglob("meta.properties"), *VECTORS.rglob("meta.properties")]
    assert {path.parent.name for path in paths} >= {"kafka-2.8", "kafka-4.x"}
    for path in paths:
        assert not stubs.wrong("META_PROPERTIES", META_PROPERTIES.parse(path.read_bytes()))


def test_a_value_of_another_type_is_noticed(stubs: Stubs) -> None:
    entry = next(entries(next((SAMPLES / "kafka-4.x" / "codecs-0").glob("*.log"))))
    assert isinstance(entry, kafka_codecs.RecordBatch)
    assert not stubs.wrong("RECORD_BATCH", entry)
    for field, value in {"magic": 1, "crc": None, "attributes": {}, "records": None}.items():
        changed = entry.copy()
        changed[field] = value
        assert field in stubs.wrong("RECORD_BATCH", changed)
    entry.records[0]["key"] = "text"
    assert "records[0].key" in stubs.wrong("RECORD_BATCH", entry)


def test_the_code_of_the_page_runs() -> None:
    page = (ROOT / "docs" / "parse-and-build.md").read_text("utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S))
    names: dict[str, Any] = {}
    exec(code, names)
    batch = {"key": b"k", "value": None, "headers": []}
    data = kafka_codecs.RECORD_BATCH.build({"records": [batch, {**batch, "key": None}]})
    assert names["count"](data) == 2
    assert names["keys"](LOG_ENTRY.parse(data)) == [b"k"]
    assert names["codec"](LOG_ENTRY.parse(data)) is kafka_codecs.Compression.NONE
    assert isinstance(LOG_ENTRY.parse(data), kafka_codecs.LogEntry)


BUILT = """\
from kafka_codecs import LOG_ENTRY, MESSAGE_V0, RECORD_BATCH, PRODUCER_SNAPSHOT_V1, Compression

RECORD_BATCH.build({"records": [{"key": b"k", "value": b"v"}]})
RECORD_BATCH.build({"records": [{"offset": 7, "timestamp": 1700000000000, "headers": [{"key": "h", "value": None}]}]})
RECORD_BATCH.build({"attributes": {"compression": "gzip"}, "base_offset": 5}, level=9)
RECORD_BATCH.build({"attributes": {"compression": Compression.GZIP, "is_control": True}}, strict=False)
parsed = RECORD_BATCH.parse(b"")
RECORD_BATCH.build(parsed)
RECORD_BATCH.build({"attributes": parsed.attributes, "records": parsed.records})
LOG_ENTRY.build({"magic": 0, "offset": 3, "key": None, "value": b"v"})
LOG_ENTRY.build(LOG_ENTRY.parse(b""))
PRODUCER_SNAPSHOT_V1.build({"entries": []})
RECORD_BATCH.build({"recrods": []})  # wrong
RECORD_BATCH.build({"records": [{"key": "text"}]})  # wrong
RECORD_BATCH.build({"records": [{"ofset": 7}]})  # wrong
RECORD_BATCH.build({"attributes": {"is_control": "yes"}})  # wrong
RECORD_BATCH.build({"base_offset": None})  # wrong
RECORD_BATCH.build(b"")  # wrong
MESSAGE_V0.build({"timestamp": 1})  # wrong
MESSAGE_V0.build(parsed)  # wrong
"""


WRONG = [i for i, line in enumerate(BUILT.splitlines(), 1) if line.endswith("# wrong")]


@pytest.mark.slow
def test_mypy_checks_what_is_built(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(BUILT, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": f"{GENERATED}{os.pathsep}{ROOT / 'generator'}"},
        capture_output=True,
        text=True,
    )
    found = re.findall(r"^program\.py:(\d+): error:", done.stdout, re.M)
    assert sorted({int(line) for line in found}) == WRONG, done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")
def test_pyright_checks_what_is_built(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(BUILT, "utf-8")
    config = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(GENERATED), str(ROOT / "generator")],
        "reportMissingModuleSource": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), "utf-8")
    done = subprocess.run(
        ["pyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    lines = {one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"}
    assert sorted(lines) == WRONG, done.stdout


@pytest.mark.slow
def test_stubs_and_modules_have_the_same_names(tmp_path: Path) -> None:
    """Mypy's stubtest compares them. Derived values are no attributes of the classes."""
    derived = {
        value.derived.name for values in make_plan(our_model()).derived.values() for value in values
    }
    allowed = tmp_path / "allowed"
    allowed.write_text(rf"kafka_codecs\..*\.({'|'.join(sorted(derived))})" + "\n", "utf-8")
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nignore_missing_imports = true\n", "utf-8")
    command = [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", str(config)]
    done = subprocess.run(
        [*command, "--allowlist", str(allowed), "--ignore-unused-allowlist", *PACKAGES],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{GENERATED}{os.pathsep}{ROOT / 'generator'}"},
        capture_output=True,
        text=True,
    )
    assert re.match(r"Success: no issues found in \d\d modules", done.stdout), done.stdout
