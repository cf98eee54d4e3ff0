"""The static site: sound HTML, links that lead somewhere, text of schemas as text."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.plan import Plan, as_of, make_plan
from codecgen.schema.expression import Path as FieldPath
from codecgen.schema.expression import parse, pieces, source
from codecgen.schema.loader import load, read_files
from codecgen.targets import docs
from codecgen.targets.docs.hexdump import Piece, Stream
from codecgen.targets.docs.html import html
from codecgen.targets.docs.html_site import dump, template_names
from codecgen.targets.docs.site import make_site
from codecgen.targets.docs.text import as_phrase, code, link, web_link
from codecgen.targets.escaping import printable
from tests.codecgen.schemas import our_model
from tests.codecgen.targets.docs.doc_pages import MAIL
from tests.paths import SCHEMAS
from tests.support.hostile_texts import EVIL, NASTY, hostile, words_of
from tests.support.html_pages import emitted

VOID = {"meta", "link", "input", "br"}


@dataclass
class Seen(HTMLParser):
    """What a browser makes of a document: elements in each other, ids, links, text."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID and self.get_starttag_text()[-2:] != "/>":  # type: ignore[index]
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.get_starttag_text() is not None and tag not in ("rect", "path"):
            assert self.open and self.open[-1] == tag, (tag, self.open)
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def see(text: str) -> Seen:
    seen = Seen()
    seen.feed(text)
    seen.close()
    assert not seen.open
    return seen


@cache
def our_plan() -> Plan:
    return make_plan(our_model())


BOTH = pytest.mark.parametrize(
    "directory",
    [pytest.param(MAIL, id="mail"), pytest.param(SCHEMAS, id="schemas", marks=pytest.mark.slow)],
)


@cache
def html_files(directory: Path) -> list[tuple[str, Seen]]:
    """The pages; nobody changes what was seen."""
    pages = emitted(directory).items()
    return [(path, see(text)) for path, text in pages if path.endswith(".html")]


