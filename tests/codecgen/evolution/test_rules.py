"""Every rule of `codecgen breaking`: a change that breaks it, and a neighbor that is allowed."""

from __future__ import annotations

import ast
import re

import pytest

from codecgen.evolution import Change, compare_models, layouts
from codecgen.evolution.rules import RULES
from codecgen.explain.declarations import explain_diagnostic
from tests.codecgen.evolution import evolution_page
from tests.codecgen.evolution.pairs import PAIRS, Pair, message_schema
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("valid", "is_certain"), [("a < 9 and a + 1 != b", True), ("a < 11 and a + 1 != b", False)]
)
def test_a_condition_that_cannot_be_decided_hides_no_certain_break(
    valid: str, is_certain: bool
) -> None:
    old = "layout: reading\nfields: {b: u8, a: {type: u8, valid: a < 10}}\n"
    new = f"layout: reading\nfields: {{b: u8, a: {{type: u8, valid: {valid}}}}}\n"
    [change] = [change for change in changes(old, new) if change.is_breaking]
    assert (change.rule, change.is_certain) == ("B012", is_certain)


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


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("role: response, key: 3", "role: request, key: 3", "a request with the key 3"),
        ("key: 3, header: head", "key: 3, header: other", "the header head becomes other"),
        ("key: 3, header: head", "key: 3", "the header head becomes no header"),
        ("key: 3, header: {0-1: head}", "key: 3, header: {0: other, 1: head}", "the header head"),
    ],
)
def test_what_a_message_is_in_its_protocol(before: str, after: str, message: str) -> None:
    def write(keys: str) -> str:
        text = message_schema(keys)
        return text.replace("role: response, role:", "role:")

    breaks = [c for c in changes(write(before), write(after)) if c.is_breaking]
    assert {change.rule for change in breaks} == {"B027"}
    assert any(message in change.message for change in breaks)


def test_unstable_versions_may_change() -> None:
    old = message_schema("key: 3, header: head, unstable: 1")
    new = old.replace("b: {type: u8, versions: 1}", "b: {type: u16, versions: 1}")
    found = changes(old, new)
    assert [change.versions for change in found] == [(1,)]
    assert not any(change.is_breaking for change in found)
    stable = old.replace(", unstable: 1", "")
    assert [c.rule for c in changes(stable, new.replace(", unstable: 1", ""))] == ["B006"]
