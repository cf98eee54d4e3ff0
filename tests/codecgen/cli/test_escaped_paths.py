"""No command prints a character of a path that a terminal takes for a command."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from codecgen.cli import main
from tests.codecgen.goldens import MANIFEST

HOSTILE = "a\x1b[31m\x07b\nc\r\x9bd"
"""A name of a directory: colors, a bell, lines, and the control character of one byte."""
ESCAPED = r"a\x1b[31m\x07b\nc\r\x9bd"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
GOOD = "layout: packet\ndoc: A packet.\nfields: {size: u8}\n"
COMMANDS = {
    "check": "check {path}",
    "check an unknown target": "generate {path} --targets {path} --out {path}/out",
    "fmt": "fmt {path}",
    "fmt --check": "fmt {path} --check",
    "fmt --diff": "fmt {path} --diff",
    "generate": "generate {path} --out {path}/out",
    "generate --check": "generate {path} --out {path}/out --check",
    "diff": "diff packet {path} {path} --schemas {path}",
    "diff --against": "diff --against {path} --schemas {path}",
    "breaking": "breaking {path} --against {path}",
    "explain": "explain {path} --schemas {path}",
    "parse": "parse packet {path}/bytes --schemas {path}",
    "parse --yaml": "parse packet {path}/bytes --schemas {path} --yaml",
    "parse too many bytes": "parse packet {path}/text --schemas {path}",
    "build": "build packet {path}/values.yaml --schemas {path} --out {path}/built",
    "build wrong values": "build packet {path}/text --schemas {path} --hex",
    "init": "init example --dir {path}/example",
    "import": "import kafka-json {path} --out {path}/imported",
    "an unknown command": "{path}",
}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    root = tmp_path / HOSTILE
    root.mkdir()
    (root / "codecgen.yaml").write_text(MANIFEST, encoding="utf-8")
    (root / "packet.yaml").write_text(GOOD, encoding="utf-8")
    (root / "bytes").write_bytes(b"\x01")
    (root / "text").write_text("size: many\n", encoding="utf-8")
    (root / "values.yaml").write_text("size: 1\n", encoding="utf-8")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_paths_are_escaped(
    name: str, hostile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a directory of schemas, of one that is missing, and of one with a finding in a file of such a name."""
    said = ""
    for step in ("good", "broken", "missing"):
        if step == "broken":
            (hostile / f"{HOSTILE}.yaml").write_text("layout: other\nfield: {}\n", encoding="utf-8")
        elif step == "missing":
            shutil.rmtree(hostile)
        words = [word.replace("{path}", str(hostile)) for word in COMMANDS[name].split(" ")]
        try:
            main(words)
        except SystemExit as end:
            assert end.code == 2
        for text in capsys.readouterr():
            assert not CONTROL.search(text), (step, text)
            said += text
    assert ESCAPED in said
