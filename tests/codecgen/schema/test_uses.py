"""Schema directories that use others."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from codecgen import directories
from codecgen.cli import main
from codecgen.explain.declarations import explain
from codecgen.plan import as_of, make_plan
from codecgen.runtime.errors import CodecError
from codecgen.schema import loader
from codecgen.schema.types import ChoiceType
from codecgen.targets import template
from codecgen.targets.registry import TARGETS, TEMPLATED
from tests.paths import ROOT
from tests.support.loaded_models import sound

WEATHER = ROOT / "tests" / "codecgen" / "used" / "weather"
OWN = """\
enums:
  level: {values: {low: 0, high: 1}}
---
layout: page
since: {logbook: 1.0}
fields:
  level: {type: u8, enum: level}
  reading: {layout: weather.reading@1}
  points: {array: weather.point, count: u8}
  sky: {type: u8, enum: weather.sky, only: [fog], since: {logbook: 2.0}}
  fog: {type: u8, when: sky == fog, since: {logbook: 2.0}}
examples:
  - name: fog
    since: {logbook: 2.0}
    hex: 01 00000007 02 02 6869 01 0100 0200 00 02 05
    values: {level: high, reading: {taken_at: 7, sky: fog, text: hi, points: [{x: 1, y: 2}]}, points: [], sky: fog, fog: 5}
---
choice: thing
given: {kind: weather.sky}
by: kind
cases: {clear: weather.point, fog: page}
---
choice: any
by: magic
cases: {0: weather.old_entry, 2: own_entry}
---
layout: own_entry
fields: {size: {type: u16, measures: rest}, magic: {type: u8, const: 2}, sky: {type: u8, enum: weather.sky}}
---
view: skies
of: any
columns: {x: {type: int64, nullable: true}, sky: {type: int16, nullable: true}, next: {type: int64, nullable: true}}
rows:
  - {of: weather.old_entry, each: points, columns: {x: item.x, next: next}}
  - {of: own_entry, columns: {sky: sky}}
