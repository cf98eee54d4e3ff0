"""Directories in a broker's log directory that keep it from starting: what check says of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.logs.names import prevents_broker_start
from tests.paths import SAMPLES
from tests.support.check_directories import REFUSES, REMOTE, STARTS


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLES / "kafka-4.x" / "codecs-0", tmp_path / "logs" / "codecs-0")
    for name in ("meta.properties", ".kafka_cleanshutdown"):
        shutil.copyfile(SAMPLES / "kafka-4.x" / name, tmp_path / "logs" / name)
    return tmp_path / "logs"


def found(directory: Path) -> list[tuple[str, str, str]]:
    rows = LogDirectory(directory).check().to_pylist()
    assert all(row["meaning"] and row["remedy"] for row in rows)
    return [(row["severity"], row["code"], Path(row["file"]).name) for row in rows]


@pytest.mark.share(4)
@pytest.mark.parametrize("name", [*STARTS, *REFUSES])
def test_the_rule_is_the_brokers(name: str, broker: Path) -> None:
    assert prevents_broker_start(name) is (name in REFUSES)
    assert found(broker) == []
    (broker / name).mkdir()
    errors = [file for severity, code, file in found(broker) if code == "unknown_directory"]
    assert errors == ([name] if name in REFUSES else [])
    assert main(["check", str(broker)]) == (1 if name in REFUSES else 0)
    # Brokers look at directories alone.
    (broker / name).rmdir()
    (broker / name).touch()
    assert not any(severity == "error" for severity, *_ in found(broker))


def test_the_remedy_is_of_who_made_it(broker: Path) -> None:
    for name in (".kafka-log-abc.writing", ".orders-0.partial", "lost+found"):
        (broker / name).mkdir()
    rows = LogDirectory(broker).check().to_pylist()
    said = {Path(row["file"]).name: (row["meaning"], row["remedy"]) for row in rows}
    for name in (".kafka-log-abc.writing", ".orders-0.partial"):
        assert "has not finished" in said[name][0] and "repeat the command" in said[name][1]
    assert "move it out of the log directory" in said["lost+found"][1]


def test_a_tier_by_itself_is_no_log_directory(broker: Path, tmp_path: Path) -> None:
    segment = next((broker / "codecs-0").glob("*.log"))
    copy = tmp_path / "tier" / "kafka-tiered-storage" / f"codecs-0-{REMOTE}"
    copy.mkdir(parents=True)
    shutil.copyfile(segment, copy / f"{0:020d}-{REMOTE}.log")
    assert found(tmp_path / "tier") == found(copy.parent) == []
    shutil.copytree(copy.parent, broker / copy.parent.name)
    assert found(broker) == [("error", "unknown_directory", "kafka-tiered-storage")]


def test_a_path_that_is_no_log_directory(broker: Path) -> None:
    """A partition's directory may have others in it: no broker asks for their names."""
    (broker / "codecs-0" / "lost+found").mkdir()
    assert not any(severity == "error" for severity, *_ in found(broker))
