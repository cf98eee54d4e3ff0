"""A marker that cannot be decoded ends no transaction that is known, and ``kafka-log txn`` says so."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log import LogDirectory, read_table
from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.check_plants_of_segments import control

COMMIT = 300
"""Position of the only marker, at offset 4."""


@pytest.mark.parametrize("data", [b"\x06\0\0\0\x0e" + bytes(7), b"\x08\xff\xff"])
def test_it_is_damage(data: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    topic = shutil.copytree(SAMPLES / "kafka-4.x" / "transactions-2", tmp_path / "transactions-2")
    assert True in LogDirectory(topic).txn(now="2030-01-01").column("hanging").to_pylist()
    assert main(["txn", str(topic)]) == 0
    capfd.readouterr()
    control(f"transactions-2/{0:020d}.log", COMMIT, data)(tmp_path)
    assert main(["txn", str(topic)]) == 1
    said = capfd.readouterr().err
    found = LogDirectory(topic).txn(now="2030-01-01", on_damage=lambda line: None)
    assert set(found.column("hanging").to_pylist()) == {None}, "the marker may have ended it"
    assert "the control record at offset 4 cannot be decoded: " in said
    assert f"byte {COMMIT} of {topic}" in said
    with pytest.raises(CodecError, match="control record at offset 4 cannot be decoded: "):
        LogDirectory(topic).txn()


@pytest.mark.parametrize("data", [b"\x06\0\0\0\x0e" + bytes(7), b"\x08\xff\xff"])
def test_no_committed_record_is_hidden_in_silence(data: bytes, tmp_path: Path) -> None:
    topic = shutil.copytree(SAMPLES / "kafka-4.x" / "transactions-2", tmp_path / "transactions-2")
    for path in [*topic.glob("*index"), *topic.glob("*.snapshot")]:
        path.unlink()
    control(f"transactions-2/{0:020d}.log", COMMIT, data)(tmp_path)
    with pytest.raises(CodecError, match="control record at offset 4 cannot be decoded"):
        read_table(topic, isolation="read_committed")
    accepting: list[dict[str, Any]] = [{"on_damage": "keep"}, {"policy": "salvage"}]
    for options in accepting:
        with pytest.warns(UserWarning, match="control record at offset 4 cannot be decoded"):
            read_table(topic, isolation="read_committed", **options)
    assert main(["dump", str(topic), "--isolation", "read_committed"]) == 1


def test_a_type_of_a_newer_kafka_is_none(tmp_path: Path) -> None:
    topic = shutil.copytree(SAMPLES / "kafka-4.x" / "transactions-2", tmp_path / "transactions-2")
    control(f"transactions-2/{0:020d}.log", COMMIT, b"\x08\0\0\0\x63")(tmp_path)
    assert main(["txn", str(topic)]) == 0