---
view: theirs
of: weather.entry
columns: {x: {type: int64}}
rows: [{of: weather.old_entry, each: points, columns: {x: item.x}}]
"""


def manifest(package: str, uses: str = "{}", more: str = "") -> str:
    return f"language: 1\npackage: {package}\ntitle: Formats\nuses: {uses}\n{more}"


def directory(root: Path, name: str, uses: str, text: str, more: str = "") -> Path:
    """A schema directory of one file."""
    path = root / name
    path.mkdir()
    (path / "codecgen.yaml").write_text(manifest(f"{name}_codecs", uses, more), "utf-8")
    (path / "case.yaml").write_text(text, "utf-8")
    return path


def findings(path: Path) -> list[str]:
    return [d.message for d in directories.load(path)[1]]


@pytest.fixture
def logbook(tmp_path: Path) -> Path:
    shutil.copytree(WEATHER, tmp_path / "weather")
    releases = "release_line: logbook\nreleases: [1.0, 2.0]\ndocuments: {as_of: [1.0]}\n"
    return directory(tmp_path, "logbook", "{weather: ../weather}", OWN, releases)


@contextmanager
def generated(out: Path, *schemas: Path) -> Iterator[ModuleType]:
    """The package of the last of some directories; those of all of them can be imported."""
    for path in schemas:
        assert main(["generate", str(path), "--out", str(out), "--targets", "construct,arrow"]) == 0
    before = set(sys.modules)
    sys.path.insert(0, str(out))
    try:
        yield importlib.import_module(f"{schemas[-1].name}_codecs")
    finally:
        sys.path.remove(str(out))
        for name in set(sys.modules) - before:
            del sys.modules[name]


def test_codecs_are_those_of_the_other_package(logbook: Path, tmp_path: Path) -> None:
    with generated(tmp_path / "out", WEATHER, logbook) as codecs:
        value = codecs.PAGE.parse(bytes.fromhex("0100000007020268690101000200 00 02 05"))
        assert value.reading.points[0].y == 2
        weather = importlib.import_module("weather_codecs")
        assert value.sky is weather.Sky.FOG
        assert codecs.PAGE.by_name["reading"].codec is weather.READING_V1
        assert "It needs weather_codecs." in str(codecs.__doc__)
        with pytest.raises(CodecError) as caught:
            codecs.PAGE.parse(bytes.fromhex("01 00000007 09"))
        assert caught.value.where.path == "reading.sky"


def test_the_other_package_is_needed(logbook: Path, tmp_path: Path) -> None:
    with (
        generated(tmp_path / "out", logbook) as codecs,
        pytest.raises(ModuleNotFoundError, match="weather_codecs"),
    ):
        codecs.PAGE  # noqa: B018


@pytest.mark.parametrize("view", ["skies", "theirs"])
def test_columns_of_used_layouts(logbook: Path, tmp_path: Path, view: str) -> None:
    pytest.importorskip("pyarrow")
    from tests.support.other_layouts import decoded

    data = bytes.fromhex("0006 00 01 0100 0200")
    rows: list[dict[str, int | None]] = [{"x": 1}]
    if view == "skies":
        data += bytes.fromhex("0002 02 02")
        rows = [{"x": 1, "sky": None, "next": 2}, {"x": None, "sky": 2, "next": None}]
    with generated(tmp_path / "out", WEATHER, logbook):
        described = importlib.import_module(f"logbook_codecs.arrow.{view}")
        by_rows = importlib.import_module(f"logbook_codecs.rows.{view}")
        numpy = importlib.import_module(f"logbook_codecs.arrow.{view}_numpy")
        found, rejected = decoded(getattr(described, view.upper()), numpy, data, None)
        assert (found, rejected) == (rows, [])
        assert getattr(by_rows, view.upper()).name == view


def test_pages_name_what_other_pages_describe(logbook: Path) -> None:
    files = TARGETS["docs"](make_plan(sound(logbook))).files
    for page in (files["docs/case.md"], files["docs/as-of-1.0/case.md"]):
        assert "- Holds: `weather.reading` and `weather.point`." in page
        said = "What begins with `weather.` is described in: The weather station's formats (`weather_codecs`)."
        assert said in page
        assert "| `weather.reading@1` |" in page
    manifest = logbook.parent / "weather" / "codecgen.yaml"
    at = "documents: {at: 'https://weather.example/{}.html'}\n"
    manifest.write_text(manifest.read_text("utf-8") + at, "utf-8")
    page = TARGETS["docs"](make_plan(sound(logbook))).files["docs/case.md"]
    assert "- Holds: [weather.reading](https://weather.example/readings.html#reading) and" in page
    site = TEMPLATED["html"](make_plan(sound(logbook)), {}).files
    assert "weather.reading" in site["html/case.html"]


def test_a_target_that_refuses_says_where_the_field_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "layout: big\nfields: {kind: {type: u8, const: 0}, size: u64, rest: {bytes: rest}}\n"
    directory(tmp_path, "far", "{}", text)
    own = (
        "choice: any\nby: kind\ncases: {0: far.big}\n---\nview: v\nof: any\n"
        "columns: {n: {type: int64}}\nrows: [{of: far.big, columns: {n: kind}}]\n"
    )
    path = directory(tmp_path, "own", "{far: ../far}", own)
    assert main(["generate", str(path), "--out", str(tmp_path / "out")]) == 0
    error = capsys.readouterr().err
    assert "note[C023]" in error
    assert "--> ../far/case.yaml:2:" in error
    assert f"2 | {text.splitlines()[1]}" in error


def test_as_of_leaves_what_is_used_as_it_is(logbook: Path) -> None:
    model = sound(logbook)
    assert model.manifest.releases == ("1.0", "2.0")
    old = as_of(model, "1.0")
    assert [f.name for f in old.layouts["page"].fields] == ["level", "reading", "points"]
    assert [v.name for v in old.enums["weather.sky"].values] == ["clear", "fog"]
    assert old.choices["thing"].cases == model.choices["thing"].cases
    make_plan(old)


def test_only_what_is_declared_here_is_generated(logbook: Path) -> None:
    model = sound(logbook)
    assert list(model.layouts) == ["page", "own_entry"]
    assert model.layouts["weather.point"].endian == "little"
    for emit in TARGETS.values():
        for path, text in emit(make_plan(model)).files.items():
            assert "point" not in path
            assert "class Sky" not in text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("weather.reading", "reading: layout (../weather/readings.yaml:4)"),
        ("weather.reading@1.text", "field of reading (../weather/readings.yaml:11)"),
        ("weather.sky.fog", "since        station 1.1"),
        ("page.reading.taken_at", "field of reading (../weather/readings.yaml:9)"),
        ("page", "weather.reading@1"),
    ],
)
def test_explain_finds_what_is_used(logbook: Path, name: str, said: str) -> None:
    assert said in explain(sound(logbook), name)


def test_the_commands_know_used_names(logbook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schemas = ["--schemas", str(logbook)]
    assert main(["diff", "weather.reading", "0", "1", *schemas]) == 0
    assert "+ text" in capsys.readouterr().out
    assert main(["explain", "--program", "weather.point", *schemas]) == 0
    assert "../weather/readings.yaml" in capsys.readouterr().out
    assert main(["explain", "weather.pont", *schemas]) == 2
    assert 'did you mean "point"?' in capsys.readouterr().err


def test_directories_are_used_through_others_once(tmp_path: Path) -> None:
    shutil.copytree(WEATHER, tmp_path / "weather")
    a = "layout: a\nfields: {p: {layout: w.point}, s: {type: u8, enum: w.sky}}\n"
    directory(tmp_path, "a", "{w: ../weather}", a)
    b = (
        "layout: b\nfields: {held: {layout: a.a}, s: {type: u8, enum: weather.sky}}\n"
        "examples:\n  - {name: one, hex: 0100 0200 02 02, values: {held: {p: {x: 1, y: 2}, s: fog}, s: fog}}\n"
    )
    model = sound(directory(tmp_path, "b", "{a: ../a, weather: ../weather}", b))
    assert sorted(model.uses) == ["a", "weather"]
    assert next(model.references(model.layouts["a.a"])).layout == "weather.point"
    c = "layout: c\nfields: {held: {layout: a.a}}\n"
    path = directory(tmp_path, "c", "{a: ../a}", c)
    model = sound(path)
    assert sorted(model.uses) == ["a", "a.w"]
    assert model.layouts["a.w.point"].span.file == "../weather/readings.yaml"
    assert "(../weather/readings.yaml:16)" in explain(model, "c.held.p.x")
    assert explain(model, "a.w.point").startswith("point: layout (../weather/readings.yaml:")
    with generated(tmp_path / "out", tmp_path / "weather", tmp_path / "a", path) as codecs:
        assert codecs.C.parse(bytes.fromhex("0100020002")).held.p.x == 1


def test_used_directories_have_their_shortest_names(tmp_path: Path) -> None:
    """`deep` is `b.deep`, which is one level down, although `a` comes first and leads to it over `a.mid`."""
    text = "layout: {}\nfields: {{a: u8}}\n"
    for name, uses in (("deep", "{}"), ("mid", "{deep: ../deep}"), ("b", "{deep: ../deep}")):
        directory(tmp_path, name, uses, text.format(name))
    directory(tmp_path, "a", "{mid: ../mid}", text.format("a"))
    model = sound(directory(tmp_path, "own", "{a: ../a, b: ../b}", text.format("own")))
    assert sorted(model.uses) == ["a", "a.mid", "b", "b.deep"]


def test_choices_inside_of_used_layouts(tmp_path: Path) -> None:
    """Fields of used layouts that are choices name these by their whole names, and decode."""
    shutil.copytree(WEATHER, tmp_path / "weather")
    far = """\
