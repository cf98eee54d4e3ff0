"""Codecs that are generated with target construct alone: everything that reads works with them, and says the same. Commands
without Arrow say the same, or what to install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codecgen.cli import main as codecgen
from kafka_log.cli import COMMANDS, main
from tests.paths import ROOT, SAMPLES, SCHEMAS
from tests.support.commands import LOG_COMMANDS, command_line
from tests.support.make_schema_registry_sample import SAMPLE as REGISTRY

LOGS = str(SAMPLES / "kafka-4.x")
TOPIC = ["--topic", "transactions"]
CONSTRUCT = ["--engine", "construct"]
ASKED = [
    ["stat", LOGS],
    ["stat", LOGS, "--by", "codec", "--deep"],
    ["check", LOGS, *CONSTRUCT],
    ["check", LOGS, "--deep"],
    ["dump", LOGS, *TOPIC, *CONSTRUCT],
    ["dump", LOGS, *TOPIC, "--batches"],
    ["dump", LOGS, *TOPIC, "--format", "jsonl"],
    ["diff", LOGS, LOGS],
    ["hexdump", f"{LOGS}/transactions-0", "--offset", "3"],
    ["txn", LOGS],
    ["producers", LOGS],
    ["keys", LOGS, "--topic", "compacted"],
    ["groups", LOGS],
    ["metadata", LOGS],
    ["coordinator", "group-a", LOGS],
    ["overview", LOGS],
    ["ls", LOGS],
    ["schemas", str(REGISTRY)],
    ["sql", LOGS, "select topic, count(*) from records group by topic order by topic"],
    ["explain", "batch_checksum"],
    ["report", LOGS, *TOPIC, "--out", "report.html"],
    ["merge", LOGS, LOGS, *TOPIC, "--out", "merged"],
    ["cut", LOGS, *TOPIC, "--offsets", "3:9", "--out", "part"],
    ["reindex", LOGS, *TOPIC, "--out", "reindexed"],
    ["salvage", LOGS, *TOPIC, "--out", "salvaged"],
    ["salvage", LOGS, *TOPIC, "--flatten", "--out", "flattened"],
    ["convert", LOGS, *TOPIC, "--codec", "zstd", "--out", "converted"],
    ["export", LOGS, *TOPIC, "--format", "jsonl", "--out", "exported"],
    ["export", LOGS, "--view", "offsets", "--format", "jsonl", "--out", "offsets"],
]

REFUSED = [
    ["dump", LOGS, *TOPIC, "--engine", "arrow"],
    ["stat", LOGS, "--engine", "arrow"],
]
"""Commands that need what target arrow writes."""
RUN = """
import contextlib, io, json, sys
import importlib.util
assert importlib.util.find_spec("kafka_codecs.arrow") is None
from kafka_log.cli import main
found = []
for command in json.loads(sys.stdin.read()):
    out = io.StringIO()
    error = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = main(command)
    found.append([code, out.getvalue(), error.getvalue()])
sys.__stdout__.write(json.dumps(found))
"""


NOT_ASKED = {"browse": "serves pages until it is stopped"}


def test_every_command_is_asked() -> None:
    assert {command for command, *_ in ASKED} == COMMANDS.keys() - NOT_ASKED.keys()


@pytest.mark.slow
def test_commands_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    alone = tmp_path / "alone"
    options = ["generate", str(SCHEMAS), "--out", str(alone), "--targets", "construct"]
    assert codecgen(options) == 0
    (tmp_path / "theirs").mkdir()
    paths = [alone, ROOT / "generator", ROOT / "pipeline"]
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([*ASKED, *REFUSED]),
        cwd=tmp_path / "theirs",
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "ours").mkdir()
    monkeypatch.chdir(tmp_path / "ours")
    capsys.readouterr()
    found = json.loads(done.stdout)
    for command, (code, _, error) in zip(REFUSED, found[len(ASKED) :], strict=True):
        assert code == 2, command
        assert "run codecgen generate with --targets construct,arrow" in error, command
    for command, (code, out, _) in zip(ASKED, found, strict=False):
        assert (code, out) == (main(command), capsys.readouterr().out), command
    ours, theirs = (
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".jsonl")
        }
        for name in ("ours", "theirs")
    )
    assert ours == theirs and len(ours) > 10


WITHOUT_ARROW = ("hexdump", "explain", "help", "completion")
"""Commands that need no Arrow."""
RUN_WITHOUT = """
import contextlib, io, json, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "pyarrow", "numba"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from kafka_log.cli import main
found = []
for command in json.loads(sys.stdin.read()):
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = main(command)
    found.append([code, out.getvalue(), error.getvalue()])
sys.__stdout__.write(json.dumps(found))
"""


@pytest.mark.slow
def test_commands_without_arrow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without numpy, pyarrow and numba a command says the same, or what to install."""
    logs = SAMPLES / "kafka-4.x"
    words = {command: command_line(command, logs, tmp_path / "out") for command in LOG_COMMANDS}
    words |= {
        "explain": ["explain", "batch_checksum"],
        "browse": ["browse", LOGS, "--port", "0"],
        "help": ["help"],
        "completion": ["completion", "bash"],
    }
    assert words.keys() >= COMMANDS.keys()
    done = subprocess.run(
        [sys.executable, "-c", RUN_WITHOUT],
        input=json.dumps([*words.values()]),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for command, (code, out, error) in zip(words, json.loads(done.stdout), strict=True):
        if command in WITHOUT_ARROW:
            assert (code, out, error) == (main(words[command]), *capsys.readouterr()), command
        else:
            assert (code, out) == (2, ""), command
            assert 'pip install "kafka-codecs[arrow]"' in error, command
    assert not (tmp_path / "out").exists()
