"""YAML that means harm, or comes out of an accident: findings, never another exception, in bounded time."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from codecgen.check import run
from codecgen.diagnostic_catalog import CATALOG
from codecgen.diagnostics import Diagnostic, render
from codecgen.plan import make_plan
from codecgen.schema import loader, yaml_tree
from codecgen.targets.registry import TARGETS
from tests.codecgen.goldens import MANIFEST
from tests.paths import SCHEMAS
from tests.support.cpu_time import limit_cpu_time


def findings(text: str, **more: str) -> list[Diagnostic]:
    files = {"codecgen.yaml": MANIFEST, "case.yaml": text} | more
    model, found = loader.load(files)
    if model is not None:
        found += run(model)
    assert all(d.code in CATALOG for d in found)
    render(found, files).encode("utf-8")
    return found


def codes(text: str) -> set[str]:
    return {d.code for d in findings(text)}


def test_aliases_are_refused_before_they_are_expanded() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]" for i in range(9)
    ]
    with limit_cpu_time(5):
        assert codes("\n".join(lines)) == {"C002"}


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "[{a: "])
def test_deep_nesting_stops_early(opening: str) -> None:
    with limit_cpu_time(5):
        found = codes("layout: a\nfields: " + opening * 100_000)
    assert found and found <= {"C001", "C026"}


@pytest.mark.parametrize(
    "text",
    [
        'layout: a\ndoc: "\\ud800"\nfields: {a: u8}\n',
        'layout: a\nfields: {a: {type: u8, doc: "x\\udfff"}}\n',
        'layout: a\nfields: {"a\\ud83d\\ude00": u8}\n',
    ],
)
def test_half_of_a_character_is_refused(text: str) -> None:
    assert "C001" in codes(text)


@pytest.mark.parametrize("number", [*range(32), 127])
def test_control_characters_are_refused_in_text_for_people(number: int) -> None:
    """No generated module or page can hold all of them. Tabs and line ends are good."""
    good = chr(number) in "\t\n\r"
    for text in (
        "doc: {}",
        "fields: {{a: {{type: u8, doc: {}}}}}",
        "examples: [{{name: {}, hex: 00}}]",
    ):
        layout = "layout: a\n" + text.format(f'"x\\x{number:02x}"')
        layout += "" if "fields" in text else "\nfields: {a: u8}"
        assert ("C006" in codes(layout)) != good


def test_a_file_that_is_too_large_is_not_parsed() -> None:
    with limit_cpu_time(1):
        assert codes("# " + "x" * yaml_tree.MAX_BYTES) == {"C026"}


def test_no_more_of_a_file_is_read_than_it_takes_to_see_that_it_is_too_large(
    tmp_path: Path,
) -> None:
    (tmp_path / "big.yaml").write_bytes(b"\xe2\x82\xac" * yaml_tree.MAX_BYTES)
    text = loader.read_files(tmp_path)["big.yaml"]
    assert len(text.encode("utf-8", "surrogateescape")) == yaml_tree.MAX_BYTES + 1
    documents, found = yaml_tree.load("big.yaml", text)
    assert not documents
    assert [d.code for d in found] == ["C026"]


@pytest.mark.parametrize("surrogate", ["\ud800", "\udc80", "\udfff"])
def test_text_with_surrogates(surrogate: str) -> None:
    documents, found = yaml_tree.load("a.yaml", f"a: {surrogate}\n")
    assert not documents
    assert [(d.code, d.span.line, d.span.column) for d in found] == [("C001", 1, 4)]


@pytest.mark.parametrize(
    "data",
    [b"\x00\x01\x02\xff", bytes(range(256)), b"layout: a\n\xff\xfe: b\n", b"\xff\xfel\x00a\x00"],
)
def test_binary_files(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "codecgen.yaml").write_text(MANIFEST)
    (tmp_path / "case.yaml").write_bytes(data)
    files = loader.read_files(tmp_path)
    _, found = loader.load(files)
    assert [d.code for d in found] == ["C001"]
    render(found, files).encode("utf-8")


def test_the_byte_that_is_not_utf8_is_shown(tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_bytes(b"layout: a\ndoc: caf\xe9\n")
    _, found = yaml_tree.load("case.yaml", loader.read_files(tmp_path)["case.yaml"])
    assert (found[0].message, found[0].span.line, found[0].span.column) == (
        "the file is not UTF-8 text",
        2,
        9,
    )


def test_a_byte_order_mark_and_windows_line_ends_are_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "codecgen.yaml").write_bytes(
        b"\xef\xbb\xbf" + MANIFEST.replace("\n", "\r\n").encode()
    )
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbflayout: a\r\nfields:\r\n  b: u8\r\n  c: u9\r\n")
    model, found = loader.load(loader.read_files(tmp_path))
    assert model is not None
    assert [(d.code, d.span.line, d.span.column) for d in found] == [("C013", 4, 6)]


def test_hidden_files_are_passed_over_and_yml_is_spoken_of(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for name in (".hidden.yaml", ".git/x.yaml", "a.yml", "b.yaml", "c.txt"):
        (tmp_path / name).write_text("enums: {}\n")
    assert list(loader.read_files(tmp_path)) == ["a.yml", "b.yaml"]


@pytest.mark.parametrize(
    "text",
    [
        "layout: a\nfields:\n\tb: u8\n",
        "layout: a\nfields: {b: u8\n",
        "%YAML 9.9\n---\nlayout: a\n",
        "layout: a\nfields: !!map {b: u8}\n",
        "? [a, b]\n: c\n",
        "layout: a\nfields: {b: u8, b: u8}\n",
        "layout: ['a']\nfields: {b: u8}\n",
        "layout: a\nfields: {b: {type: u8, const: 1e400}}\n",
        "layout: a\nfields: {b: {type: u8, const: 0x}}\n",
        "layout: a\nfields: {b: {type: u8, const: 1_000}}\n",
        f"layout: a\nfields: {{b: {{type: u8, const: {'9' * 5000}}}}}\n",
        f"layout: a\nfields: {{b: {{type: u8, when: b == {'9' * 5000}}}}}\n",
        f"layout: a\nfields: {{b: {{type: u8, when: {'(' * 5000}b}}}}\n",
        f"layout: a\nfields: {{b: {{type: u8, when: {'not ' * 5000}b}}}}\n",
        f"layout: a\nfields: {{b: {{type: u8, when: {'b and ' * 5000}b}}}}\n",
        f"layout: a\nversions: 0-{'9' * 400}\nfields: {{b: u8}}\n",
        "layout: a\nversions: 0-99999\nfields: {b: u8}\n",
        "layout: a\nfields: {b: {bytes: 99999999999999999999}}\n",
        "layout: a\nfields: {b: {bits: u8, members: {c: {at: 99-99}}}}\n",
        "layout: a\nfields: {__import__: u8, __class__: u8, os.system: u8}\n",
        "layout: a\nfields: {b: {layout: __import__('os')}}\n",
        "layout: ../../etc/passwd\nfields: {b: u8}\n",
        "enums: {__init__: {values: {__doc__: 1}}}\n",
        "choice: a\nby: b\ncases: {\u0663: a}\n",
        "layout: a\nversions: \u0660-\u0661\nfields: {b: u8}\n",
        "layout: a\nfields: {b: u8}\nexamples: [{name: x, hex: zz, values: {}}]\n",
        "layout: a\nfields: {b: {bytes: u8}}\nexamples: [{name: x, build: true, values: {b: {hex: zz}}}]\n",
        "layout: a\nsince: {app: 1.0, rfc: [1, [2]]}\nfields: {b: u8}\n",
        "layout: a\nfields: {b: {type: u8, since: []}}\n",
        "layout: a\nversions: 0\nversion_notes: {x: {}, 99999: {}}\nfields: {b: u8}\n",
    ],
)
def test_odd_yaml_gives_findings(text: str) -> None:
    with limit_cpu_time(5):
        assert findings(text)


@pytest.mark.parametrize(
    "text", ["", "\n", "---\n---\n", "# nothing\n", "~\n", "null\n", "[]\n", "7\n"]
)
def test_nearly_empty_files_do_no_harm(text: str) -> None:
    assert codes(text) <= {"C005", "C006", "C025"}


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "---\n",
        "[]",
        "package: a",
        "language: 1\npackage: [a]\ntitle: {}",
        "language: []",
        "language: 99999999999999",
        "\x00",
    ],
)
def test_odd_manifests_give_findings(manifest: str) -> None:
    model, found = loader.load(
        {"codecgen.yaml": manifest, "a.yaml": "layout: a\nfields: {b: u8}\n"}
    )
    assert model is None
    assert {d.code for d in found} <= {"C001", "C005", "C006", "C020", "C025"}
    assert found


HOSTILE_TEXTS = [
    '"""\nimport os\nos.system("x")\n"""',
    "''' + __import__('os').getcwd() + '''",
    "\\",
    'ends in a quote"',
    '\\"""',
    "`backticks` and <script>alert(1)</script> and </svg> and {{ 7 * 7 }} and {% x %} and ${x} and %s",
    "line one\nline two\n\n# heading\n- list",
    "\\N{BULLET} \\x00 \\u202e {0.__class__}",
    "|" * 10 + "---" + "*" * 10,
    "a\u2028b\u2029c\u0085d",
    "é" * 300,
]


