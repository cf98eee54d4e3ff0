"""A version of batches with two compressed sections, keys and values, by YAML alone: the codecs, the views and the commands."""

from __future__ import annotations

import importlib
import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from codecgen.check import run
from codecgen.diagnostics import Diagnostic
from codecgen.plan import make_plan
from codecgen.runtime.compression import CODECS
from codecgen.runtime.errors import (
    BuildError,
    ChecksumError,
    CodecError,
    CompressionError,
    LengthError,
    LimitError,
    ValueRefused,
)
from codecgen.runtime.fast_path import without_fast_paths
from codecgen.runtime.located_bytes import Limits, Session, Source
from codecgen.runtime.rows import Place
from codecgen.schema import loader
from codecgen.targets.registry import TARGETS
from pyspark_kafka_log.java import JavaNotFound, find_java
from tests.codecs.tree import Tree
from tests.codecs.two_sections import MAGIC, add_to
from tests.paths import ROOT

PACKAGE = "split_codecs"
COUNT = 5
KEYS = sum(len(f"k{i}") + 5 for i in range(COUNT))
"""Bytes of the keys of `VALUES`, decompressed."""
VALUES: dict[str, Any] = {
    "base_offset": 100,
    "base_timestamp": 1_700_000_000_000,
    "record_keys": [{"key": b"k%d" % i} for i in range(COUNT)],
    "record_values": [{"value": b"v" * 100} for _ in range(COUNT)],
}


def files(schemas: Path) -> dict[str, str]:
    """The log formats and their views alone, with the version."""
    found = {
        p.relative_to(schemas).as_posix(): p.read_text("utf-8") for p in schemas.rglob("*.yaml")
    }
    wanted = re.compile(r"codecgen\.yaml|records/.*|views/(batches|records)\.yaml")
    found = {name: text for name, text in found.items() if wanted.fullmatch(name)}
    del found["records/control_record_value.yaml"]  # what is in it lies elsewhere
    manifest = found["codecgen.yaml"].replace("kafka_codecs", PACKAGE)
    return found | {"codecgen.yaml": manifest}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    schemas = tmp_path_factory.mktemp("schemas") / "schemas"
    shutil.copytree(ROOT / "schemas", schemas)
    add_to(schemas)
    return files(schemas)


@pytest.fixture(scope="module")
def codecs(
    texts: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, Any, tuple[Diagnostic, ...]]]:
    """The package, its rows of the view records, and the notes of target arrow."""
    model, found = loader.load(texts)
    assert model is not None and found == [] and run(model) == []
    plan = make_plan(model)
    root = tmp_path_factory.mktemp("package")
    for name, text in TARGETS["construct"](plan).files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    sys.path.insert(0, str(root))
    try:
        package = importlib.import_module(PACKAGE)
        records = importlib.import_module(f"{PACKAGE}.rows.records").RECORDS
        yield package, records, TARGETS["arrow"](plan).notes
    finally:
        sys.path.remove(str(root))
        for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
            del sys.modules[name]


def built(codecs: Any, key_codec: str, value_codec: str, **more: Any) -> bytes:
    attributes = {"key_compression": key_codec, "value_compression": value_codec}
    values = VALUES | {"attributes": attributes} | more
    data: bytes = codecs[0].SPLIT_BATCH.build(values)
    with without_fast_paths():
        assert codecs[0].SPLIT_BATCH.build(values) == data
    return data


def parsed(codecs: Any, data: bytes, **options: Any) -> Any:
    """What the choice of entries parses, by the fast parser and field by field alike: the batch, or the error."""
    found: list[Any] = []
    for path in (nullcontext(), without_fast_paths()):
        with path:
            try:
                found.append(codecs[0].LOG_ENTRY.parse(data, **options))
            except CodecError as error:
                found.append(error)
    assert str(found[0]) == str(found[1])
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize(("key_codec", "value_codec"), [*itertools.product(CODECS, CODECS)])
def test_batches_are_parsed_as_they_were_built(
    codecs: Any, key_codec: str, value_codec: str
) -> None:
    data = built(codecs, key_codec, value_codec)
    batch = parsed(codecs, data)
    assert batch.magic == MAGIC and batch.record_count == batch.value_count == COUNT
    assert [key.offset for key in batch.record_keys] == [*range(100, 100 + COUNT)]
    assert [value.value for value in batch.record_values] == [b"v" * 100] * COUNT
    layout = codecs[0].SPLIT_BATCH
    assert layout.leading_size + batch.key_size + batch.value_size == len(data)
    assert layout.build(batch) == data
    wrong = bytearray(data)
    wrong[layout.offset_of("crc")] ^= 1
    assert isinstance(parsed(codecs, bytes(wrong)), ChecksumError)


def rows(codecs: Any, data: bytes, columns: list[str]) -> tuple[list[Any], Session]:
    layout, session = codecs[0].SPLIT_BATCH, Session()
    opened = layout.open(Source(data, session))
    return list(codecs[1].rows(layout, opened, Place(0, len(data)), columns)), session


def test_a_reader_of_keys_decompresses_no_values(codecs: Any) -> None:
    data = built(codecs, "lz4", "zstd")
    batch = codecs[0].SPLIT_BATCH.parse(data)
    keys, session = rows(codecs, data, ["offset", "key"])
    assert keys == [(100 + i, b"k%d" % i) for i in range(COUNT)]
    assert session.section == (batch.key_size, KEYS)
    both, session = rows(codecs, data, ["key", "value"])
    assert both == [(b"k%d" % i, b"v" * 100) for i in range(COUNT)]
    assert session.section == (batch.key_size + batch.value_size, KEYS + 102 * COUNT)


