"""Every diagnostic: a schema that provokes it, and the text that it gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.advice import ADVICE
from codecgen.check import PASSES, run
from codecgen.diagnostics import CODES, Diagnostic, did_you_mean, render
from codecgen.schema import loader
from codecgen.schema.types import Span
from tests.codecgen import goldens
from tests.paths import SCHEMAS

CASES = list(goldens.cases())


@pytest.mark.share(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_text(case: Path) -> None:
    expected = goldens.expected(case)
    if case.is_file():
        first = case.read_text(encoding="utf-8").split("\n")[0]
        assert first == f"# Expected: {expected.name}"
    assert goldens.text_of(case) == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("code", CODES)
def test_every_number_is_provoked_by_a_case_named_after_it(code: str) -> None:
    cases = [case for case in CASES if case.name.startswith(f"{code}-")]
    texts = [goldens.expected(case).read_text(encoding="utf-8") for case in cases]
    assert any(f"error[{code}]" in text for text in texts)
    assert all(f"error[{code}]" in text or f"note[{code}]" in text for text in texts)


def test_no_expected_text_is_left_over() -> None:
    expected = {goldens.expected(case).name for case in CASES}
    assert {path.name for path in goldens.HERE.glob("*.txt")} == expected


def test_every_number_has_advice() -> None:
    assert list(ADVICE) == list(CODES)


def test_the_page_of_diagnostics_is_current() -> None:
    assert goldens.PAGE.read_text(encoding="utf-8") == goldens.page()


def test_all_findings_of_a_run_are_shown_at_once() -> None:
    files = {
        "codecgen.yaml": goldens.MANIFEST,
        "broken.yaml": "layout: broken\nfields: {a: {type: u8, colour: red}}\n",
        "bits.yaml": "layout: bitten\nfields: {a: {bits: u8, members: {b: {at: 0-8}}}}\n",
        "not_yaml.yaml": "layout: {\n",
        "uses.yaml": "layout: uses\nfields: {a: {layout: broken}, b: {layout: brken}}\n",
        "values.yaml": "layout: valued\nfields: {a: {type: u8, const: 999}}\n",
        "words.yaml": "layout: worded\nfields: {a: u8, b: {type: u8, when: a}}\n",
    }
    model, found = loader.load(files)
    assert model is not None
    text = render(found + run(model), files)
    heads = [line for line in text.split("\n") if line.startswith("error[")]
    assert heads == [
        "error[C015]: bit 8 is beyond the 8 bits of u8",
        'error[C004]: unknown key "colour"',
        "error[C001]: expected the node content, but found '<stream end>'",
        # "broken" is declared, only not well: nothing is said about uses of it
        'error[C012]: unknown layout "brken"',
        "error[C017]: 999 does not fit u8 (0 to 255)",
        "error[C022]: `when` is true or false, not a number",
    ]


@pytest.mark.slow
def test_the_schemas_of_this_repository_are_good() -> None:
    files = loader.read_files(SCHEMAS)
    model, found = loader.load(files)
    assert model is not None
    assert render(found + run(model), files) == ""


def test_passes_that_rely_on_others_run_after_them() -> None:
    names = [check.name for check in PASSES]
    assert len(set(names)) == len(names)
    for i, check in enumerate(PASSES):
        assert set(check.after) <= set(names[:i])


def test_findings_come_in_the_order_of_the_files() -> None:
    spans = [Span("b.yaml", 1, 1, 2), Span("a.yaml", 10, 1, 2), Span("a.yaml", 9, 5, 6)]
    text = render([Diagnostic("C001", str(i), span) for i, span in enumerate(spans)], {})
    assert [line[-1] for line in text.split("\n") if line.startswith("error")] == ["2", "1", "0"]


def test_text_from_a_file_plays_no_tricks_on_a_terminal() -> None:
    files = {"a.yaml": "\x1b[31mred\u202e\ttail\udce9"}
    text = render([Diagnostic("C001", "bad\x1b]0;title\x07", Span("a.yaml", 1, 1, 2))], files)
    assert text.replace("\n", "").isprintable()
    assert "bad\\x1b]0;title\\x07" in text


def test_a_long_line_is_cut_around_the_place() -> None:
    line = "a" * 500 + "HERE" + "b" * 500
    text = render([Diagnostic("C001", "x", Span("a.yaml", 1, 501, 505))], {"a.yaml": line})
    shown, caret = text.split("\n")[3:5]
    assert len(shown) < 200
    assert shown[caret.index("^") : caret.rindex("^") + 1] == "HERE"


def test_a_hint_is_only_given_for_what_is_close() -> None:
    assert did_you_mean("compresion", ["compression", "crc"]) == 'did you mean "compression"?'
    assert did_you_mean("zebra", ["compression", "crc"]) == ""
