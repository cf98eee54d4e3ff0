"""Control records that Kafka refuses: ``kafka-log dump`` shows their bytes, says why, and exits with 1."""

from __future__ import annotations

import base64
import io
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.check_plants_of_segments import control

COMMIT = 300
"""Position of the only marker, at offset 4."""

REFUSED = {
    "short key": (b"\x06\0\0\0\x0e" + bytes(7), "2 bytes are needed, 1 is left"),
    "no key": (b"\x01\x14" + bytes(10), "the key is null"),
    "version below 0": (b"\x08\xff\xff", "key.version"),
    "short value": (b"\x10\0\0\0\1\0\0\0\0\4\0\0", "value."),
}
"""Bytes from the length of the key on, and a part of the reason."""


@pytest.fixture(params=REFUSED)
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    data, reason = REFUSED[request.param]
    return plant(tmp_path, data), reason


def plant(root: Path, data: bytes) -> Path:
    topic = shutil.copytree(SAMPLES / "kafka-4.x" / "transactions-2", root / "transactions-2")
    control(f"transactions-2/{0:020d}.log", COMMIT, data)(root)
    return topic


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--last", "6"], ["--decode", "key=utf8"]])
@pytest.mark.parametrize("output", ["text", "jsonl", "csv", "parquet"])
def test_what_kafka_refuses_is_damage(
    damaged: tuple[Path, str],
    output: str,
    more: list[str],
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    topic, reason = damaged
    command = ["dump", str(topic), "--format", output, *more]
    assert main([*command, "--control-records"]) == 1
    printed = capfdbinary.readouterr()
    said = printed.err.decode()
    assert "1 control record cannot be decoded (shown as bytes); the first: " in said
    assert reason in said and f"byte {COMMIT} of {topic}" in said
    assert main(command) == 0, "other records are whole"
    assert not capfdbinary.readouterr().err


def test_the_bytes_are_shown(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    topic = plant(tmp_path, REFUSED["short key"][0])
    command = ["dump", str(topic), "--control-records", "--offsets", "4:5", "--format"]
    assert main([*command, "jsonl"]) == 1
    row = json.loads(capfdbinary.readouterr().out)
    assert base64.b64decode(row["key"]["base64"]) == b"\0\0\0"
    assert main([*command, "text"]) == 1
    assert b"0x000000" in capfdbinary.readouterr().out
    assert main([*command, "parquet"]) == 1
    table = pq.read_table(io.BytesIO(capfdbinary.readouterr().out))
    assert table["key"].to_pylist() == [b"\0\0\0"]


def test_reference_objects_exit_with_1(
    damaged: tuple[Path, str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["dump", str(damaged[0]), "--format", "vectors"]) == 1
    records = map(json.loads, capfdbinary.readouterr().out.splitlines())
    assert [r["offset"] for r in records if "error" in r.get("control", {})] == [4]


@pytest.mark.parametrize(
    ("data", "more"),
    [
        pytest.param(b"\x08\0\0\0\x63", [], id="type of a newer Kafka"),
        pytest.param(REFUSED["short key"][0], ["--decode", "none"], id="bytes as asked"),
        pytest.param(REFUSED["short key"][0], ["--columns", "offset"], id="not printed"),
    ],
)
@pytest.mark.parametrize("output", ["text", "csv"])
def test_what_is_not_refused_is_no_damage(
    data: bytes, more: list[str], output: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = plant(tmp_path, data)
    assert main(["dump", str(topic), "--control-records", "--format", output, *more]) == 0
    assert not capfd.readouterr().err
