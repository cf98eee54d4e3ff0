"""Every rule of `codecgen breaking`: a change that breaks it, and a neighbor that is allowed."""

from __future__ import annotations

import ast
import re

import pytest

from codecgen.evolution import Change, compare_models, layouts
from codecgen.evolution.rules import RULES
from codecgen.explain.declarations import explain_diagnostic
from tests.codecgen.evolution import evolution_page
from tests.codecgen.evolution.pairs import PAIRS, Pair
from tests.codecgen.schemas import model_of
from tests.paths import ROOT

SAFETY_NET = "B026"
"""The rule for what no other rule explains. No schema is known that reaches it."""
NETTED = ("B003", "B004", "B005", "B006", "B007", "B008", "B011", "B014")
"""Rules about the steps of a reader. The net catches what they would miss."""


def changes(old: str, new: str) -> list[Change]:
    return compare_models(model_of(old), model_of(new))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.rule)
def test_a_breaking_change_is_found(pair: Pair) -> None:
    breaks = [change for change in changes(pair.old, pair.broken) if change.is_breaking]
    assert {change.rule for change in breaks} == {pair.rule}
    assert breaks[0].path == pair.path
    assert breaks[0].is_certain is pair.certain
    assert breaks[0].group == "bytes"
    assert breaks[0].span is not None


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.rule)
def test_its_neighbor_is_allowed(pair: Pair) -> None:
    assert [change for change in changes(pair.old, pair.allowed) if change.is_breaking] == []


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.rule)
def test_a_schema_is_equal_to_itself(pair: Pair) -> None:
    for text in (pair.old, pair.broken, pair.allowed):
        assert changes(text, f"# Lines move.\n\n{text}") == []


@pytest.mark.parametrize("rule", NETTED)
def test_a_break_that_no_rule_explains_is_caught(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = next(pair for pair in PAIRS if pair.rule == rule)
    monkeypatch.setattr(layouts._Comparison, "_explain", lambda self: iter(()))
    breaks = [change for change in changes(pair.old, pair.broken) if change.is_breaking]
    assert [(change.rule, change.is_certain) for change in breaks] == [(SAFETY_NET, False)]
    assert not any(change.is_breaking for change in changes(pair.old, pair.old))


@pytest.mark.parametrize(("size", "breaks"), [("u32", []), ("u16", ["B004"])])
def test_padding_that_is_empty_changes_nothing(size: str, breaks: list[str]) -> None:
    old = f"layout: reading\nfields: {{a: {size}, b: u8}}\n"
    new = f"layout: reading\nfields: {{a: {size}, gap: {{padding: 4}}, b: u8}}\n"
    assert [change.rule for change in changes(old, new)] == breaks


def test_every_rule_has_a_pair() -> None:
    assert {pair.rule for pair in PAIRS} == set(RULES) - {SAFETY_NET}


def test_the_catalog_has_the_rules_that_the_comparison_reports() -> None:
    sources = (ROOT / "generator" / "codecgen" / "evolution").glob("*.py")
    found = {
        node.value
        for path in sources
        if path.stem != "rules"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert {word for word in found if re.fullmatch(r"B\d{3}", word)} == set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_explain_shows_a_rule(rule: str) -> None:
    text = explain_diagnostic(rule.lower())
    assert text is not None
    assert text.startswith(f"{rule}: {RULES[rule].title}\n")
    assert "Remedy:" in text


def test_the_pages_are_current() -> None:
    for path, text in evolution_page.pages().items():
        assert path.read_text("utf-8") == text