@pytest.mark.slow
@pytest.mark.parametrize("hostile", HOSTILE_TEXTS)
def test_texts_stay_data_in_generated_python(hostile: str) -> None:
    """A schema whose every text is hostile gives the same statements as one whose texts are plain."""
    assert _statements(hostile) == _statements("plain")


def _statements(text: str) -> dict[str, list[str]]:
    word = "".join(c for c in text if not c.isspace())[:80]
    documents = [
        {
            "layout": "packet",
            "doc": text,
            "fields": {
                "kind": {"type": "u8", "enum": "kind", "doc": text, "spelled": word, "unit": word},
                "body": {"bytes": "u32", "documentation": {"misprint": {"as": text, "doc": text}}},
            },
            "derived": {"total": {"type": "i8", "is": "1", "doc": text, "unit": word}},
            "examples": [
                {"name": text, "doc": text, "build": True, "values": {"kind": 1, "body": text}}
            ],
        },
        {
            "enums": {
                "kind": {"doc": text, "values": {"one": {"value": 1, "doc": text, "spelled": word}}}
            }
        },
        {"choice": "entry", "doc": text, "by": "magic", "cases": {0: "framed"}},
        {"layout": "framed", "fields": {"magic": {"type": "u8", "const": 0}}},
    ]
    manifest = {"language": 1, "package": "example_codecs", "title": text, "doc": text}
    files = {
        "codecgen.yaml": yaml.safe_dump(manifest, allow_unicode=True),
        "case.yaml": yaml.safe_dump_all(documents, allow_unicode=True, sort_keys=False),
    }
    model, found = loader.load(files)
    assert model is not None
    assert not [*found, *run(model)]
    emitted = TARGETS["construct"](make_plan(model))
    assert not emitted.diagnostics
    return {
        path: [_shape(node) for node in ast.walk(ast.parse(source_text))]
        for path, source_text in emitted.files.items()
        if path.endswith(".py")
    }


def _shape(node: ast.AST) -> str:
    """What a node does; the contents of texts, and the order of imports, do not count."""
    match node:
        case ast.Name(id):
            return f"name {id}"
        case ast.Attribute(attr=attr):
            return f"attribute {attr}"
        case ast.Constant(value):
            return f"constant {type(value).__name__}"
        case _:
            return type(node).__name__


FILES = loader.read_files(SCHEMAS)
TOKENS = sorted({token for text in FILES.values() for token in text.replace(",", " ").split()})


_yaml = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(TOKENS)
    | st.sampled_from(["rest", "u8", "i32", "varint", "keep", "0-2", "1+", "big", "a == 1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "layout",
                    "choice",
                    "enums",
                    "fields",
                    "type",
                    "bits",
                    "members",
                    "at",
                    "bytes",
                    "array",
                ]
            )
            | st.sampled_from(
                [
                    "values",
                    "since",
                    "when",
                    "measures",
                    "from",
                    "cases",
                    "by",
                    "versions",
                    "derived",
                    "is",
                ]
            )
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.lists(_yaml, max_size=3))
def test_any_yaml_gives_findings_or_work(documents: list[object]) -> None:
    findings(yaml.safe_dump_all(documents, allow_unicode=True))
