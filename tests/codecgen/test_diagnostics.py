"""Every diagnostic: a schema that provokes it, and the text that it gives."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from codecgen.check import PASSES, run
from codecgen.diagnostic_catalog import CATALOG
from codecgen.diagnostics import Diagnostic, Span, did_you_mean, render
from codecgen.schema import loader
from tests.codecgen import goldens
from tests.paths import ROOT, SCHEMAS

CASES = list(goldens.cases())


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_text(case: Path) -> None:
    expected = goldens.expected(case)
    if case.is_file():
        first = case.read_text(encoding="utf-8").split("\n")[0]
        assert first == f"# Expected: {expected.name}"
    assert goldens.text_of(case) == expected.read_text(encoding="utf-8")


SHOWN = re.compile(
    r"^(?:error|note)\[C\d+\]: (?P<said>.*)\n *--> (?P<file>.+):(?P<line>\d+):(?P<column>\d+)\n"
    r" *\|\n *(?P<number>\d+) \| (?P<shown>.*)\n *\| (?P<indent> *)(?P<carets>\^+)",
    re.MULTILINE,
)
QUOTED = re.compile(r"""^unknown \w+ "([^"]+)"|^'([^']+)' has no meaning in an expression""")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_carets_are_under_what_yaml_finds_there(case: Path) -> None:
    """Held against the marks of PyYAML: carets are under a node, or its first character, or a word within a scalar."""
    text = goldens.expected(case).read_text(encoding="utf-8")
    found = list(SHOWN.finditer(text))
    assert len(found) == len(re.findall(r"^(?:error|note)\[", text, re.MULTILINE)) > 0
    files = goldens.files_of(case)
    for one in found:
        source = files.get(one["file"])
        if source is None:  # a template, or a file of another directory
            continue
        line, column = int(one["line"]) - 1, int(one["column"]) - 1
        shown, carets = one["shown"], len(one["carets"])
        assert int(one["number"]) == line + 1
        assert shown == source.split("\n")[line].replace("\t", " ")
        assert len(one["indent"]) == column
        under = shown[column : column + carets]
        for word in filter(None, chain(*QUOTED.findall(one["said"]))):
            assert under == word or under == ">"  # folded: the place of a word is not known
        try:
            widths = yaml_widths(source, line, column)
        except yaml.YAMLError:  # which is what is said
            continue
        assert carets in widths or is_word(shown, column, carets, yaml_scalars(source, line)), one


class Marked(NamedTuple):
    """Where something of a YAML file begins and ends: lines and columns from 0."""

    start: tuple[int, int]
    end: tuple[int, int]
    is_scalar: bool


@cache
def yaml_marks(text: str) -> list[Marked]:
    """Return all nodes, and aliases or the beginnings of nodes with anchors and tags."""
    events: list[Any] = list(yaml.parse(text, yaml.SafeLoader))
    held: list[Any] = list(yaml.compose_all(text, yaml.SafeLoader))
    found = []
    while held:
        node = held.pop()
        found.append(node)
        if isinstance(node, yaml.MappingNode):
            held += chain(*node.value)
        elif isinstance(node, yaml.SequenceNode):
            held += node.value
    return [
        Marked(
            (one.start_mark.line, one.start_mark.column),
            (one.end_mark.line, one.end_mark.column),
            isinstance(one, yaml.ScalarNode),
        )
        for one in [*found, *events]
    ]


def yaml_widths(text: str, line: int, column: int) -> set[int]:
    """Return how many characters on its first line has what begins at a place, and 1."""
    length = len(text.split("\n")[line])
    begun = [one for one in yaml_marks(text) if one.start == (line, column)]
    ends = [one.end[1] if one.end[0] == line else length for one in begun]
    return {1, *(end - column for end in ends)} if ends else set()


def yaml_scalars(text: str, line: int) -> list[tuple[int, int]]:
    """Return the columns of the parts of scalars on a line."""
    return [
        (
            one.start[1] if one.start[0] == line else 0,
            one.end[1] if one.end[0] == line else len(text),
        )
        for one in yaml_marks(text)
        if one.is_scalar and one.start[0] <= line <= one.end[0]
    ]


def is_word(shown: str, column: int, width: int, scalars: list[tuple[int, int]]) -> bool:
    """Whether a whole word or operator of a scalar has this place, or the end of one, where something is missing."""
    around = shown[max(column - 1, 0) : column + 1], shown[column + width - 1 : column + width + 1]
    return any(low <= column <= high for low, high in scalars) and not any(
        re.fullmatch(r"\w\w", pair) for pair in around
    )


@pytest.mark.parametrize("code", CATALOG)
def test_every_number_is_provoked_by_a_case_named_after_it(code: str) -> None:
    cases = [case for case in CASES if case.name.startswith(f"{code}-")]
    texts = [goldens.expected(case).read_text(encoding="utf-8") for case in cases]
    assert any(f"error[{code}]" in text for text in texts)
    assert all(f"error[{code}]" in text or f"note[{code}]" in text for text in texts)


def test_no_expected_text_is_left_over() -> None:
    expected = {goldens.expected(case).name for case in CASES}
    assert {path.name for path in goldens.HERE.glob("*.txt")} == expected


@pytest.mark.slow
def test_the_catalog_has_the_ids_that_the_generator_reports() -> None:
    """Compare the catalog with the string constants of the source, without the catalog itself."""
    sources = [p for p in (ROOT / "generator").rglob("*.py") if p.stem != "diagnostic_catalog"]
    found = {
        node.value
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert {text for text in found if re.fullmatch(r"C[0-9]{3}", text)} == set(CATALOG)


@pytest.mark.parametrize("code", CATALOG)
def test_an_entry_of_the_catalog_consists_of_sentences(code: str) -> None:
    entry = CATALOG[code]
    assert entry.title[0].isupper() and not entry.title.endswith(".")
    assert entry.explanation.endswith(".") and entry.remedy.endswith(".")


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
        "error[C022]: `when` needs true or false, but its value is a number",
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