layout: given
fields: {sky: {type: u8, enum: sky}, what: {choice: thing, given: {kind: sky}, length: u16}}
examples: [{name: one, hex: 00 0001 01, values: {sky: clear, what: {a: 1}}}]
---
enums:
  sky: {values: {clear: 0, fog: 2}}
---
choice: thing
given: {kind: sky}
by: kind
cases: {clear: one, fog: two}
---
layout: one
fields: {a: u8}
---
layout: two
fields: {a: u8, b: u8}
"""
    directory(tmp_path, "far", "{}", far)
    text = (
        "layout: own\nfields: {held: {layout: far.given}}\nexamples:\n"
        "  - {name: one, hex: 02 0002 01 05, values: {held: {sky: fog, what: {a: 1, b: 5}}}}\n"
    )
    path = directory(tmp_path, "own", "{far: ../far}", text)
    held = sound(path).layouts["far.given"].fields[1].type
    assert isinstance(held, ChoiceType)
    assert held.choice == "far.thing"
    assert (held.enum, held.length) == ("far.sky", "u16")
    assert [str(ref) for ref in held.layouts] == ["far.one", "far.two"]
    with generated(tmp_path / "out", tmp_path / "far", path) as codecs:
        assert codecs.OWN.parse(bytes.fromhex("0200020105")).held.what.b == 5


def test_packages_that_used_directories_use_keep_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "sea_codecs"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", "utf-8")
    inside = directory(package, "schemas", "{}", "layout: wave\nfields: {height: u8}\n")
    (inside / "codecgen.yaml").write_text(manifest("sea_codecs"), "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    directory(tmp_path, "mid", "{sea: sea_codecs}", "layout: m\nfields: {a: {layout: sea.wave}}\n")
    text = (
        "layout: x\nfields: {a: {layout: mid.m}}\n"
        "examples: [{name: one, hex: 07, values: {a: {a: {height: 7}}}}]\n"
    )
    model = sound(directory(tmp_path, "own", "{mid: ../mid}", text))
    assert str(model.layouts["mid.sea.wave"].span) == "sea_codecs:case.yaml:1"
    assert model.uses["mid.sea"].place == "sea_codecs:"
    assert "(sea_codecs:case.yaml:2)" in explain(model, "x.a.a.height")


def test_used_directories_are_other_packages(tmp_path: Path) -> None:
    """Neither another one of those that are used, nor this one, at any depth: one would replace the other."""
    text = "layout: x\nfields: {a: u8}\n"
    for name, uses in (("a", "{}"), ("b", "{}"), ("mid", "{b: ../b}")):
        directory(tmp_path, name, uses, text)
    (tmp_path / "b" / "codecgen.yaml").write_text(manifest("a_codecs"), "utf-8")
    path = directory(tmp_path, "own", "{a: ../a, mid: ../mid}", text)
    assert findings(path) == ['the package of "mid.b" is called a_codecs, as that of "a"']
    (path / "codecgen.yaml").write_text(manifest("a_codecs", "{mid: ../mid}"), "utf-8")
    assert findings(path) == [
        'the package of "mid.b" is called a_codecs, as that of this directory'
    ]
    (path / "codecgen.yaml").write_text(
        manifest("own_codecs", "{a: ../a, c: ../own/../a}"), "utf-8"
    )
    assert findings(path) == ['"c" is the directory that "a" names already']


def test_files_alone_cannot_use_directories() -> None:
    files = {loader.MANIFEST: manifest("own_codecs", "{a: ../a}"), "case.yaml": "layout: x\n"}
    codes = [(d.code, d.message) for d in loader.load(files)[1]]
    assert (
        "C040",
        "../a cannot be found, because this program looks up no other schema directories",
    ) in codes


def test_directories_do_not_use_each_other(tmp_path: Path) -> None:
    text = "layout: x\nfields: {a: u8}\n"
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        directory(tmp_path, name, f"{{{other}: ../{other}}}", text)
    [message] = findings(tmp_path / "a")
    assert "directories use each other: a uses b uses c uses a" in message


def test_a_chain_of_directories_has_an_end(tmp_path: Path) -> None:
    text = "layout: x\nfields: {a: u8}\n"
    for i in range(20):
        directory(tmp_path, f"d{i}", f"{{n: ../d{i + 1}}}" if i < 19 else "{}", text)
    [message] = findings(tmp_path / "d0")
    assert "directories use each other in a row" in message
    assert findings(tmp_path / "d10") == []


def test_directories_that_many_use_are_read_once(tmp_path: Path) -> None:
    text = "layout: x\nfields: {a: u8}\n"
    for i in range(12):
        uses = f"{{l: ../d{i + 1}, r: ../e{i + 1}}}" if i < 11 else "{}"
        directory(tmp_path, f"d{i}", uses, text)
        directory(tmp_path, f"e{i}", uses, text)
    assert len(sound(tmp_path / "d0").uses) == 22


@pytest.mark.parametrize(
    "wanted",
    ["/etc", "../a b/../../x\\y", "os; import sys", "a.b", "..", ".", "../nowhere", '"__import__"'],
)
def test_what_is_no_schema_directory_is_refused(tmp_path: Path, wanted: str) -> None:
    path = directory(tmp_path, "own", "{}", "layout: x\nfields: {a: u8}\n")
    (path / "codecgen.yaml").write_text(manifest("own_codecs", f"{{w: '{wanted}'}}"), "utf-8")
    found = directories.load(path)[1]
    assert [d.code for d in found] in (["C040"], ["C006"])


def test_a_package_is_found_and_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "sea_codecs"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n", "utf-8")
    inside = directory(package, "schemas", "{}", "layout: wave\nfields: {height: u8}\n")
    (inside / "codecgen.yaml").write_text(manifest("sea_codecs"), "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert directories.shipped("sea_codecs") == inside
    text = (
        "layout: x\nfields: {a: {layout: sea.wave}}\n"
        "examples: [{name: one, hex: 07, values: {a: {height: 7}}}]\n"
    )
    model = sound(directory(tmp_path, "own", "{sea: sea_codecs}", text))
    assert str(model.layouts["sea.wave"].span) == "sea_codecs:case.yaml:1"
    assert "sea_codecs" not in sys.modules
    # schemas of another package are not those of this one
    (inside / "codecgen.yaml").write_text(manifest("other_codecs"), "utf-8")
    assert directories.shipped("sea_codecs") is None
    (unusable,) = directories.load(tmp_path / "own")[1]
    assert unusable.message == f"the package sea_codecs ({package}) has no codecgen schemas"
    assert "PYTHONPATH" in unusable.help


def test_names_cannot_meet_in_generated_code(tmp_path: Path) -> None:
    directory(
        tmp_path,
        "field",
        "{}",
        "enums:\n  codec: {values: {a: 1}}\n---\nlayout: field\nfields: {a: u8}\n",
    )
    text = (
        "enums:\n  own_codec: {values: {b: 2}}\n---\n"
        "layout: x\n"
        "fields: {a: {type: u8, enum: enum.codec}, b: {type: u8, enum: own.codec}, c: {type: u8, enum: own_codec}}\n"
        "examples: [{name: one, hex: 01 01 02, values: {a: a, b: a, c: b}}]\n"
    )
    path = directory(tmp_path, "own", "{own: ../field}", text.replace("enum.codec", "own.codec"))
    with generated(tmp_path / "out", tmp_path / "field", path) as codecs:
        value = codecs.X.parse(bytes.fromhex("010102"))
        assert [type(part).__name__ for part in value.values()] == ["Codec", "Codec", "OwnCodec"]


HELD = """\
layout: own
versions: 0-1
fields: {reading: {layout: weather.reading}}
examples:
  - {name: old, version: 0, hex: 00000007 00 00, values: {reading: {taken_at: 7, sky: clear, points: []}}}
  - {name: new, version: 1, hex: 00000007 00 00 00, values: {reading: {taken_at: 7, sky: clear, text: "", points: []}}}
