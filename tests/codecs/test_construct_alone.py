"""Codecs that are generated with target construct alone: everything that reads works with them, and says the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codecgen.cli import main as codecgen
from kafka_log.cli import main
from tests.paths import ROOT, SAMPLES, SCHEMAS

LOGS = str(SAMPLES / "kafka-4.x")
TOPIC = ["--topic", "transactions"]
CONSTRUCT = ["--engine", "construct"]
COMMANDS = [
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
        input=json.dumps([*COMMANDS, *REFUSED]),
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
    for command, (code, _, error) in zip(REFUSED, found[len(COMMANDS) :], strict=True):
        assert code == 2, command
        assert "run codecgen generate with --targets construct,arrow" in error, command
    for command, (code, out, _) in zip(COMMANDS, found, strict=False):
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
