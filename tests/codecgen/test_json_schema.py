"""The JSON Schema for editors: it takes what codecgen takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from codecgen.json_schema import json_schema
from codecgen.schema import grammar
from tests.codecgen import goldens
from tests.paths import SCHEMAS

COMMITTED = SCHEMAS / "codecgen.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def documents(text: str) -> list[Any]:
    """As an editor reads YAML: plain words are what YAML says they are, keys are text."""
    return [_text_keys(document) for document in yaml.safe_load_all(text) if document is not None]


def _text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {"null" if k is None else str(k): _text_keys(v) for k, v in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list) else value


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


@pytest.mark.share(4)
@pytest.mark.parametrize("path", sorted(SCHEMAS.rglob("*.yaml")), ids=lambda p: p.stem)
def test_it_takes_our_schemas(path: Path) -> None:
    for document in documents(path.read_text(encoding="utf-8")):
        VALIDATOR.validate(document)


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
