"""Target template: what templates see, which files they give, and that nothing of a schema gets out of hand."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import typing
from pathlib import Path

import pytest

from codecgen.cli import COULD_NOT_RUN, FINDINGS, GOOD, main
from codecgen.output import OutputError, write_tree
from codecgen.plan import as_of, make_plan
from codecgen.schema.loader import load
from codecgen.targets.template import emit
from codecgen.targets.template.build import build
from codecgen.targets.template.schema_text import Words
from codecgen.targets.template.view import REFERENCE, Root
from tests.codecgen.goldens import MANIFEST
from tests.codecgen.schemas import checked, model_of, our_model
from tests.codecgen.targets.template import templates_page
from tests.support.hostile_texts import hostile
from tests.support.template_targets import our_plan, ours, refused

# ---------------------------------------------------------------- the page


PAGE = templates_page.PAGE.read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```(yaml|jinja|c)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))


def test_the_reference_is_current() -> None:
    assert templates_page.REFERENCE_PAGE.read_text(encoding="utf-8") == templates_page.reference()


def test_the_example_of_the_page(tmp_path: Path) -> None:
    schemas, templates, out = tmp_path / "schemas", tmp_path / "templates", tmp_path / "out"
    for folder in (schemas, templates):
        folder.mkdir()
    (schemas / "codecgen.yaml").write_text("language: 1\npackage: weather_codecs\ntitle: Weather\n")
    (schemas / "reading.yaml").write_text(BLOCKS["yaml"])
    (templates / "structs.h.j2").write_text(BLOCKS["jinja"])
    where = ["--templates", str(templates), "--out", str(out)]
    assert main(["generate", str(schemas), "--targets", "template", *where]) == GOOD
    assert (out / "structs.h").read_text() == BLOCKS["c"]
    assert {p.name for p in out.iterdir()} == {"structs.h", ".codecgen-files"}


@pytest.mark.slow
def test_a_compiler_takes_what_the_example_makes_of_our_schemas(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    emitted = ours({"structs.h.j2": BLOCKS["jinja"]})
    source = tmp_path / "structs.c"
    source.write_text(emitted.files["structs.h"])
    assert "struct __attribute__((packed)) offset_index_entry {" in emitted.files["structs.h"]
    assert any(line.endswith("record_batch has no fixed size") for line in emitted.warnings)
    subprocess.run(
        [compiler, "-std=c11", "-Wall", "-Werror", "-c", source, "-o", "/dev/null"], check=True
    )


def test_the_error_of_the_page() -> None:
    template = "{% for field in layouts[0].versions[0].fields %}\n{{ field.name }} {{ field.ofset }}\n{% endfor %}\n"
    code, file, line, message = refused({"fields.txt.j2": template})
    assert f"error[{code}]: {message}\n --> {file}:{line}:1" in PAGE


# ---------------------------------------------------------------- what templates see


def test_every_kind_of_thing_is_in_the_reference_and_says_what_it_is() -> None:
    seen: set[type] = set()
    todo: list[object] = [Root]
    while todo:
        kind = todo.pop()
        if dataclasses.is_dataclass(kind) and isinstance(kind, type) and kind not in seen:
            seen.add(kind)
            hints = typing.get_type_hints(kind, include_extras=True)
            for field in dataclasses.fields(kind):
                type_, words = typing.get_args(hints[field.name])
                assert isinstance(words, str) and words.endswith(".")
                todo.append(type_)
        todo += typing.get_args(kind)
    assert seen == set(REFERENCE) and len(REFERENCE) == len(seen)


def plain(value: object) -> None:
    """All that can be reached is frozen data: numbers, text, words, tuples, dataclasses."""
    if dataclasses.is_dataclass(value):
        assert type(value) in REFERENCE
        assert type(value).__dataclass_params__.frozen
        for field in dataclasses.fields(value):
            plain(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            plain(item)
    else:
        assert value is None or type(value) in (str, int, bool, Words)


@pytest.mark.slow
def test_the_view_is_plain_frozen_data_with_words_apart() -> None:
    plain(build(our_plan()))


def test_no_text_that_people_wrote_is_anything_but_words() -> None:
    model, _ = load(hostile())
    assert model is not None
    strings: list[str] = []

    def gather(value: object) -> None:
        if isinstance(value, str):
            strings.append(value)
        elif isinstance(value, tuple):
            for item in value:
                gather(item)
        elif dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                gather(getattr(value, field.name))

    gather(build(make_plan(model)))
    assert len(strings) > 50
    for string in strings:
        assert re.fullmatch(r"[A-Za-z0-9_.+@/ ;-]*", string), string


def test_what_the_view_says_of_a_layout() -> None:
    root = build(our_plan())
    batch = next(layout for layout in root.layouts if layout.name == "record_batch").versions[0]
    fields = {field.name: field for field in batch.fields}
    assert (fields["crc"].offset, fields["crc"].size, fields["records"].offset) == (17, 4, 61)
    assert fields["crc"].checksum is not None
    assert (fields["crc"].checksum.algorithm, fields["crc"].checksum.covers[0].first) == (
        "crc32c",
        "attributes",
    )
    measured = fields["batch_length"].measures
    assert measured is not None
    assert (measured.first, measured.last, measured.to_end) == (
        "partition_leader_epoch",
        "records",
        True,
    )
    assert fields["crc"].within == ("batch_length",) and fields["batch_length"].within == ()
    assert [(b.name, b.low, b.high, b.mask) for b in fields["attributes"].type.bits][:2] == [
        ("compression", 0, 2, 7),
        ("timestamp_type", 3, 3, 8),
    ]
    records = fields["records"].type
    assert (records.kind, records.counted_by) == ("array", "record_count")
    assert records.element is not None and records.element.versions == ("record",)
    assert records.compression is not None and "zstd" in records.compression.codecs
    assert [enum.name for enum in batch.enums] == ["compression", "timestamp_type"]
    message = next(layout for layout in root.layouts if layout.name == "message")
    assert [v.name for v in message.versions] == ["message_v0", "message_v1"]
    zero = {field.name: field for field in message.versions[0].fields}
    assert "timestamp" not in zero
    assert zero["key"].type.length is not None and zero["key"].type.length.name == "i32"
    assert zero["value"].when is not None
    assert zero["value"].when.text == "attributes.compression == none"
    assert "attributes.compression" in zero["value"].when.names
    assert "zstd" not in (zero["messages"].type.compression or records.compression).codecs


EXAMPLES = "{% for e in layouts[0].examples %}[{{ 'no' if e.hex is none else e.hex }}] {% endfor %}"


def test_an_example_without_bytes_is_not_one_that_the_builder_makes() -> None:
    text = """
