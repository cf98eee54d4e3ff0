"""Words of other languages: what is said of them is a word of this one, and following it helps."""

from __future__ import annotations

import re

import pytest

from codecgen.check import run
from codecgen.diagnostics import Diagnostic
from codecgen.schema import expression, grammar, loader, other_words
from codecgen.schema.scalars import LENGTHS, SCALARS
from tests.codecgen.goldens import MANIFEST


@pytest.mark.parametrize("word", [*SCALARS, *LENGTHS, "rest", "i32x", "int12", "uint", "", "_t"])
def test_types(word: str) -> None:
    said = other_words.type_help(word, SCALARS)
    assert not said or word not in (*SCALARS, *LENGTHS)
    assert set(re.findall(r"\b[iuf]\d+\b", said)) <= set(SCALARS)


def test_what_is_said_can_be_written() -> None:
    for word in other_words._C_TYPES:
        said = other_words.type_help(word, SCALARS).removeprefix("write ")
        assert all(part.split()[0] in SCALARS for part in said.split(", or ") if part)
    keys = {key for form in grammar.FORMS.values() for key in form.keys}
    for word, ours in other_words._KEYS.items():
        assert ours in keys or " " in ours
        assert not other_words.key_help(word, ()) or " " in ours
    for word, ours in other_words._OPERATORS.items():
        with pytest.raises(expression.ExpressionError) as caught:
            expression.parse(f"a {word} b")
        assert caught.value.help == f"write {ours}"


@pytest.mark.parametrize("text", ["a == 1", "a != b", "a <= 1 and not b", "a >= -1", "a<b", "a>b"])
def test_operators_of_ours_are_none_of_others(text: str) -> None:
    expression.parse(text)


def found(fields: str, head: str = "") -> list[Diagnostic]:
    text = f"layout: packet\n{head}fields:\n  {fields}\n"
    model, diagnostics = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": text})
    return diagnostics or ([] if model is None else run(model))


@pytest.mark.parametrize(
    ("fields", "followed"),
    [
        ("a: uint8", "a: u8"),
        ("a: string", "a: {string: i16}"),
        ("baseOffset: i64", "base_offset: i64"),
        ("{k: u8, a: {type: u8, when: k = 1}}", "{k: u8, a: {type: u8, when: k == 1}}"),
        (
            "{k: u8, a: {type: u8, default: k == 1 ? 1 : 2}}",
            "{k: u8, a: {type: u8, default: if k == 1 then 1 else 2}}",
        ),
        (
            "{n: {type: u8, measures: d}, d: {bytes: rest}}",
            "{n: {type: u8, measures: {from: d, to: d}}, d: {bytes: rest}}",
        ),
        (
            "{n: u8, d: {array: u8, counts: n}}",
            "{n: {type: u8, counts: d}, d: {array: u8}}",
        ),
        (
            "{n: u8, d: {array: u8, count: n}}",
            "{n: {type: u8, counts: d}, d: {array: u8}}",
        ),
        (
            "{n: u8, d: {type: string, length: n}}",
            "{n: {type: u8, measures: {from: d, to: d}}, d: {string: rest}}",
        ),
        (
            "{n: u8, d: {array: u8, length: n}}",
            "{n: {type: u8, measures: {from: d, to: d}}, d: {array: u8, until: end}}",
        ),
        ("{d: {bytes: u8, length: 16}}", "{d: {bytes: 16}}"),
        ("- name: x", "x: u8"),
    ],
)
def test_one_finding_and_none_once_it_is_followed(fields: str, followed: str) -> None:
    (finding,) = found(fields)
    assert finding.help
    assert found(followed) == []


def test_fields_that_are_called_like_types() -> None:
    assert found("{u8: u8, a: {string: u8}, varint: u8, b: {array: u8, count: varint}}") == []


def test_long_text_is_no_work() -> None:
    (finding,) = found("{a: {type: u8, when: " + "is: " * 100_000 + "}}")
    assert finding.code == "C001"
    (finding,) = found(f"{{{'A' * 100_000}: u8}}")
    assert len(finding.help) < 100
