"""What a target has to do, shown by a small one (:mod:`tests.codecgen.targets.toy_target`)."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from codecgen.cli import main
from codecgen.targets import registry
from tests.codecgen.goldens import MANIFEST
from tests.codecgen.targets import toy_target

STRUCT = registry.Target("struct", f"{toy_target.__name__}.emit")
POINTS = "layout: point\nendian: little\nfields: {x: i16, y: i64, colour: u8}\n"


@pytest.fixture
def schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "TARGETS", {**registry.TARGETS, "struct": STRUCT})
    directory = tmp_path / "schemas"
    directory.mkdir()
    (directory / "codecgen.yaml").write_text(MANIFEST, encoding="utf-8")
    (directory / "points.yaml").write_text(POINTS, encoding="utf-8")
    return directory


def test_a_target_is_a_function_and_a_line_in_the_registry(schemas: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["generate", str(schemas), "--out", str(out), "--targets", "struct,construct"]
    assert main(arguments) == 0
    lines = (out / "formats.txt").read_text(encoding="utf-8").splitlines()
    name, format_ = lines[1].split(" ")
    assert name == "point@0"
    assert struct.unpack(format_, bytes.fromhex("feff 0100000000000000 ff")) == (-2, 1, 255)


def test_what_it_cannot_say_it_refuses_by_name(
    schemas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = POINTS.replace("colour: u8", "colour: {type: u8, const: 7}, name: {string: u8}")
    (schemas / "points.yaml").write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    assert main(["generate", str(schemas), "--out", str(out), "--targets", "struct"]) == 1
    said = capsys.readouterr().err
    assert '"colour" has a rule (const), which target struct cannot express' in said
    assert '"name" is read by Bytes, which target struct cannot express' in said
    assert not out.exists()