@BOTH
def test_pages_are_sound_and_every_link_leads_somewhere(directory: Path) -> None:
    ids = {
        path: [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
        for path, seen in html_files(directory)
    }
    count = 0
    for path, seen in html_files(directory):
        assert max(Counter(ids[path]).values()) == 1, Counter(ids[path]).most_common(1)
        for tag, attributes in seen.tags:
            target = attributes.get("href", attributes.get("src"))
            if target is None or attributes.get("class") == "outside":
                continue
            where, _, mark = unquote(target).partition("#")
            home = (
                posixpath.normpath(posixpath.join(posixpath.dirname(path), where))
                if where
                else path
            )
            assert home in emitted(directory), f"{path}: {tag} {target}"
            if mark:
                assert mark in ids[home], f"{path}: {target}"
                count += 1
    assert count > 100


@BOTH
def test_nothing_comes_from_elsewhere(directory: Path) -> None:
    model, _ = load(read_files(directory))
    assert model is not None
    for path, seen in html_files(directory):
        scripts = [a for tag, a in seen.tags if tag == "script"]
        assert all(a["src"].endswith(".js") for a in scripts) and len(scripts) == 2
        assert not any(name.startswith("on") or name == "style" for _, a in seen.tags for name in a)
        assert "style" not in {tag for tag, _ in seen.tags}
        policy = next(a["content"] for tag, a in seen.tags if "http-equiv" in a)
        assert policy.startswith("default-src 'none'"), path
        for _, attributes in seen.tags:
            address = attributes.get("href", attributes.get("src", ""))
            if ":" in address:
                assert attributes["class"] == "outside"
                assert address.startswith(
                    tuple(link.split("{}")[0] for link in model.manifest.links.values())
                )


@pytest.mark.slow
def test_blocks_keep_their_lines_and_columns() -> None:
    for path, text in docs.emit(our_plan()).files.items():
        if not path.endswith(".md") or "as-of" in path:
            continue
        page = emitted(SCHEMAS)[
            path.replace("docs/", "html/", 1).replace("README", "index").replace(".md", ".html")
        ]
        blocks = re.findall(r"^```text\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
        shown = [
            unescape(block)
            for block in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.DOTALL)
        ]
        assert shown == [block for block in blocks if not re.match(r" *0  [0-9a-f]{2}", block)], (
            path
        )


@pytest.mark.slow
def test_every_thing_field_bit_and_value_is_in_the_search() -> None:
    text = emitted(SCHEMAS)["html/search.js"]
    model = our_model()
    for layout in model.layouts.values():
        for f in layout.fields:
            assert f'"{layout.name}.{f.name}"' in text
    for name in (
        "log_entry",
        "compression.zstd",
        "record_batch.attributes.is_control",
        "record_batch.last_offset",
    ):
        assert f'["{name}"' in text
    assert "zstd" not in emitted(SCHEMAS)["html/as-of-0.11.0/search.js"]


@pytest.mark.slow
def test_fields_say_where_they_are_named() -> None:
    page = emitted(SCHEMAS)["html/records/record_batch.html"]
    row = page[page.index('<tr id="record_batch-base_offset">') :].partition("</tr>")[0]
    for label, target in (
        ("last_offset", "record_batch-last_offset-derived"),
        ("records.offset", "record_batch-records-offset-derived"),
    ):
        assert f'<a href="#{target}">{label}</a>' in row
    record = emitted(SCHEMAS)["html/records/record.html"]
    row = record[record.index('<tr id="record-offset_delta">') :].partition("</tr>")[0]
    assert (
        '<a href="record_batch.html#record_batch-records-offset-derived">record_batch.records.offset</a>'
        in row
    )
    assert (
        '<code><a href="#record_batch-base_offset">base_offset</a> + <a href="record.html#record-offset_delta">item.offset_delta</a></code>'
        in page
    )


@pytest.mark.slow
def test_editions() -> None:
    page = see(emitted(SCHEMAS)["html/records/record_batch.html"])
    editions = [
        (a["href"], a.get("aria-current"))
        for tag, a in page.tags
        if a.get("title", "").startswith(("As of", "Today"))
    ]
    assert editions == [
        ("../as-of-0.11.0/records/record_batch.html", None),
        ("../as-of-2.1.0/records/record_batch.html", None),
        ("../as-of-3.1.0/records/record_batch.html", None),
        ("record_batch.html", "true"),
    ]
    later = see(emitted(SCHEMAS)["html/messages/kraft.html"])
    missing = [a["href"] for _, a in later.tags if a.get("class") == "missing"]
    assert missing and set(missing) <= {
        f"../as-of-{n}/index.html" for n in ("0.11.0", "2.1.0", "3.1.0")
    }
    old = emitted(SCHEMAS)["html/as-of-0.11.0/records/record_batch.html"]
    assert (
        "firstTimestamp" in old and "baseTimestamp" not in old and "has_delete_horizon" not in old
    )
    assert 'class="dump"' in old


@pytest.mark.slow
def test_a_page_as_of_a_release_alone() -> None:
    found = docs.emit_html(make_plan(as_of(our_model(), "2.1.0"), "2.1.0"))
    assert not found.diagnostics
    assert not any("as-of" in path for path in found.files)
    assert "as of Kafka 2.1.0" in found.files["html/index.html"]
    assert 'class="editions"' not in found.files["html/index.html"]


# ---------------------------------------------------------------- bytes


@given(st.lists(st.integers(1, 300), min_size=1, max_size=12))
def test_all_bytes_are_in_a_dump_once_with_their_field(sizes: list[int]) -> None:
    starts = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    data = bytes(i % 256 for i in range(starts[-1]))
    parts = tuple(Piece(start, end, "base_offset", "x") for start, end in pairwise(starts))
    site = make_site(our_plan(), "html", "index.html")
    shown = dump(site, site.homes["record_batch"], "record_batch", Stream("", "", data, parts))
    at = 0
    for row in shown.rows:
        at += row.left_out
        assert row.offset == at
        for run in row.runs:
            piece = parts[run.piece]
            cells = bytes.fromhex(run.hex)
            assert piece.start <= at and at + len(cells) <= piece.end
            assert data[at : at + len(cells)] == cells
            at += len(cells)
        assert row.offset // 8 == (at - 1) // 8
    left = parts[-1].end - at
    assert left == max(0, sizes[-1] - 256)
    assert all(piece.href == "#record_batch-base_offset" for piece in shown.pieces)


# ---------------------------------------------------------------- words


@pytest.mark.parametrize("text", NASTY)
def test_nasty_text_is_text(text: str) -> None:
    for words, tags in ((as_phrase(text), set()), (link(text, "x#y"), {"a"})):
        seen = see(html(words))
        assert seen.text == words_of(text)
        assert {tag for tag, _ in seen.tags} == tags
    seen = see(html(code(text)))
    assert seen.text == " ".join(printable(text).split())
    assert [tag for tag, _ in seen.tags] == ["code"]


@given(st.text(max_size=60))
def test_links_stay_in_their_quotes(address: str) -> None:
    for words in (link("x", address), web_link("x", f"https://a.example/{address}")):
        (tag, attributes), *rest = see(html(words)).tags
        assert tag == "a" and not rest
        assert set(attributes) <= {"href", "class", "rel"}


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "//docs.example/x"])
def test_only_the_web_is_outside(address: str) -> None:
    assert html(web_link("memo", address)) == "memo"


