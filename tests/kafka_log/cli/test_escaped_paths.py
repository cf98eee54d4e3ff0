"""Nothing that a command prints of a path is taken for a command by a terminal."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.commands import LOG_COMMANDS

BROKER = SAMPLES / "kafka-4.x"
HOSTILE = "a\x1b[31m\x07b\nc\r\x9bd"
"""A name of a directory: colors, a bell, lines, and the control character of one byte."""
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs below a hostile name: good, damaged, cut off, not readable, and a second copy of a partition."""
    root = tmp_path_factory.mktemp("hostile") / HOSTILE
    for name in ("codecs-1", "transactions-0", "__cluster_metadata-0", "__consumer_offsets-0"):
        if (BROKER / name).is_dir():
            shutil.copytree(BROKER / name, root / name)
    log = root / "codecs-1" / f"{0:020d}.log"
    data = log.read_bytes()
    for name, changed in {
        "damaged-0": data[:200] + b"\xff" + data[201:],
        "cut-0": data[:-7],
        "zeros-0": b"\x00" * 300,
    }.items():
        (root / name).mkdir()
        (root / name / f"{0:020d}.log").write_bytes(changed)
    (root / "much-0").mkdir()
    (root / "much-0" / f"{1 << 63:020d}.log").write_bytes(data)
    (root / "snapshots").mkdir()
    (root / "leader-epoch-checkpoint").write_text("x")
    return root


@pytest.mark.share(4)
@pytest.mark.parametrize("command", LOG_COMMANDS)
def test_paths_are_escaped(
    command: str, hostile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [hostile, hostile / "none", *sorted(hostile.iterdir())]
    if command == "hexdump":
        paths += hostile.rglob("*.log")
    said = ""
    for i, path in enumerate(paths):
        out = tmp_path / HOSTILE / str(i)
        more = {"cut": ["--offsets", "0:1"], "sql": ["select segment from records"]}.get(
            command, []
        )
        if command in ("export", "salvage", "merge", "cut", "reindex", "convert", "report"):
            more += ["--out", str(out)]
        words = [command, str(path), *more]
        if command in ("diff", "merge"):
            words.insert(2, str(hostile / "codecs-1"))
        try:
            main(words)
        except SystemExit as end:
            assert end.code == 2
        printed = capsys.readouterr()
        said += printed.err + printed.out
        for text in printed:
            assert not CONTROL.search(text), words
    assert r"a\x1b[31m\x07b\nc\r\x9bd" in said
