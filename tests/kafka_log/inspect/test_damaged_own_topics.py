"""``groups``, ``metadata`` and ``coordinator`` on bytes that were changed: an answer or an error, and never a traceback."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from kafka_log.cli import main
from kafka_log.inspect.metadata.command import KINDS
from tests.paths import SAMPLES

NAMES = ("__cluster_metadata-0", "__consumer_offsets-0", "codecs-0", "transactions-2")


@pytest.mark.share(16)
@pytest.mark.parametrize("seed", range(30))
def test_bytes_that_were_changed(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    r = random.Random(seed)
    for name in NAMES:
        shutil.copytree(SAMPLES / "kafka-4.x" / name, tmp_path / name)
        for file in (tmp_path / name).iterdir():
            if file.suffix not in (".log", ".checkpoint", ".index") or not r.randrange(3):
                continue
            data = bytearray(file.read_bytes())
            for _ in range(r.randrange(1, 4)):
                if data:
                    data[r.randrange(len(data))] = r.choice([0, 1, 0x7F, 0x80, 0xFF, r.randrange(256)])  # fmt: skip
            file.write_bytes(data[: r.randrange(len(data) + 1)] if not r.randrange(4) else data)
    path = str(tmp_path)
    for command in (
        ["groups", path, "--policy", "salvage"],
        ["groups", path, "--states"],
        ["groups", path, "--as-of", "2026-11-21T06:46:00Z", "--format", "csv"],
        ["metadata", path, "--what", r.choice(KINDS)],
        ["metadata", path, "--what", "partitions", "--changes", "20:150"],
        ["metadata", path, "--what", r.choice(KINDS), "--as-of", str(r.randrange(168))],
        ["coordinator", "g", path],
    ):
        code = main(command)
        out, err = capsys.readouterr()
        assert code in (0, 1, 2)
        assert out or err
        assert (code == 0) == (not err)
