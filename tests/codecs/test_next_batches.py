"""Batches of a next version of the log format, each written as the author of a KIP would: YAML alone."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from codecgen.check import run
from codecgen.plan import make_plan
from codecgen.runtime.fast_path import without_fast_paths
from codecgen.schema import loader
from codecgen.targets.live_codecs import load_codecs
from codecgen.targets.registry import TARGETS
from tests.codecs.next_batches import MAGIC, add_batch
from tests.codecs.tree import Tree
from tests.paths import NEXT_BATCHES, ROOT
from tests.support.drawn_codecs import PACKAGE, read_log_schemas

NAMES = ["flagged", "columnar", "dictionary"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_codecs(name: str, package: Path) -> None:
    """The schemas have no findings, so that the examples hold, and each codec compresses the batch."""
    schemas = package / "schemas"
    shutil.copytree(ROOT / "schemas", schemas)
    add_batch(name, schemas)
    model, found = loader.load(read_log_schemas(schemas))
    assert model is not None and found == [] and run(model) == []
    for path, text in TARGETS["construct"](make_plan(model)).files.items():
        file = package / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    codecs: Any = importlib.import_module(PACKAGE)
    for example in model.layouts[f"{name}_batch"].examples:
        assert example.data is not None
        batch = codecs.LOG_ENTRY.parse(example.data)
        with without_fast_paths():
            assert repr(codecs.LOG_ENTRY.parse(example.data)) == repr(batch)
        assert batch.magic == MAGIC
        for codec in codecs.Compression:
            batch.attributes.compression = codec
            data = codecs.LOG_ENTRY.build(batch)
            again = codecs.LOG_ENTRY.parse(data)
            assert again.records == batch.records


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "compiled"),
    [("dictionary", False), *(pytest.param(name, True, marks=pytest.mark.soak) for name in NAMES)],
)
def test_all_commands_read_and_write_it(
    name: str, compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CI runs the kernels of the versions that we have as plain Python: they have no part in this one."""
    pytest.importorskip("numba")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", str(int(not compiled)))
    tree = Tree(tmp_path / "tree")
    add_batch(name, tree.root / "schemas")
    tree.run("codecgen", "generate", "schemas", "--out", "generated")
    work = tmp_path / "work"
    work.mkdir()
    out = tree.run("python", "-m", "tests.codecs.use_next_batch", name, str(work))
    assert out.splitlines()[-1] == "all of it"


CHANGES = {
    "dictionary_header.yaml": [
        ("names[name_index]", "names[name_index + 1]"),
        ("names[name_index]", "names[0]"),
        ("type: uvarint", "type: varint"),
        ("type: uvarint", "type: u8, valid: name_index < 1"),
        ("bytes: varint", "bytes: uvarint"),
        (", none: -1", ""),
        ("is: ", "versions: 0, is: "),
    ],
    "dictionary_record.yaml": [
        ("given: {names: names}\n    ", ""),
        ("count: varint", "count: uvarint"),
        ("names: {array: string}", "names: {array: bytes}"),
    ],
    "dictionary_batch.yaml": [
        ("given: {names: header_names}", "given: {}"),
        ("array: {string: uvarint}", "array: {string: varint}"),
        ("array: {string: uvarint}", "array: {bytes: uvarint}"),
        ("count: uvarint", "count: varint"),
        ("counts: records", "counts: header_names"),
        ("covers: {from: attributes}", "covers: {from: attributes, to: record_count}"),
    ],
}
"""Facts of the dictionary batch that are changed, one at a time."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new"), [(file, *change) for file, some in CHANGES.items() for change in some]
)
def test_changed_facts_are_noticed(file: str, old: str, new: str) -> None:
    files, path = dictionary_files(), f"records/{file}"
    assert noticed(files) == ""
    assert old in files[path]
    assert noticed(files | {path: files[path].replace(old, new, 1)})


def dictionary_files() -> dict[str, str]:
    """The layouts of the dictionary batch alone, and what they need."""
    own = (NEXT_BATCHES / "dictionary" / "records").glob("*.yaml")
    files = {f"records/{path.name}": path.read_text("utf-8") for path in own}
    files["records/enums.yaml"] = (ROOT / "schemas" / "records" / "enums.yaml").read_text("utf-8")
    manifest = (ROOT / "schemas" / "codecgen.yaml").read_text("utf-8")
    return files | {"codecgen.yaml": manifest}


def noticed(files: dict[str, str]) -> str:
    """What is wrong with the dictionary batch: a finding, or other names of headers."""
    model, found = loader.load(files)
    found = found or run(model) if model is not None else found
    if found or model is None:
        return str(found)
    example = model.layouts["dictionary_batch"].examples[0]
    codecs, _ = load_codecs(make_plan(model))
    assert codecs is not None and example.data is not None
    batch = codecs.module("records/dictionary_batch.yaml").DICTIONARY_BATCH.parse(example.data)
    keys = [[header.key for header in record.headers] for record in batch.records]
    return "" if keys == [["source", "trace"], ["source"]] else f"the names are {keys}"