@pytest.mark.parametrize(("section", "at"), [("record_keys", 8), ("record_values", 30)])
def test_damage_is_located_in_its_section(codecs: Any, section: str, at: int) -> None:
    """Section and byte. The keys of a batch with damaged values are read."""
    layout = codecs[0].SPLIT_BATCH
    data = bytearray(built(codecs, "gzip", "gzip"))
    size = int.from_bytes(data[layout.offset_of("key_size") :][:4], "big")
    start = layout.leading_size + (size if section == "record_values" else 0)
    end = layout.leading_size + size if section == "record_keys" else len(data)
    data[end - 6] ^= 0xFF  # of the checksum at the end of the stream
    crc = layout.by_name["crc"].checksum(bytes(data[layout.offset_of("attributes") :]))
    data[layout.offset_of("crc") : layout.offset_of("crc") + 4] = crc.to_bytes(4, "big")
    error = parsed(codecs, bytes(data))
    assert isinstance(error, CompressionError)
    assert str(error.where.path).startswith(section)
    assert error.where.position == start
    assert error.where.stream_position is not None and error.where.stream_position >= at
    if section == "record_values":
        assert len(rows(codecs, bytes(data), ["key"])[0]) == COUNT
        with pytest.raises(CompressionError):
            rows(codecs, bytes(data), ["key", "value"])


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_sections_are_bounded_alone_and_together(codecs: Any, codec: str) -> None:
    data = built(codecs, codec, codec)
    whole = KEYS + 102 * COUNT
    assert len(parsed(codecs, data, limits=Limits(decompressed=whole)).record_keys) == COUNT
    for limit, section in ((KEYS - 1, "record_keys"), (whole - 1, "record_values")):
        error = parsed(codecs, data, limits=Limits(decompressed=limit))
        assert isinstance(error, LimitError)
        assert str(error.where.path).startswith(section)
    # Each batch has the limit anew.
    session = Session(limits=Limits(decompressed=whole))
    for _ in range(3):
        assert codecs[0].SPLIT_BATCH.read(Source(data, session), None).record_count == COUNT


def test_there_is_a_value_for_each_key(codecs: Any) -> None:
    with pytest.raises(BuildError, match="value_count"):
        built(codecs, "none", "none", record_values=[])
    layout = codecs[0].SPLIT_BATCH
    data = bytearray(built(codecs, "none", "none"))
    at = layout.offset_of("value_count")
    data[at : at + 4] = (COUNT - 1).to_bytes(4, "big")
    error = parsed(codecs, bytes(data), strict=False)
    assert isinstance(error, ValueRefused) and error.where.path == "value_count"


def test_rows_end_with_the_shorter_array(codecs: Any) -> None:
    """If a layout does not refuse other numbers, rows do, after those that are whole."""
    layout, view = codecs[0].SPLIT_BATCH, codecs[1]
    for short, there, message in (
        ("record_keys", 2, "record_keys has 2 elements, and record_values has more"),
        ("record_values", 3, "record_values has 3 elements, and record_keys has more"),
    ):
        opened = layout.open(Source(built(codecs, "none", "none"), Session()))
        opened.fields["record_values"] = list(opened.items)
        del opened.fields[short][there:]
        found = view.rows(layout, opened, Place(0, 0), ["key", "value"])
        assert len(list(itertools.islice(found, there))) == there
        with pytest.raises(LengthError, match=message):
            next(found)


def test_kernels_leave_the_layout_to_the_reference_codecs(codecs: Any) -> None:
    (note,) = [note for note in codecs[2] if note.code == "C023"]
    assert "record_keys" in note.message and "several arrays" in note.message
    assert '"split_batch"' in note.help and "reference codecs" in note.help


@pytest.mark.slow
@pytest.mark.parametrize(
    ("each", "message"),
    [
        ("[record_keys, record_count]", '"record_count" is not an array of "split_batch"'),
        ("[record_keys, record_keys]", '"record_keys" stands here twice'),
        ("record_keys", "record_keys"),
    ],
)
def test_arrays_that_rows_cannot_have(texts: dict[str, str], each: str, message: str) -> None:
    view = texts["views/records.yaml"].replace("[record_keys, record_values]", each)
    model, found = loader.load(texts | {"views/records.yaml": view})
    assert model is not None and found == []
    assert any(d.code in ("C032", "C014") and message in d.message for d in run(model))


def test_rows_of_several_arrays_are_not_written(texts: dict[str, str]) -> None:
    view = texts["views/records.yaml"].rstrip() + "\n    write:\n      entry: {base_offset: first(offset)}\n"  # fmt: skip
    model, _ = loader.load(texts | {"views/records.yaml": view})
    assert model is not None
    (found,) = run(model)
    assert found.code == "C032" and "several arrays" in found.message


# ------------------------------------------------------------ everything there is


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    pytest.importorskip("numba")
    tree = Tree(tmp_path_factory.mktemp("tree"))
    add_to(tree.root / "schemas")
    tree.run("codecgen", "generate", "schemas", "--out", "generated")
    return tree


@pytest.mark.slow
@pytest.mark.soak
def test_all_commands_read_it(tree: Tree, tmp_path: Path) -> None:
    out = tree.run("python", "-m", "tests.codecs.use_two_sections", str(tmp_path))
    assert out.splitlines()[-1] == "all of it"


@pytest.mark.soak
@pytest.mark.spark
def test_both_sources_of_spark_read_it(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    try:
        monkeypatch.setenv("JAVA_HOME", str(find_java(os.environ, tmp_path).home))
    except JavaNotFound as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    out = tree.run("python", "-m", "tests.codecs.use_two_sections", str(tmp_path), "spark")
    assert out.splitlines()[-1] == "all of it"
