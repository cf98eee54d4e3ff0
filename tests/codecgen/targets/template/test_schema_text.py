"""Words of a schema in templates: never printed as they are, and harmless wherever a filter puts them."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.plan import make_plan
from codecgen.schema.loader import load
from codecgen.targets.escaping import comment_text, json_text
from codecgen.targets.template import emit
from tests.support.hostile_texts import EVIL, hostile, see
from tests.support.template_targets import refused, text


@pytest.mark.share(8)
@pytest.mark.parametrize(
    "template",
    [
        "{{ layouts[0].doc }}",
        "{{ 'x' ~ layouts[0].doc }}",
        "{{ layouts[0].doc | upper }}",
        "{{ layouts[0].doc | string }}",
        "{{ layouts[0].doc | replace('a', 'b') }}",
        "{{ [layouts[0].doc] | join }}",
        "{{ layouts[0].doc | e }}",
        "{{ layouts[0].doc._text }}",
        "{{ layouts[0].doc.__repr__() }}",
        "{{ layouts[0].doc | list }}",
        "{{ layouts[0].doc | tojson }}",
        "{{ layouts[0].doc | camel }}",
        "{{ layouts[0] }}",
        "{{ layouts }}",
        "{{ layouts[0].versions[0].number }}",
        "{% filter upper %}{{ layouts[0].doc }}{% endfilter %}",
    ],
)
def test_words_are_not_printed_as_they_are(template: str) -> None:
    assert refused({"a.py.j2": f"\n{template}\n"})[:3] == ("C033", "a.py.j2", 2)


PRINTED = "{% for l in layouts %}{{ l.doc }}\n{% for v in l.versions %}{% for f in v.fields %}{{ f.doc }} {{ f.unit }}\n{% endfor %}{% endfor %}{% endfor %}"


def test_a_hostile_schema_in_html_and_markdown() -> None:
    model, _ = load(hostile())
    assert model is not None
    plan = make_plan(model)
    html = emit(plan, {"a.html.j2": f"<p title='{PRINTED}'>{PRINTED}</p>"}).files["a.html"]
    assert html.count("<") == 2 and html.count(">") == 2 and html.count("'") == 2
    markdown = emit(plan, {"a.md.j2": PRINTED}).files["a.md"]
    assert EVIL in see(markdown).text
    assert see(markdown).names <= {"p", "code"}


def test_a_hostile_schema_in_code() -> None:
    model, _ = load(hostile())
    assert model is not None
    template = (
        "{% for l in layouts %}{{ l.doc | comment('# ') }}\nx = {{ l.doc | json }}\n{% endfor %}"
    )
    code = emit(make_plan(model), {"a.py.j2": template}).files["a.py"]
    found: dict[str, object] = {}
    exec(compile(code, "a.py", "exec"), found)
    assert found["x"] == EVIL


MARKS = st.text(alphabet="*/-<>!{}()[]#\"'\\|% a\n?", max_size=40)


@given(MARKS)
def test_no_words_end_a_comment_or_begin_one(words: str) -> None:
    found = comment_text(words, "", 80)
    for mark in (
        "*/",
        "/*",
        "-->",
        "--",
        "{-",
        "-}",
        "(*",
        "*)",
        '""',
        "''",
        "|#",
        "#|",
        "]]",
        "%}",
        "{#",
        "#}",
    ):
        assert mark not in found
    assert not found.endswith("\\") and "\\\n" not in found
    assert re.sub(r"[\s\\]", "", found) == re.sub(r"[\s\\]", "", words)


@given(st.text(max_size=300), st.integers(20, 120))
def test_comments_are_lines(words: str, width: int) -> None:
    lines = comment_text(words, "// ", width).split("\n")
    assert all(line.startswith("//") and line.isprintable() for line in lines)
    assert all(len(line) <= max(width, 23) for line in lines)


@given(st.text(max_size=60))
def test_json_is_json_in_html_too(words: str) -> None:
    found = json_text(words)
    assert json.loads(found) == "".join(c if c.isprintable() else "\ufffd" for c in words)
    assert found.isascii() and not set(found) & set("<>&")


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("template", "given_"),
    [
        ("{{ 'base_offset' | camel }} {{ 'base_offset' | pascal }}", "baseOffset BaseOffset"),
        ("{{ 'base_offset' | kebab }}", "base-offset"),
        (
            "{{ 255 | hex }} {{ 255 | hex(4) }} {{ 5 | json }} {{ true | json }}",
            "0xff 0x00ff 5 true",
        ),
        ("[{{ 'a' | pad(3) }}] {{ 'b' | pad(99999999) | length }}", "[a  ] 200"),
        ("{% filter indent(2) %}a\nb{% endfilter %}", "a\n  b"),
        ("{{ 'x' ~ 1 ~ 'y' }}{{ 1 + 2 * 3 }}{{ layouts | length > 3 }}", "x1y7True"),
        ("{{ manifest.doc | html | length > 9 }}{{ manifest.doc | md | length > 9 }}", "TrueTrue"),
    ],
)
def test_filters(template: str, given_: str) -> None:
    assert text(template) == given_
