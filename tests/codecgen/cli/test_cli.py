"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codecgen.cli import main
from codecgen.json_schema import json_schema
from codecgen.output import LIST
from codecgen.runtime.arrow.decoder import load_kernels, load_numpy_reader
from codecgen.targets.registry import ON_REQUEST, TARGETS, TEMPLATED
from tests.codecgen.goldens import MANIFEST
from tests.paths import ROOT, SCHEMAS

GOOD = "layout: packet\ndoc: A packet.\nfields: {size: {type: u16, measures: rest}, body: {bytes: rest}}\n"
BAD = "layout: packet\nfields: {size: {type: u16, mesures: rest}, body: {bytes: rest}}\n"

ERRORS = {
    "construct": (
        "more.yaml",
        """
layout: one
fields: {a: u8}
derived: {total: {type: i32, is: a + 1}}
---
layout: two
fields: {a: u8}
derived: {total: {type: i32, is: a + 2}}
""",
    ),
    "docs": ("pictures/more.yaml", "layout: one\nfields: {a: u8}\n"),
    "arrow": (
        "more.yaml",
        """
layout: entry
fields: {kind: {type: u8, const: 1}, size: {type: u8, measures: rest}, sum: {type: u8, default: 256 + 1}}
---
choice: any
by: kind
cases: {1: entry}
---
view: sums
of: any
columns: {sum: {type: int16}}
rows: [{of: entry, columns: {sum: sum}, write: {entry: {}}}]
""",
    ),
}
"""What a target alone refuses: a file, and its text."""


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    directory = tmp_path / "schemas"
    directory.mkdir()
    (directory / "codecgen.yaml").write_text(MANIFEST, encoding="utf-8")
    (directory / "packet.yaml").write_text(GOOD, encoding="utf-8")
    return directory


