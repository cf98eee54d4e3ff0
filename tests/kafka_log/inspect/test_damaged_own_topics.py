"""``groups``, ``metadata`` and ``coordinator`` on bytes that were changed: an answer or an error, and never a traceback."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory, SegmentReader
from kafka_log.cli import main
from kafka_log.inspect.metadata.command import KINDS
from kafka_log.inspect.transactions.coordinator_states import CoordinatorsOfClusters
from tests.paths import SAMPLES
from tests.shares import draw_seeds

NAMES = ("__cluster_metadata-0", "__consumer_offsets-0", "codecs-0", "transactions-2")


@pytest.mark.slow
@pytest.mark.share(16)
@pytest.mark.parametrize("seed", draw_seeds(30))
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


def _ignore(line: str) -> None:
    """Accept damage."""


ANSWERS: dict[str, tuple[str, Callable[[LogDirectory], Any]]] = {
    "groups": (
        "__consumer_offsets-0",
        lambda log: log.groups(salvage=True, on_damage=_ignore).drop_columns(
            ["log_end_offset", "lag"]
        ),
    ),
    "metadata": (
        "__cluster_metadata-0",
        lambda log: [
            log.metadata(kind, salvage=True, on_damage=_ignore) for kind in ("topics", "configs")
        ],
    ),
    "txn": (
        "__transaction_state-0",
        lambda log: (
            CoordinatorsOfClusters(log.partitions, _ignore).find_states(log.partitions[0]).states
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_a_batch_with_a_wrong_checksum_does_not_count(tmp_path: Path, name: str) -> None:
    """Its records can be decoded, and one of them is wrong: the answer is that of a log without it."""
    directory, ask = ANSWERS[name]
    source = SAMPLES / "kafka-4.x" / directory
    (path,) = source.glob("*.log")
    data = path.read_bytes()
    batches = [b for b in SegmentReader(path) if not b.is_control and b.records]
    answers = []
    for batch in batches[:: -(len(batches) // 3)]:
        end = batch.position + batch.size
        body = data[batch.position : end]
        # A letter of a name or a number: the records can be decoded.
        letter = max(m.start() for m in re.finditer(rb"[a-z0-9]", body))
        wrong = body[:letter] + bytes([body[letter] ^ 1]) + body[letter + 1 :]
        for kind, middle in (("damaged", wrong), ("absent", b"")):
            place = tmp_path / kind / directory
            place.mkdir(parents=True, exist_ok=True)
            (place / path.name).write_bytes(data[: batch.position] + middle + data[end:])
        found = ask(LogDirectory(tmp_path / "damaged"))
        assert found == ask(LogDirectory(tmp_path / "absent"))
        answers.append(found)
    assert any(one != answers[0] for one in answers)
