"""The canonical form: it keeps meaning and comments, does not change what is canonical, and is read like ours."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from codecgen.evolution.comparison import compare_models
from codecgen.formatting.canonical_text import FormatError, format_text
from codecgen.formatting.key_order import sort_key
from codecgen.schema import grammar
from tests.codecgen import goldens
from tests.codecgen.language import language_pages
from tests.codecgen.schemas import model_of
from tests.paths import ROOT, SCHEMAS

LONG = "x" * 60
CASES = {
    "keys are put in order": (
        "fields:\n  b: {doc: B., type: u8}\ndoc: A.\nlayout: a\n",
        "layout: a\ndoc: A.\nfields:\n  b: {type: u8, doc: B.}\n",
    ),
    "fields are not": (
        "layout: a\nfields: {z: u8,   b: u8}\n",
        "layout: a\nfields: {z: u8, b: u8}\n",
    ),
    "comments move with their keys": (
        "# head\n\n# of doc\ndoc: A.  # beside doc\n# of layout\nlayout: a # beside layout\nfields: {b: u8}\n# tail\n",
        "# head\n\n# of doc\n# of layout\nlayout: a # beside layout\ndoc: A.  # beside doc\nfields: {b: u8}\n# tail\n",
    ),
    "comments are indented as what they are about": (
        "layout: a\nfields:\n# of b\n   b: u8\n   # below b\n# of examples\nexamples: []\n",
        "layout: a\nfields:\n  # of b\n  b: u8\n  # below b\n# of examples\nexamples: []\n",
    ),
    "a comment before a scalar on the next line": (
        "layout: a\ndoc:  # why\n  A.\nfields: {b: u8}\n",
        "layout: a\n# why\ndoc: A.\nfields: {b: u8}\n",
    ),
    "a comment of a dash": (
        "layout: a\nfields: {b: u8}\nexamples:\n  - # first\n    hex: '00'\n    # of name\n    name: one\n    values: {b: 0}\n",
        "layout: a\nfields: {b: u8}\nexamples:\n  # first\n  # of name\n  - name: one\n    hex: '00'\n    values: {b: 0}\n",
    ),
    "braces with a comment stay": (
        "layout: a\nfields:\n  b: {type: u8, # why\n     doc: B.}\n",
        "layout: a\nfields:\n  b: {type: u8, # why\n     doc: B.}\n",
    ),
    "blank lines": (
        "\n\nlayout: a\n\n\n\nfields: {b: u8}\n\n\n---\n\nlayout: c\nfields: {b: u8}   \n\n",
        "layout: a\n\nfields: {b: u8}\n\n---\nlayout: c\nfields: {b: u8}\n",
    ),
    "long braces become lines": (
        f"layout: a\nfields:\n  b: {{type: u8, doc: {LONG}, spelled: {LONG}, unit: {LONG}}}\n",
        f"layout: a\nfields:\n  b:\n    type: u8\n    unit: {LONG}\n    spelled: {LONG}\n    doc: {LONG}\n",
    ),
    "long text is folded": (
        f"layout: a\ndoc: {LONG} {LONG} {LONG}\nfields: {{b: u8}}\n",
        f"layout: a\ndoc: >\n  {LONG}\n  {LONG}\n  {LONG}\nfields: {{b: u8}}\n",
    ),
    "text of several lines": (
        "layout: a\ndoc: >-\n     one\n\n       two\n     three\nfields: {b: u8}\n",
        "layout: a\ndoc: >-\n  one\n\n    two\n  three\nfields: {b: u8}\n",
    ),
    "nested keys are last if they take lines": (
        "layout: a\nfields:\n  b:\n    members:\n      c: {at: 0}\n    doc: B.\n    bits: u8\n",
        "layout: a\nfields:\n  b:\n    bits: u8\n    doc: B.\n    members:\n      c: {at: 0}\n",
    ),
    "values by version keep their order": (
        "layout: a\nversions: 0-1\nfields: {b: {none: {1: -1}, string: {1: i8, 0: i16}}}\n",
        "layout: a\nversions: 0-1\nfields: {b: {string: {1: i8, 0: i16}, none: {1: -1}}}\n",
    ),
}


SOUND = [
    CASES[name][0]
    for name in ("keys are put in order", "long braces become lines", "long text is folded")
]


@pytest.mark.parametrize("name", CASES)
def test_the_canonical_form(name: str) -> None:
    before, after = CASES[name]
    assert format_text(before) == after
    assert format_text(after) == after


@pytest.mark.slow
def test_our_schemas_are_in_the_canonical_form() -> None:
    paths = sorted(SCHEMAS.rglob("*.yaml"))
    assert len(paths) > 50
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert format_text(text) == text, f"run codecgen fmt {path}"


def _files() -> list[Path]:
    return sorted((ROOT / "tests" / "laws" / "cases").glob("*.yaml")) + sorted(
        case for case in goldens.HERE.glob("*.yaml") if not case.stem.startswith(("C001", "C002", "C006"))
    )  # fmt: skip


@pytest.mark.soak
def test_what_others_wrote_keeps_its_meaning_and_is_formatted_once() -> None:
    """The formatter compares meanings itself, and raises if they differ."""
    for path in _files():
        text = format_text(path.read_text(encoding="utf-8"))
        assert format_text(text) == text, path


@pytest.mark.slow
def test_the_model_stays_the_same() -> None:
    for place, text in language_pages.blocks():
        if text.startswith("# codecgen.yaml") or "weather." in text:
            continue
        after = format_text(text)
        assert format_text(after) == after, place
    for before in SOUND:
        assert compare_models(model_of(before), model_of(format_text(before))) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("%YAML 1.1\n---\nlayout: a\nfields: {b: u8}\n", "begins with %"),
        ("layout: a\ndoc: |2\n    two\nfields: {b: u8}\n", "has its own indentation"),
        ("text: a\nexamples:\n  - text: |+\n      a\n\n    name: b\n", "blank lines at its end"),
    ],
)
def test_what_cannot_be_written_again_is_refused(text: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        format_text(text)


def test_the_order_of_each_form_is_total() -> None:
    for form, spec in grammar.FORMS.items():
        places = [sort_key(form, key) for key in spec.keys]
        assert len(set(places)) == len(places), form


PLAIN = st.text("ab #:-,{}[]'\"\u00e4\\", max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | PLAIN | st.just("word " * 40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(VALUES, st.booleans(), st.sampled_from([20, 80, 400]))
def test_values_of_any_shape_stay(value: object, flow: bool, width: int) -> None:
    """Examples hold any YAML: whatever PyYAML writes is written again with the same meaning, or refused."""
    document = {"layout": "a", "fields": {"b": "u8"}, "examples": [{"name": "n", "values": value}]}
    text = yaml.safe_dump(document, default_flow_style=flow, width=width, allow_unicode=True)
    try:
        after = format_text(text)
    except FormatError:
        return
    assert yaml.safe_load(after) == document
    assert format_text(after) == after