layout: empty
fields: {data: {bytes: rest}}
examples:
  - {name: none, hex: "", values: {data: ""}}
  - {name: made, build: true, values: {data: "a"}}
"""
    found = emit(make_plan(model_of(text)), {"a.py.j2": EXAMPLES})
    assert found.files["a.py"].split() == ["[]", "[no]"]


def test_what_the_view_says_of_codecs_that_differ_by_version() -> None:
    message = next(layout for layout in build(our_plan()).layouts if layout.name == "message")
    found = [version.fields[-1].type.compression for version in message.versions]
    assert [[(v.codec, v.reads, v.writes) for v in c.variants] for c in found if c is not None] == [
        [
            ("lz4", "unchecked-header", "legacy-header-checksum"),
            ("snappy", "xerial-or-raw", "xerial"),
        ],
        [("snappy", "xerial-or-raw", "xerial")],
    ]


def test_what_the_view_says_of_tables() -> None:
    views = {view.name: view for view in build(our_plan()).views}
    assert all(rows.header_only and not rows.writes for rows in views["batches"].rows)
    columns = {column.name: column for column in views["records"].columns}
    assert [member.name for member in columns["headers"].members] == ["key", "value"]
    rows = {rows.layout: rows for rows in views["records"].rows}
    assert rows["record_batch"].each == "records" and not rows["record_batch"].header_only
    values = {value.column: value.value.text for value in rows["record_batch"].values}
    assert (values["offset"], values["key"]) == ("records.offset", "item.key")
    written = {(value.layout, value.field) for value in rows["record_batch"].writes}
    assert ("record_batch", "base_offset") in written and ("record", "offset_delta") in written


def test_as_of_an_old_release() -> None:
    plan = make_plan(as_of(our_model(), "0.11.0"), "0.11.0")
    template = "{{ release }}{% for e in enums if e.name == 'compression' %}{% for v in e.values %} {{ v.name }}{% endfor %}{% endfor %}\n"
    assert emit(plan, {"a.h.j2": template}).files == {"a.h": "0.11.0 none gzip snappy lz4"}


# ---------------------------------------------------------------- which files there are


def test_names_of_files_say_what_they_are_for() -> None:
    model = our_model()
    emitted = ours(
        {
            "one.txt.j2": "{{ manifest.title }}",
            "a/{{layout}}.txt.j2": "{{ layout.name }}",
            "b/{{ version }}.txt.j2": "{{ layout.name }} {{ version.name }}",
            "c/{{module}}.txt.j2": "{{ module.path }}",
            "d/{{enum}}.txt.j2": "{{ enum.name }}",
            "e/{{choice}}/{{choice}}.txt.j2": "{{ choice.name }}",
            "t/{{text}}.txt.j2": "{{ text.lines | length }} {{ text.properties | length }}",
            "f/{{view}}.txt.j2": "{{ view.name }}",
            "_part.j2": "{{ nothing }}",
            "g/_part.j2": "{{ nothing }}",
        }
    )
    assert not emitted.diagnostics
    files = emitted.files
    assert files["one.txt"] == "Kafka's record formats"
    assert {p for p in files if p.startswith("a/")} == {f"a/{n}.txt" for n in model.layouts}
    assert files["a/message.txt"] == "message"
    assert files["b/message_v1.txt"] == "message message_v1"
    assert files["b/record_batch.txt"] == "record_batch record_batch"
    assert files["c/records/record_batch.txt"] == "records/record_batch"
    assert files["d/compression.txt"] == "compression"
    assert files["e/log_entry/log_entry.txt"] == "log_entry"
    assert files["t/partition_metadata.txt"] == "2 0"
    assert files["t/meta_properties.txt"] == "0 5"
    assert files["f/records.txt"] == "records"
    assert not any(path.endswith("_part") for path in files)


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        ({"{{layuot}}.h.j2": "x"}, "has {{layuot}}, which does not exist"),
        ({"{{layout.name}}.h.j2": "x"}, "has {{layout.name}}, which does not exist"),
        ({"{{layout}}-{{enum}}.h.j2": "x"}, "has {{enum}}"),
        (
            {"{{layout}}.h.j2": "x", "{{choice}}.h.j2": "x", "record.H.j2": "x"},
            "both give the file record",
        ),
        ({"{{layout}}": "x", "record.j2": "y"}, "both give the file record"),
    ],
)
def test_names_of_files_that_are_wrong(templates: dict[str, str], message: str) -> None:
    code, file, line, words = refused(templates)
    assert (code, line) == ("C034", 1) and file in templates
    assert message in words


def test_nothing_is_written_outside(tmp_path: Path) -> None:
    emitted = ours({"../x.h.j2": "x"})
    with pytest.raises(OutputError):
        write_tree(tmp_path / "out", "a", {"template": emitted.files})
    assert not (tmp_path / "x.h").exists()


# ---------------------------------------------------------------- parts and warnings


def test_parts_are_included_and_macros_imported() -> None:
    emitted = ours(
        {
            "a/{{enum}}.h.j2": '{% from "_macros.j2" import twice %}{{ twice(enum.name) }}{% include "b/_end.j2" %}',
            "_macros.j2": "{% macro twice(name) %}{{ name }} {{ name }}{% endmacro %}",
            "b/_end.j2": ";",
        }
    )
    assert emitted.files["a/compression.h"] == "compression compression;"


def test_warnings_name_their_place_once() -> None:
    model = checked(
        {
            "codecgen.yaml": "language: 1\npackage: a\ntitle: A\n",
            "b.yaml": "layout: b\nfields:\n  c: u8\n  d: u8\n",
        }
    )
    template = (
        "{% for f in layouts[0].versions[0].fields %}{{ warn(f, f.name, ' is out') }}{% endfor %}"
    )
    emitted = emit(make_plan(model), {"a.h.j2": template * 2})
    assert emitted.warnings == ("b.yaml:3: c is out", "b.yaml:4: d is out")
    assert emitted.files == {"a.h": ""}
    assert refused({"a.h.j2": "{{ warn(manifest, 'x') }}"})[0] == "C033"


# ---------------------------------------------------------------- the command line


def small(tmp_path: Path) -> Path:
    """A schema directory with one layout."""
    root = tmp_path / "schemas"
    root.mkdir()
    (root / "codecgen.yaml").write_text(MANIFEST, "utf-8")
    (root / "case.yaml").write_text("layout: a\nfields: {x: u8}\n", "utf-8")
    return root


def test_the_command_line_wants_a_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["generate", str(small(tmp_path)), "--targets", "template"]
    arguments += ["--out", str(tmp_path / "out")]
    assert main(arguments) == COULD_NOT_RUN
    assert "needs --templates" in capsys.readouterr().err
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.h.j2").write_text("{{ nothing }}\n")
    assert main([*arguments, "--templates", str(tmp_path / "t")]) == FINDINGS
    assert "--> a.h.j2:1:1" in capsys.readouterr().err
    (tmp_path / "t" / "a.h.j2").write_text("/* {{ mark }} */\n")
    assert main([*arguments, "--templates", str(tmp_path / "t")]) == GOOD
    (tmp_path / "t" / "a.h.j2").rename(tmp_path / "t" / "b.h.j2")
    assert main([*arguments, "--templates", str(tmp_path / "t")]) == GOOD
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"b.h", ".codecgen-files"}


def test_targets_on_request_are_not_made_unasked(tmp_path: Path) -> None:
    assert main(["generate", str(small(tmp_path)), "--out", str(tmp_path / "out")]) == GOOD
    there = {p.name for p in (tmp_path / "out").iterdir()}
    assert there == {"docs", "example_codecs", ".codecgen-files"}
