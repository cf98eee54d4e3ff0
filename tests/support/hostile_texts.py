"""Texts that could break out of generated pages, and what a reader of a page sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from hypothesis import strategies as st
from markdown_it import MarkdownIt

from codecgen.targets.escaping import printable

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


@dataclass
class Seen(HTMLParser):
    """What a reader's program makes of a document: tags with their attributes, text, comments."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    @property
    def names(self) -> set[str]:
        return {tag for tag, _ in self.tags}


def see(markdown: str) -> Seen:
    seen = Seen()
    seen.feed(MARKDOWN.render(markdown))
    seen.close()
    return seen


NASTY = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; &amp; &#60;",
    "[a link](https://evil.example)",
    "![a picture](https://evil.example/x.svg)",
    "[a]: https://evil.example",
    "see https://evil.example/?q=1 or www.evil.example or me@evil.example",
    "`code` ``more`` ```fence",
    "a | b || c \\| d",
    "# a heading",
    "- a list",
    "+ another",
    "1. and a third",
    "12) and a fourth",
    "> a quote",
    "*bold* _italic_ **both** ~~gone~~",
    "---",
    "=== ",
    "***",
    "ends with a backslash \\",
    "\\* escaped already",
    "<!-- a comment -->",
    "--> out of a comment",
    "$x^2$ and $$y$$",
    "javascript:alert(1)",
    "<https://evil.example>",
    "line one\nline two\r\n\r\n    code",
    "[^1] and [^1]: a note",
    "| a | b |\n| --- | --- |\n| c | d |",
    "https://a_b_c.example/x_y",
    "snake_case_name and _private_ and __init__",
    "a\u202eb\u0000c\u200b",
]


def words_of(text: str) -> str:
    return printable(" ".join(text.split()))


MARKS = st.text(alphabet="`*_[]()<>|\\~!#-+=&$:/@.1 a\n", max_size=24)


EVIL = (
    "<b>x</b> ![p](https://evil.example/p.png) [l](https://evil.example) | `t` https://evil.example"
)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def hostile() -> dict[str, str]:
    doc = quoted(EVIL)
    return {
        "codecgen.yaml": f"""
language: 1
package: evil_codecs
title: {doc}
doc: {doc}
release_line: post
releases: [1.0, 2.0]
links: {{memo: "javascript:alert({{}})"}}
documents: {{as_of: [1.0]}}
""",
        "evil.yaml": f"""
enums:
  kind:
    doc: {doc}
    values:
      one: {{value: 1, spelled: '|`<b>', doc: {doc}, since: {{post: 1.0, memo: [1]}}}}
---
layout: thing
doc: {doc}
versions: 1
version_notes: {{1: {{since: {{post: 1.0, memo: [4]}}}}}}
fields:
  kind: {{type: u8, enum: kind, doc: {doc}, spelled: '```<i>|'}}
  flags: {{bits: u8, doc: {doc}, members: {{a: {{at: 0, spelled: '](x)', doc: {doc}}}, rest_: {{reserved: keep}}}}}}
  size: {{type: u32, unit: '<u>|', doc: {doc}, documentation: {{misprint: {{as: {doc}, doc: {doc}}}}}}}
  name: {{string: u8, doc: {doc}}}
derived:
  twice: {{type: i64, unit: '[u](x)', doc: {doc}, is: size + size}}
examples:
  - {{name: {doc}, doc: {doc}, build: true, values: {{kind: one, size: 5, name: "```\\n<b>|\\u202e"}}}}
documentation:
  overhead:
    doc: {doc}
    sizes: [1]
    columns: [{{title: {doc}, layout: thing, each: {{name: 3}}}}]
    notes: {doc}
---
choice: pick
doc: {doc}
given: {{kind: kind}}
by: kind
cases: {{one: thing}}
""",
    }
