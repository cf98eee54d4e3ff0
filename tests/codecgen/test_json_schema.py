"""The JSON Schema for editors: it takes what codecgen takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

from codecgen.json_schema import json_schema
from codecgen.schema import grammar
from tests.codecgen import goldens
from tests.codecgen.language import language_pages
from tests.paths import ROOT, SCHEMAS

TESTS = ROOT / "tests"
KINDS = ("language", *grammar.DOCUMENTS)
COMMITTED = SCHEMAS / "codecgen.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def documents(text: str) -> list[Any]:
    """As an editor reads YAML: plain words are what YAML says they are, and numbers as keys are text."""
    return [_text_keys(document) for document in yaml.safe_load_all(text) if document is not None]


def _text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        assert {type(key) for key in value} <= {str, int}, "a key that YAML reads as something else"
        return {str(k): _text_keys(v) for k, v in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list) else value


def _places(text: str) -> list[str]:
    """Where the errors of a document are: one for each, the deepest of those that name it."""
    return [best_match([error]).json_path for error in VALIDATOR.iter_errors(documents(text)[0])]


def _valid_files() -> Iterator[Path]:
    """The schema files of ours and of tests, but for those that have mistakes on purpose."""
    for path in sorted({*SCHEMAS.rglob("*.yaml"), *TESTS.rglob("*.yaml")}):
        if goldens.HERE in path.parents:
            case = goldens.HERE / path.relative_to(goldens.HERE).parts[0]
            if "error[" in goldens.expected(case).read_text(encoding="utf-8"):
                continue
        if any(kind in document for document in _mappings(path) for kind in KINDS):
            yield path


def _mappings(path: Path) -> list[dict[Any, Any]]:
    found = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return [document for document in found if isinstance(document, dict)]


@pytest.mark.slow
def test_it_is_a_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_the_committed_file_is_current() -> None:
    text = COMMITTED.read_text(encoding="utf-8")
    assert text == json.dumps(json_schema(), indent=2) + "\n"


def test_every_form_and_key_has_a_description() -> None:
    for name, form in json_schema()["$defs"].items():
        assert form["description"] == grammar.FORMS[name].doc
        for key, spec in form.get("properties", {}).items():
            assert spec["description"] == grammar.FORMS[name].keys[key].doc


@pytest.mark.slow
def test_it_takes_every_schema_file() -> None:
    files = list(_valid_files())
    assert len(files) > 150
    for path in files:
        for document in documents(path.read_text(encoding="utf-8")):
            assert [error.message for error in VALIDATOR.iter_errors(document)] == [], path


def test_it_takes_what_the_pages_show() -> None:
    for place, text in language_pages.blocks():
        for document in documents(text):
            assert [error.message for error in VALIDATOR.iter_errors(document)] == [], place


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("fields: {a: u8}", ["$"]),
        ("layout: a", ["$"]),
        ("layout: a\nchoice: b\nby: x\ncases: {}\nfields: {x: u8}", ["$"]),
        ("layout: a\nfields: {b: u9}", ["$.fields.b"]),
        ("layout: a\nfields: {b: {type: u9, doc: x}}", ["$.fields.b.type"]),
        ("layout: a\nfields: {b: {type: u8, docs: x}}", ["$.fields.b"]),
        ("layout: a\nfields: {b: {type: u8, bytes: u8}}", ["$.fields.b"]),
        ("layout: a\nfields: {b: {string: {0: i17, 1: i16}}}", ["$.fields.b.string['0']"]),
        ("layout: a\nfields: {b: {string: i16, none: {0: x}}}", ["$.fields.b.none['0']"]),
        ("layout: a\nfields: {b: {layout: c, none: {type: i9, value: 0}}}", ["$.fields.b.none.type"]),
        ("layout: a\nfields: {b: {layout: c, none: {1+: {type: i8}}}}", ["$.fields.b.none['1+']"]),
        ("layout: a\nfields: {b: {array: {string: i9}, count: u8}}", ["$.fields.b.array.string"]),
        ("layout: a\nfields: {b: {array: {fields: {c: {type: x}}}, count: u8}}", ["$.fields.b.array.fields.c.type"]),
        ("layout: a\nfields: {b: {type: u32, checksum: crc32, covers: [{from: B}]}}", ["$.fields.b.covers[0].from"]),
        ("layout: a\nfields: {b: {type: u8, accepts: [anything]}}", ["$.fields.b.accepts[0]"]),
        ("layout: a\nfields: {b: u8}\nexamples: [{hex: '00', values: {}}]", ["$.examples[0]"]),
        ("layout: a\nfields: {b: u8}\nsince: {app: one}", ["$.since.app"]),
        ("choice: a\nby: b\ncases: {0-x: c}", ["$.cases"]),
        ("view: a\nof: b\ncolumns: {c: {type: int9}}\nrows: [{of: b, columns: {}}]", ["$.columns.c.type"]),
        ("enums: {a: {values: {b: c}}}", ["$.enums.a.values.b"]),
        ("language: one\npackage: a\ntitle: b", ["$.language"]),
    ],
)  # fmt: skip
def test_an_error_is_at_the_key_that_is_wrong(text: str, places: list[str]) -> None:
    assert _places(text) == places


@pytest.mark.parametrize("name", ["C004-unknown-key", "C005-missing", "C011-both", "C013-types"])
def test_it_refuses_what_does_not_fit_the_grammar(name: str) -> None:
    text = (goldens.HERE / f"{name}.yaml").read_text(encoding="utf-8")
    assert not VALIDATOR.is_valid(documents(text)[0])


def test_it_takes_what_only_the_checks_refuse() -> None:
    """A JSON Schema knows the grammar; names and numbers that do not fit are for the checks."""
    for name in ("C012-unknown", "C015-bits", "C016-runs", "C022-types"):
        text = (goldens.HERE / f"{name}.yaml").read_text(encoding="utf-8")
        for document in documents(text):
            VALIDATOR.validate(document)
