"""Text from schemas in Markdown: it reads as it stands, and nothing in it does anything."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.check import run
from codecgen.plan import make_plan
from codecgen.schema.loader import load
from codecgen.targets import docs
from codecgen.targets.docs.markdown import fence, table
from codecgen.targets.docs.markdown import markdown as md
from codecgen.targets.docs.text import code as code_phrase
from codecgen.targets.docs.text import web_link
from codecgen.targets.escaping import markdown_code as code
from codecgen.targets.escaping import printable
from tests.support.hostile_texts import (
    EVIL,
    MARKDOWN,
    MARKS,
    NASTY,
    hostile,
    see,
    words_of,
)


def bare_addresses(markdown: str) -> list[str]:
    """Addresses in the text of a document, where it is neither code nor a link of its own."""
    found = []
    for block in MARKDOWN.parse(markdown):
        in_code = 0
        for token in block.children or ():
            in_code += (token.content == "<code>") - (token.content == "</code>")
            if token.type == "text" and not in_code:
                found += re.findall(
                    r"(?i)[a-z][a-z0-9+.-]*://|www\.|[a-z0-9]@[a-z0-9]", token.content
                )
    return found


@pytest.mark.parametrize("text", NASTY)
def test_nasty_text_is_text(text: str) -> None:
    seen = see(md(text))
    assert seen.text == words_of(text)
    assert seen.names <= {"p", "code"}
    assert not seen.comments


@pytest.mark.slow
@given(st.text(max_size=60))
def test_any_text_is_text(text: str) -> None:
    seen = see(md(text))
    assert seen.text == words_of(text)
    assert seen.names <= {"p", "code"}


@given(MARKS)
def test_any_marks_are_text(text: str) -> None:
    seen = see(md(text))
    assert seen.text == words_of(text)
    assert seen.names <= {"p", "code"}


@given(st.one_of(MARKS, st.text(max_size=40)))
def test_code_is_code(text: str) -> None:
    seen = see(f"x {code(text)} y")
    assert seen.text == " ".join(f"x {printable(text)} y".split())
    assert seen.names == {"p", "code"}


@given(st.lists(st.tuples(MARKS, MARKS), min_size=1, max_size=3))
def test_cells_stay_in_their_columns(rows: list[tuple[str, str]]) -> None:
    lines = [("x", a, code_phrase(b or "-")) for a, b in rows]
    seen = see(table(("first", "second", "third"), lines))
    columns = 3 if any(md(a) for a, _ in rows) else 2
    tags = [tag for tag, _ in seen.tags]
    assert tags.count("table") == 1
    assert tags.count("tr") == len(rows) + 1
    assert tags.count("td") == len(rows) * columns
    assert seen.names <= {"table", "thead", "tbody", "tr", "th", "td", "code"}


@given(MARKS)
def test_headings_are_one_line(text: str) -> None:
    seen = see(f"### {md(f'x {text}')}")
    assert seen.text == words_of(f"x {text}")
    assert seen.names <= {"h3", "code"}


@given(st.text(alphabet="`~ab\n", max_size=40))
def test_nothing_ends_a_fence(text: str) -> None:
    tokens = MARKDOWN.parse(fence(text))
    assert [t.type for t in tokens] == ["fence"]
    assert tokens[0].content.rstrip() == text.rstrip()


@given(st.one_of(MARKS, st.text(max_size=60)))
def test_no_bare_addresses(text: str) -> None:
    """GitHub links them wherever they stand, except in code."""
    assert bare_addresses("see https://evil.example")
    assert not bare_addresses(md(text))


@pytest.mark.parametrize(
    ("address", "linked"),
    [
        ("https://docs.example/a-1", True),
        ("http://docs.example/?q=1&r=2#x", True),
        ('https://docs.example/") onclick="x', True),
        ("https://docs.example/)[x](y", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("//docs.example/x", False),
        ("", False),
    ],
)
def test_links_of_the_manifest(address: str, linked: bool) -> None:
    seen = see(md(web_link("memo [1]", address)))
    links = [attributes["href"] for tag, attributes in seen.tags if tag == "a"]
    assert seen.text == "memo [1]"
    assert [link.split("://")[0] for link in links] == ([address.split("://")[0]] if linked else [])
    assert seen.names <= {"p", "a"}


# ---------------------------------------------------------------- a whole schema that wishes us ill


def test_a_hostile_schema() -> None:
    model, diagnostics = load(hostile())
    assert model is not None and not diagnostics
    assert {d.code for d in run(model)} == {
        "C017"
    }  # the address; the documents do not lean on that
    emitted = docs.emit(make_plan(model))
    assert not emitted.diagnostics
    pages = {path: text for path, text in emitted.files.items() if path.endswith(".md")}
    assert len(pages) == 4
    for text in pages.values():
        seen = see(text)
        assert seen.names <= {
            *("h1", "h2", "h3", "h4", "p", "ul", "li", "a", "code", "pre", "br", "img"),
            *("table", "thead", "tbody", "tr", "th", "td"),
        }
        for tag, attributes in seen.tags:
            assert set(attributes) <= {"href", "id", "src", "alt", "class"}
            target = attributes.get("href", attributes.get("src", ""))
            assert ":" not in target and "evil.example" not in target, tag
        assert len(seen.comments) == 1
        assert "onerror" not in seen.names
        assert EVIL in seen.text
        assert not bare_addresses(text)


def test_hostile_pictures() -> None:
    model, _ = load(hostile())
    assert model is not None
    emitted = docs.emit(make_plan(model))
    pictures = {path: text for path, text in emitted.files.items() if path.endswith(".svg")}
    assert pictures
    for text in pictures.values():
        root = ET.fromstring(text)
        tags = {
            element.tag.rpartition("}")[2]
            for element in root.iter()
            if isinstance(element.tag, str)
        }
        assert tags <= {"svg", "title", "desc", "style", "rect", "text", "path"}


def test_a_hostile_file_name() -> None:
    """A check refuses such names. Neither the documents nor the code that is run for examples lean on that."""
    files = {
        "a--><script>/b](x).yaml" if name == "evil.yaml" else name: t
        for name, t in hostile().items()
    }
    model, _ = load(files)
    assert model is not None
    refused = docs.emit(make_plan(model))
    assert [d.code for d in refused.diagnostics] == ["C027"] and not refused.files
    quiet = {name: replace(layout, examples=()) for name, layout in model.layouts.items()}
    emitted = docs.emit(make_plan(replace(model, layouts=quiet)))
    assert not emitted.diagnostics
    for path, text in emitted.files.items():
        if path.endswith(".md"):
            seen = see(text)
            assert "script" not in seen.names
            assert len(seen.comments) == 1
        else:
            ET.fromstring(text)