def test_an_address_that_cannot_be_split_is_no_link() -> None:
    assert html(web_link("memo", "https://[x/1")) == "memo"


ATOMS = st.sampled_from(["a", "b.c", "7", "null", "-3", "first(xs).d", "last(xs)"])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "==", "<", "and", "or"]), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        )
        | inner.map(lambda part: f"not ({part})")
        | st.tuples(inner, inner, inner).map(lambda p: f"if {p[0]} then {p[1]} else {p[2]}")
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
def test_the_pieces_of_an_expression_are_its_text(text: str) -> None:
    if "if" in text and "(if" not in text and not text.startswith("if"):
        return
    node = parse(text).node
    found = list(pieces(node))
    assert "".join(map(str, found)) == source(node)
    assert source(parse(source(node)).node) == source(node)
    names = {str(piece) for piece in found if isinstance(piece, FieldPath)}
    assert names <= {"a", "b.c", "xs"}
    assert names == {str(path) for path in parse(text).paths()}


@pytest.mark.slow
def test_a_hostile_schema() -> None:
    model, _ = load(hostile())
    assert model is not None
    found = docs.emit_html(make_plan(model))
    assert not found.diagnostics
    plain = {
        name
        for path, text in emitted(SCHEMAS).items()
        if path.endswith(".html")
        for name, _ in see(text).tags
    }
    texts = {path: text for path, text in found.files.items() if path.endswith(".html")}
    assert len(texts) == 6
    for text in texts.values():
        seen = see(text)
        assert {tag for tag, _ in seen.tags} <= plain
        for _, attributes in seen.tags:
            assert not any(name.startswith("on") or name == "style" for name in attributes)
            for name in ("href", "src"):
                assert ":" not in attributes.get(name, "") and "evil.example" not in attributes.get(
                    name, ""
                )
        assert EVIL in seen.text or "All names" in seen.text
    search = found.files["html/search.js"]
    assert "<" not in search and "\\u003cb\\u003ex" in search


@pytest.mark.soak
def test_templates_are_replaced_by_name() -> None:
    plan = our_plan()
    found = docs.emit_html(
        plan,
        {"site.css.j2": "body { color: red }\n", "names.html.j2": "{{ entries | length > 100 }}"},
    )
    assert found.files["html/site.css"] == "body { color: red }\n"
    assert found.files["html/names.html"] == "True\n"
    assert found.files["html/index.html"] == emitted(SCHEMAS)["html/index.html"]
    wrong = docs.emit_html(plan, {"site.cs.j2": ""})
    assert [(d.code, d.help) for d in wrong.diagnostics] == [
        ("C034", 'did you mean "site.css.j2"?')
    ]
    assert "page.html.j2" in template_names()


def test_pages_take_no_place_of_the_sites_own_files() -> None:
    model, _ = load(
        {
            "codecgen.yaml": "language: 1\npackage: a\ntitle: A\n",
            "names.yaml": "layout: b\nfields: {c: u8}\n",
        }
    )
    assert model is not None
    assert [d.code for d in docs.emit_html(make_plan(model)).diagnostics] == ["C023"]
    assert not docs.emit(make_plan(model)).diagnostics
