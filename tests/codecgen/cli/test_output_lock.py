"""One process at a time writes to an output of ``codecgen``: the second one says who writes there, and changes nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codecgen.cli import main
from tests.codecgen.goldens import MANIFEST

HOLD = """
import sys
from pathlib import Path
from codecgen import output
lock = {"directory": output.locked_directory, "file": output.locked_file}[sys.argv[2]]
with lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
LAYOUT = "layout: packet\ndoc: A packet.\nfields: {body: {bytes: rest}}\n"
DEFINITION = {
    "apiKey": 1,
    "type": "request",
    "name": "PingRequest",
    "validVersions": "0",
    "flexibleVersions": "none",
    "fields": [{"name": "Id", "type": "int32", "versions": "0+", "about": "An id."}],
}


@contextmanager
def held(out: Path, noun: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of an output."""
    command = [sys.executable, "-c", HOLD, str(out), noun]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def commands(root: Path) -> dict[str, tuple[Path, str, list[str]]]:
    """The commands with an output: its path, its kind, and the words."""
    schemas = root / "schemas"
    (root / "kafka").mkdir()
    schemas.mkdir()
    (schemas / "codecgen.yaml").write_text(MANIFEST)
    (schemas / "packet.yaml").write_text(LAYOUT)
    (root / "kafka" / "PingRequest.json").write_text(json.dumps(DEFINITION))
    (root / "values.yaml").write_text("body: {hex: 'cafe'}\n")
    build = ["build", "packet", str(root / "values.yaml"), "--schemas", str(schemas)]
    return {
        "generate": (root / "made", "directory", ["generate", str(schemas)]),
        "import": (root / "imported", "directory", ["import", "kafka-json", str(root / "kafka")]),
        "build": (root / "packet.bin", "file", build),
    }


@pytest.mark.parametrize("name", ["generate", "import", "build"])
def test_the_second_process_says_who_writes_there(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, noun, words = commands(tmp_path)[name]
    words += ["--out", str(out), *(["--targets", "construct"] if name == "generate" else [])]
    with held(out, noun) as process:
        before = sorted(tmp_path.rglob("*"))
        assert main(words) == 2
        said = capsys.readouterr().err
        who = rf"codecgen: {re.escape(str(out))}: process {process.pid} on \S+ \(.*, since .*\) writes into it: wait until it is done, or choose another {noun}$"
        assert re.search(who, said.rstrip("\n"), re.DOTALL), said
        assert sorted(tmp_path.rglob("*")) == before
        process.kill()
        process.wait()
    assert main(words) == 0
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".lock")]


def test_nothing_stays_of_an_import_that_writes_nothing(tmp_path: Path) -> None:
    _, _, words = commands(tmp_path)["import"]
    broken = {**DEFINITION, "fields": [{"name": "Id", "type": "int7", "versions": "0+"}]}
    (tmp_path / "kafka" / "PingRequest.json").write_text(json.dumps(broken))
    assert main([*words, "--out", str(tmp_path / "new" / "imported")]) == 1
    assert not (tmp_path / "new").exists()