---
layout: one
fields: {reading: {layout: weather.reading@0}}
"""


def test_versions_of_used_layouts_are_as_those_of_ones_own(tmp_path: Path) -> None:
    shutil.copytree(WEATHER, tmp_path / "weather")
    path = directory(tmp_path, "own", "{weather: ../weather}", HELD)
    sound(path)
    (path / "case.yaml").write_text(HELD.replace("reading@0", "reading"), "utf-8")
    assert findings(path) == [
        '"weather.reading" has versions 0-1, and nothing says which one "one" holds'
    ]
    (path / "case.yaml").write_text(HELD.replace("reading@0", "reading@2"), "utf-8")
    assert findings(path) == ['"weather.reading" has no version 2']


def test_templates_see_the_names_of_what_is_used(logbook: Path) -> None:
    text = (
        "{% for used in manifest.uses %}{{ used.name }} {{ used.package }} {{ used.title }}\n{% endfor %}"
        "{% for layout in layouts %}{% for field in layout.versions[0].fields if field.type.layout %}\n"
        "{{ field.type.layout }} {{ field.type.layout | pascal }} {{ field.type.versions | first }}\n"
        "{% endfor %}{% endfor %}"
    )
    emitted = template.emit(make_plan(sound(logbook)), {"names.txt.j2": text})
    assert emitted.diagnostics == ()
    words = emitted.files["names.txt"].split("\n")
    assert words[0] == "weather weather_codecs The weather station's formats"
    assert "weather.reading WeatherReading weather.reading_v1" in words


def test_kaitai_leaves_out_what_is_used(logbook: Path) -> None:
    emitted = template.emit_kaitai(make_plan(sound(logbook)), {})
    page = emitted.files["kaitai/page.ksy"]
    assert "# - reading: another schema directory describes weather.reading" in page
    assert "weather." not in page.split("\nmeta:")[1]
    assert any("another schema directory" in line for line in emitted.warnings)


def test_what_the_other_directory_cannot_be_is_said_of_its_files(tmp_path: Path) -> None:
    far = directory(
        tmp_path,
        "far",
        "{}",
        "layout: a\nfields: {x: {layout: b}}\n---\nlayout: c\nfields: {x: u8}\n",
    )
    (far / "other.yaml").write_text("layout: b\nfields: {x: {layout: c}}\n", "utf-8")
    text = "layout: x\nfields: {a: {layout: far.a}}\nexamples: [{name: one, hex: 01, values: {a: {x: {x: {x: 1}}}}}]\n"
    _, found, _ = directories.load(directory(tmp_path, "own", "{far: ../far}", text))
    assert [(d.code, d.span.file) for d in found] == [("C023", "../far/case.yaml")]
