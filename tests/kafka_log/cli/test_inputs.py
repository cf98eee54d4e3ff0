"""No command changes the files that it reads, or adds files to them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.commands import LOG_COMMANDS

BROKER = SAMPLES / "kafka-4.x"
NAMES = ("codecs-1", "transactions-2", "__consumer_offsets-0", "__transaction_state-0")
WRITES = ("export", "salvage", "merge", "cut", "reindex", "convert", "report")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a log directory with valid partitions, damaged ones, and an index that is wrong."""
    root = tmp_path / "logs"
    for name in (*NAMES, "__cluster_metadata-0"):
        shutil.copytree(BROKER / name, root / name)
    shutil.copy(BROKER / "meta.properties", root)
    for name, keep, at in (("damaged-0", None, 9000), ("torn-0", -7, None)):
        shutil.copytree(BROKER / "codecs-1", root / name)
        log = next((root / name).glob("*.log"))
        data = bytearray(log.read_bytes())[:keep]
        if at is not None:
            data[at] ^= 0xFF
        log.write_bytes(data)
        next((root / name).glob("*.index")).write_bytes(b"\0\0\0\1" * 4)
    return root


def read_tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return the time of the last change and the bytes of each file; no bytes for a directory."""
    return {
        path.relative_to(root).as_posix(): (
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [root, *root.rglob("*")]
    }


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("command", LOG_COMMANDS)
def test_inputs_stay_as_they_are(
    command: str, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    before = read_tree(logs)
    words = [str(logs)]
    if command == "hexdump":
        words = [str(path) for path in (logs / "damaged-0").iterdir()][:1]
    if command in ("diff", "merge"):
        words = [str(logs / "damaged-0"), str(logs / "codecs-1")]
    if command == "coordinator":
        words = ["group-classic", str(logs)]
    words += {
        "cut": ["--offsets", "0:1"],
        "sql": ["select count(*) from records"],
        "dump": ["--policy", "salvage"],
        "convert": ["--codec", "zstd"],
    }.get(command, [])
    if command in WRITES:
        words += ["--out", "out.html" if command == "report" else "out"]
    assert main([command, *words]) in (0, 1)
    assert read_tree(logs) == before
