"""docs/schema-language: its YAML is loaded, checked and generated, and its examples are parsed and built."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codecgen.cli import main
from codecgen.directories import load
from codecgen.plan import make_plan
from codecgen.runtime.arrow import payloads
from codecgen.runtime.compression import CODECS, Codec
from codecgen.schema import grammar
from codecgen.schema.model import TOLERANCES, Model
from codecgen.schema.texts import TEXT_TOLERANCES
from codecgen.targets.registry import TARGETS
from tests.codecgen.language import language_pages
from tests.codecgen.schemas import checked
from tests.support.language_blocks import BLOCKS, model_of_block


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("text", [text for _, text in BLOCKS], ids=[place for place, _ in BLOCKS])
def test_yaml_of_the_pages_works(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of_block(text)
    with imported(model, tmp_path, monkeypatch) as package:
        codecs = importlib.import_module(package)
        for layout in model.layouts.values():
            for example in layout.examples:
                version = example.version
                assert isinstance(example.value, dict)
                if layout.version_is is not None and version is None:
                    version = example.value[layout.version_is]
                name = layout.name.upper() + ("" if version is None else f"_V{version}")
                _agrees(getattr(codecs, name), example.data, example.value)


def test_formats_of_others_work_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [text for _, text in language_pages.blocks()]
    weather = [text for text in texts if text.startswith(("layout: reading\n", "enums:\n  sky:"))]
    [manifest] = [text for text in texts if text.startswith("# codecgen.yaml\n")]
    [other] = [text for text in texts if text.startswith("# codecgen.yaml of another directory\n")]
    [page] = [text for text in texts if "weather.reading" in text and text != other]
    directories = {"weather": [manifest, *weather], "logbook": [other, page]}
    for name, files in directories.items():
        (tmp_path / name).mkdir()
        for i, text in enumerate(files):
            file = f"part_{i}.yaml" if i else "codecgen.yaml"
            (tmp_path / name / file).write_text(text, encoding="utf-8")
        out = ["--out", str(tmp_path / "out"), "--targets", "construct,arrow"]
        assert main(["generate", str(tmp_path / name), *out]) == 0
    model, found, _ = load(tmp_path / "logbook")
    assert model is not None and not found
    [example] = model.layouts["page"].examples
    monkeypatch.syspath_prepend(str(tmp_path / "out"))
    try:
        codecs = importlib.import_module("logbook_codecs")
        _agrees(codecs.PAGE, example.data, example.value)
    finally:
        packages = ("weather_codecs", "logbook_codecs")
        for name in [name for name in sys.modules if name.split(".")[0] in packages]:
            del sys.modules[name]


def test_the_short_manifest_is_enough_for_the_first_layout() -> None:
    texts = [text for _, text in language_pages.blocks()]
    [manifest] = [text for text in texts if "with the required keys" in text]
    [layout] = [text for text in texts if text.startswith("layout: reading\n")]
    assert checked({"codecgen.yaml": manifest, "reading.yaml": layout}).layouts


@pytest.mark.parametrize(
    ("mark", "begin", "name", "expected"),
    [
        ("SAMPLES", "view: samples\n", "len(rows)", 1),
        ("SETTINGS", "text: settings\n", "found.interval", 20),
        ("PRICES", "view: prices\n", "found.end", 3),
        ("ARCHIVE_FILE", "layout: archive_file\n", "parts[0].temperature", 2100),
        ("parse_request", "message:", "request.header.client", "me"),
    ],
)
def test_python_of_the_pages_works(
    mark: str,
    begin: str,
    name: str,
    expected: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The Python code with ``mark`` runs with the package of the YAML that begins with ``begin``."""
    [code] = [code for _, code in language_pages.blocks("python") if mark in code]
    [block] = [text for _, text in BLOCKS if begin in text]
    monkeypatch.setattr(payloads, "load_kernels", lambda view: None)  # nothing need be compiled
    names: dict[str, Any] = {}
    with imported(model_of_block(block), tmp_path, monkeypatch):
        exec(code, names)
        assert eval(name, names) == expected


@contextmanager
def imported(model: Model, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the package that all targets make of a model; the modules are forgotten at the end."""
    write(model, root)
    monkeypatch.syspath_prepend(str(root))
    package = model.manifest.package
    try:
        yield package
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            del sys.modules[name]


def write(model: Model, root: Path) -> None:
    """What all targets make of a model."""
    plan = make_plan(model)
    for emit in TARGETS.values():
        emitted = emit(plan)
        assert not emitted.diagnostics
        for path, content in emitted.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content, encoding="utf-8")


@pytest.mark.parametrize("codec", CODECS.values(), ids=lambda codec: codec.name)
def test_the_page_has_every_codec_and_its_variants(codec: Codec) -> None:
    (row,) = (
        line
        for line in language_pages.FIELDS.read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| `{codec.name}` |") and line.count("|") == 5
    )
    written, read = (re.findall("`(.+?)`", cell) for cell in row.split("|")[3:5])
    assert tuple(written) == codec.write_variants
    assert tuple(read) == codec.read_variants


def _agrees(codec: Any, data: bytes | None, value: object) -> None:
    """The bytes parse to the values, and the values build the bytes."""
    built = codec.build(_ready(codec, value))
    if data is not None:
        assert built.hex() == data.hex()
    _same(codec.parse(built, given=value if isinstance(value, dict) else None), value, "")


def _ready(codec: Any, value: Any) -> Any:
    """The values as a builder takes them: text in the place of bytes is its UTF-8."""
    if not isinstance(value, dict):
        return value
    out = {}
    for name, item in value.items():
        given = codec.by_name.get(name)  # none for what builders take in the place of a field
        inner = None if given is None else given.codec
        element = getattr(inner, "element", None)
        if type(inner).__name__ == "Bytes" and isinstance(item, str):
            item = item.encode()
        elif isinstance(item, list) and hasattr(element, "by_name"):
            item = [_ready(element, one) for one in item]
        out[name] = item
    return out


def _same(parsed: Any, value: Any, path: str) -> None:
    match value:
        case dict():
            # What builders take in the place of fields is compared by the check of examples.
            there = {name: item for name, item in value.items() if name in parsed}
            assert there or path
            for name, item in there.items():
                _same(parsed[name], item, f"{path}.{name}")
        case list():
            assert len(parsed) == len(value), path
            for i, item in enumerate(value):
                _same(parsed[i], item, f"{path}[{i}]")
        case str() if isinstance(parsed, bytes):
            assert parsed.decode() == value, path
        case str() if hasattr(parsed, "label"):
            assert value in (parsed.label, parsed.name.lower()), path
        case _:
            assert parsed == value, path


def test_the_reference_is_current() -> None:
    assert language_pages.REFERENCE.read_text(encoding="utf-8") == language_pages.reference()


def test_every_key_and_freedom_is_shown_in_yaml() -> None:
    """A table is no lesson: every key stands in a block too."""
    shown = "\n".join(text for _, text in language_pages.blocks())
    keys = {key for form in grammar.FORMS.values() for key in form.keys}
    missing = [
        key
        for key in [*keys, *TOLERANCES, *TEXT_TOLERANCES]
        if not re.search(rf"\b{key}:", shown) and key not in {**TOLERANCES, **TEXT_TOLERANCES}
    ]
    missing += [freedom for freedom in (*TOLERANCES, *TEXT_TOLERANCES) if freedom not in shown]
    assert missing == []