def test_check_is_good(schemas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(schemas)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("2 files, 1 layout, 0 texts, 0 enums, 0 choices: good (")
    assert err == ""


def test_check_shows_findings(schemas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (schemas / "packet.yaml").write_text(BAD, encoding="utf-8")
    assert main(["check", str(schemas)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert 'error[C004]: unknown key "mesures"' in err
    assert " --> packet.yaml:2:28" in err
    assert err.endswith("codecgen: 1 finding\n")


def test_generate_writes_what_the_targets_give(
    schemas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["generate", str(schemas), "--out", str(out)]) == 0
    line = capsys.readouterr().out
    assert " written, 0 unchanged, 0 removed" in line
    assert len(line.splitlines()) == 1
    assert (out / "example_codecs" / "packet.py").is_file()
    listed = [line.split(" ")[1:] for line in (out / LIST).read_text(encoding="utf-8").splitlines()]
    assert {"construct", "docs"} <= {target for target, _ in listed} <= set(TARGETS)
    there = {
        p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file() and p.name != LIST
    }
    assert there == {path for _, path in listed}

    assert main(["generate", str(schemas), "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith(
        f"{out}: 0 written, {len(listed)} unchanged, 0 removed"
    )


def test_generate_only_some_targets(schemas: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["generate", str(schemas), "--out", str(out), "--targets", "construct"]) == 0
    lines = (out / LIST).read_text(encoding="utf-8").splitlines()
    assert {tuple(line.split(" ")[:2]) for line in lines} == {("example_codecs", "construct")}


def test_two_packages_in_one_directory(
    schemas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(schemas, other)
    (other / "codecgen.yaml").write_text(MANIFEST.replace("example", "other"), encoding="utf-8")
    out = tmp_path / "out"
    assert main(["generate", str(schemas), "--out", str(out)]) == 0
    assert main(["generate", str(other), "--out", str(out), "--targets", "construct,arrow"]) == 0
    assert " 0 removed" in capsys.readouterr().out.splitlines()[1]
    for directory in ("example_codecs", "other_codecs", "docs"):
        assert (out / directory).is_dir()
    pages = (out / "docs" / "packet.md").read_text(encoding="utf-8")
    assert main(["generate", str(other), "--out", str(out)]) == 2
    assert (
        "files that were generated for the package example_codecs: docs/" in capsys.readouterr().err
    )
    assert (out / "docs" / "packet.md").read_text(encoding="utf-8") == pages
    assert main(["generate", str(schemas), "--out", str(out), "--check"]) == 0


def test_generate_writes_nothing_when_the_schemas_are_bad(
    schemas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (schemas / "packet.yaml").write_text(BAD, encoding="utf-8")
    assert main(["generate", str(schemas), "--out", str(tmp_path / "out")]) == 1
    assert not (tmp_path / "out").exists()
    assert "C004" in capsys.readouterr().err


def test_generate_writes_nothing_when_a_target_refuses(
    schemas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "tests/codecgen/diagnostics/C023-codec.yaml").read_text(encoding="utf-8")
    (schemas / "packet.yaml").write_text(text, encoding="utf-8")
    assert main(["generate", str(schemas), "--out", str(tmp_path / "out")]) == 1
    assert not (tmp_path / "out").exists()
    assert "C023" in capsys.readouterr().err


def test_a_view_that_kernels_cannot_read_is_left_to_the_reference_codecs(
    schemas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
choice: any
by: kind
cases: {1: entry}
---
layout: entry
fields: {kind: {type: u8, const: 1}, size: {type: u8, measures: rest}, tag: {bytes: 4}, name: {string: u8}}
---
view: names
of: any
columns: {name: {type: string}}
rows: [{of: entry, columns: {name: name}}]
---
view: heads
of: any
columns: {tag: {type: binary}}
rows: [{of: entry, header_only: true, columns: {tag: tag}}]
"""
    (schemas / "packet.yaml").write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    for command in (["check", str(schemas)], ["generate", str(schemas), "--out", str(out)]):
        assert main(command) == 0
        said = capsys.readouterr().err
        assert said.startswith("note[C023]: ")
        assert 'the view "heads" at packet.yaml:14 is read by the reference codecs' in said
    names = {path.name for path in (out / "example_codecs" / "arrow").iterdir()}
    assert names == {"__init__.py", "heads.py", "names.py", "names_kernels.py", "names_numpy.py"}
    assert main(["generate", str(schemas), "--out", str(out), "--check"]) == 0
    assert "as the schemas give them" in capsys.readouterr().out
    module = out / "example_codecs" / "arrow" / "heads.py"
    heads = runpy.run_path(str(module))["HEADS"]
    assert [column.name for column in heads.columns] == ["tag"]
    for load in (load_kernels, load_numpy_reader):
        with pytest.raises(ImportError, match="the view heads can only be read by the reference"):
            load(heads)


@pytest.mark.parametrize("refused", ["construct", "docs", "arrow"])
def test_an_error_of_any_target_changes_no_file_and_check_finds_it(
    schemas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: str
) -> None:
    out = tmp_path / "out"
    assert main(["generate", str(schemas), "--out", str(out)]) == 0
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in out.rglob("*") if p.is_file()}
    (schemas / "packet.yaml").write_text(GOOD.replace("A packet", "B"), encoding="utf-8")
    name, text = ERRORS[refused]
    (schemas / name).parent.mkdir(exist_ok=True)
    (schemas / name).write_text(text, encoding="utf-8")
    capsys.readouterr()
    generate = ["generate", str(schemas), "--out", str(out)]
    for command in (["check", str(schemas)], generate, [*generate, "--check"]):
        assert main(command) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("error[C023]: ")
        assert said.err.endswith("codecgen: 1 finding\n")
    after = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in out.rglob("*") if p.is_file()}
    assert after == before
    others = ",".join(sorted(set(TARGETS) - {refused}))
    assert main([*generate, "--targets", others]) == 0


def test_generate_can_compare(
    schemas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["generate", str(schemas), "--out", str(out)]
    assert main([*command, "--check"]) == 1
    assert not out.exists()
    assert main(command) == 0
    assert main([*command, "--check"]) == 0
    (schemas / "packet.yaml").write_text(GOOD.replace("A packet", "Another"), encoding="utf-8")
    capsys.readouterr()
    assert main([*command, "--check"]) == 1
    assert "example_codecs/packet.py differs or is missing" in capsys.readouterr().out
    (schemas / "packet.yaml").rename(schemas / "other.yaml")
    assert main([*command, "--check"]) == 1
    assert "example_codecs/packet.py is left over" in capsys.readouterr().out


def test_generate_as_of_a_release(schemas: Path, tmp_path: Path) -> None:
    (schemas / "new.yaml").write_text(
        "layout: newer\nsince: {app: 1.1}\nfields: {a: u8}\n", encoding="utf-8"
    )
    out = tmp_path / "out"
    command = ["generate", str(schemas), "--out", str(out), "--targets", "construct", "--as-of"]
    assert main([*command, "1.0.0"]) == 0
    assert "As of app 1.0" in (out / "example_codecs/packet.py").read_text(encoding="utf-8")
    assert not (out / "example_codecs/new.py").exists()
    assert main([*command, "1.1"]) == 0
    assert (out / "example_codecs/new.py").exists()


def test_what_the_generator_did_not_write_is_not_overwritten(
    schemas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    (out / "example_codecs").mkdir(parents=True)
    (out / "example_codecs" / "packet.py").write_text("mine = True\n", encoding="utf-8")
    assert main(["generate", str(schemas), "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert "example_codecs/packet.py" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "the following arguments are required: COMMAND; see codecgen --help"),
        (["chek", "x"], "see codecgen --help"),
        (["check"], "the following arguments are required: DIR; see codecgen check --help"),
        (
            ["check", "nowhere"],
            "nowhere does not exist; name the directory that holds codecgen.yaml",
        ),
        (["check", "SCHEMAS/packet.yaml"], "is not a directory"),
        (["generate", "SCHEMAS"], "the following arguments are required: --out"),
        (
            ["generate", "SCHEMAS", "--out", "x", "--targets", "constuct"],
            "unknown target 'constuct'; did you mean \"construct\"?",
        ),
        (
            ["generate", "SCHEMAS", "--out", "x", "--targets", ","],
            "--targets names none; known: construct",
        ),
        (
            ["generate", "SCHEMAS", "--out", "x", "--as-of", "9.9"],
            "9.9 is not a release of Example; the manifest lists 1.0, 1.1, 2.0",
        ),
        (
            ["generate", "SCHEMAS", "--out", "x", "--as-of", "new"],
            "new is not a release of Example",
        ),
        (
            ["explain", "pakcet", "--schemas", "SCHEMAS"],
            "unknown name 'pakcet'; did you mean \"packet\"?",
        ),
        (["explain", "packet@1", "--schemas", "SCHEMAS"], "packet has no versions, not '1'"),
        (["explain", "packet.size.x", "--schemas", "SCHEMAS"], "size of packet has nothing inside"),
        (["explain", "", "--schemas", "SCHEMAS"], "unknown name ''; the schemas declare packet"),
        (["diff", "pack", "1.0", "1.1", "--schemas", "SCHEMAS"], 'did you mean "packet"?'),
        (["diff", "packet", "0", "1.1", "--schemas", "SCHEMAS"], "0 is not a release of Example"),
        (["explain", "packet"], "schemas does not exist"),
    ],
)
def test_wrong_usage_is_one_line_and_the_next_step(
    schemas: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    line: str,
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    # An installed package that brings its schemas would do in the place of ./schemas.
    monkeypatch.setattr("codecgen.directories.entry_points", lambda group: ())
    assert main([argument.replace("SCHEMAS", str(schemas)) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("codecgen: ")
    assert line in err
    assert len(err.splitlines()) == 1
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [[], ["check"], ["generate"], ["explain"], ["diff"], ["breaking"], ["json-schema"]],
)
def test_help_has_examples(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    assert f"codecgen {' '.join(command)}".strip() in out.split("examples:")[1]


def test_help_names_all_targets(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["generate", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert (
        f"targets to generate: {', '.join([*TARGETS, *ON_REQUEST])} (default: {','.join(TARGETS)})"
        in out
    )
    assert f"for one target of {', '.join(TEMPLATED)}" in out


def test_explain_and_diff(schemas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "packet.size", "--schemas", str(schemas)]) == 0
    assert capsys.readouterr().out.startswith("packet.size: field of packet (packet.yaml:3)\n")
    assert main(["diff", "packet", "1.0", "1.1", "--schemas", str(schemas)]) == 0
    assert capsys.readouterr().out == "packet: 1.0 -> 1.1\n  nothing changed\n"
    versions = GOOD.replace("doc: A packet.", "versions: 0-1")
    (schemas / "packet.yaml").write_text(versions, encoding="utf-8")
    assert main(["diff", "packet", "0", "1", "--schemas", str(schemas)]) == 0
    assert capsys.readouterr().out == "packet: version 0 -> version 1\n  nothing changed\n"
    assert main(["diff", "packet", "0", "2", "--schemas", str(schemas)]) == 2
    assert "packet has versions 0-1, not 2" in capsys.readouterr().err
    assert main(["diff", "packet", "0", "1.1", "--schemas", str(schemas)]) == 2
    assert "name two of a kind" in capsys.readouterr().err
    (schemas / "packet.yaml").write_text(BAD, encoding="utf-8")
    for command in (["explain", "packet"], ["diff", "packet", "1.0", "1.1"]):
        assert main([*command, "--schemas", str(schemas)]) == 1
        assert "C004" in capsys.readouterr().err


IN_BAND = """
layout: packet
versions: 0-5
fields:
  inner: part
---
layout: part
versions: 0-2
fields:
  version: {type: u8, is: version}
  late: {type: u8, versions: 2}
"""


def test_a_version_that_a_held_layout_lacks(
    schemas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A layout that holds its own version has not those of the layout around it."""
    path = schemas / "packet.yaml"
    path.write_text(IN_BAND.replace("inner: part", "inner: {layout: part}"), encoding="utf-8")

    def lines(before: str, after: str) -> list[str]:
        assert main(["diff", "packet", before, after, "--schemas", str(schemas)]) == 0
        said = capsys.readouterr().out.splitlines()
        return [line for line in said if line.startswith("  in part: ")]

    assert lines("0", "2") == ["  in part: + late: uint8, at byte 1 is added"]
    assert lines("0", "5") == ["  in part: version 5 does not exist"]
    assert lines("4", "5") == [f"  in part: version {n} does not exist" for n in (4, 5)]
    assert lines("5", "5") == ["  in part: version 5 does not exist"]


def test_what_the_system_refuses_is_one_line(
    schemas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", str(schemas), "--out", str(schemas / "packet.yaml" / "out")]) == 2
    err = capsys.readouterr().err
    assert "packet.yaml" in err
    assert len(err.splitlines()) == 1


def test_a_left_over_file_that_was_changed_by_hand_is_spoken_of(
    schemas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["generate", str(schemas), "--out", str(out), "--targets", "construct"]
    assert main(command) == 0
    (out / "example_codecs" / "packet.py").write_text("mine = True\n", encoding="utf-8")
    (schemas / "packet.yaml").rename(schemas / "other.yaml")
    assert main(command) == 0
    assert "example_codecs/packet.py is no longer generated" in capsys.readouterr().err
    assert (out / "example_codecs" / "packet.py").read_text(encoding="utf-8") == "mine = True\n"


def test_json_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["json-schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()


def test_a_diagnostic_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "c012"]) == 0
    assert capsys.readouterr().out.startswith(
        "C012: Undeclared layout, choice, enum or enum value\n"
    )


@pytest.mark.slow
def test_the_module_runs(schemas: Path) -> None:
    """As a process of its own, in a terminal that knows no letter beyond ASCII."""
    (schemas / "packet.yaml").write_text(
        "layout: packet\ndoc: é\nfields: {é: u8}\n", encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "codecgen", "check", str(schemas)],
        capture_output=True,
        env={"PYTHONPATH": str(ROOT / "generator"), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"error[C007]" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_a_reader_that_went_away_is_no_reason_for_a_traceback() -> None:
    command = [sys.executable, "-m", "codecgen", "json-schema"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT / "generator")},
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.slow
def test_the_generated_files_of_this_repository_are_current(
    capsys: pytest.CaptureFixture[str],
) -> None:
    listed = (ROOT / "generated" / LIST).read_text(encoding="utf-8")
    targets = sorted({line.split(" ")[1] for line in listed.splitlines()})
    command = [
        "generate",
        str(SCHEMAS),
        "--out",
        str(ROOT / "generated"),
        "--targets",
        ",".join(targets),
    ]
    assert main([*command, "--check"]) == 0, capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "construct", "arrow", "docs"])
@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("0003 6162", "2 bytes are left"),
        ("0002 6162", "body is 'ab', not 'xy'"),
        ("0002 7879", ""),
    ],
)
def test_examples_are_tried_whatever_is_asked_for(
    schemas: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    data: str,
    said: str,
) -> None:
    example = f"examples: [{{name: one, hex: {data}, values: {{body: xy}}}}]\n"
    (schemas / "packet.yaml").write_text(GOOD + example, encoding="utf-8")
    arguments = ["generate", str(schemas), "--out", str(tmp_path / "out"), "--targets", command]
    if command == "check":
        arguments = ["check", str(schemas)]
    assert main(arguments) == bool(said)
    err = capsys.readouterr().err
    assert err.count("error[") == err.count("error[C024]") == bool(said)
    assert said in err
    assert (tmp_path / "out").exists() == (not said and command != "check")


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["check", "--help"], ["completion", "bash"]]
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_is_full(words: list[str], buffered: bool) -> None:
    """Also if the text waits in a buffer until the command ends."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["PYTHONUNBUFFERED"] = "" if buffered else "1"
    command = [sys.executable, "-m", "codecgen", *words]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env=environment, check=False
        )
    assert done.stderr == b"codecgen: [Errno 28] No space left on device\n"
    assert done.returncode == 2
