"""The commands ``txn`` and ``producers``: what they print and exit with, also on logs that are not as they should be."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError
from kafka_log import LogDirectory
from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.coordinator_logs import TIME, data_of, log, marker_of, state_of, states

NEW = SAMPLES / "kafka-4.x"
LATER = "2023-11-15T00:00:00Z"


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    main([*arguments, "--format", "jsonl"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# ---------------------------------------------------------------- txn


def test_one_that_hangs_is_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log(tmp_path, "orders-3", [data_of(0, 7), marker_of(1, 7, "commit"), data_of(2, 7)])
    assert main(["txn", str(tmp_path)]) == 0
    capsys.readouterr()
    states(tmp_path, state_of("tx", "complete_commit"))
    assert main(["txn", str(tmp_path)]) == 1
    table, reasons = capsys.readouterr().out.split("\n\n")
    assert [line.split()[:4] for line in table.splitlines()[1:]] == [
        ["orders", "3", "open", "yes"],
        ["orders", "3", "committed", "no"],
    ]
    place = tmp_path / "orders-3"
    assert reasons.startswith(
        f"{place} from offset 2: hanging: the coordinator has no ongoing transaction"
    )
    assert main(["txn", str(tmp_path), "--state", "committed"]) == 0
    assert main(["txn", str(tmp_path), "--state", "hanging"]) == 1
    assert main(["txn", str(tmp_path), "--producer", "8"]) == 0


def test_choices(capsys: pytest.CaptureFixture[str]) -> None:
    found = lines(capsys, "txn", str(NEW), "--state", "open", "--state", "aborted")
    assert [row["state"] for row in found] == ["open"] + ["aborted"] * (len(found) - 1)
    assert len(found) > 5
    found = lines(capsys, "txn", str(NEW), "--producer", "1001", "--producer", "3")
    assert {row["producer_id"] for row in found} == {1001, 3}
    found = lines(capsys, "txn", str(NEW), "--topic", "transactions", "--partition", "1")
    assert {(row["topic"], row["partition"]) for row in found} == {("transactions", 1)}


def test_all_columns_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["txn", str(NEW), "--state", "open", "--wide", "--now", "1795243567249"]) == 0
    out = capsys.readouterr().out
    assert "coordinator_state" in out
    assert "2026-11-20T07:00:00.000Z" in out
    assert "85567249" in out


@pytest.mark.parametrize(
    ("given", "now"),
    [
        ("1700000000123", 1700000000123),
        ("2023-11-14T22:13:20.123Z", 1700000000123),
        ("2023-11-14 22:13:20", 1700000000000),
        ("2023-11-15T00:13:20+02:00", 1700000000000),
    ],
)
def test_times(
    given: str, now: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    log(tmp_path, "orders-3", [data_of(0, 7, time=TIME - 1)])
    (row,) = lines(capsys, "txn", str(tmp_path), "--now", given)
    assert row["duration_ms"] == now - (TIME - 1)


@pytest.mark.parametrize("given", ["noon", "", "99999999999999999999", "-"])
def test_no_time_is_refused(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["txn", str(NEW), f"--now={given}"])
    assert stopped.value.code == 2
    assert "is not a time" in capsys.readouterr().err


# ---------------------------------------------------------------- odd logs


@pytest.mark.parametrize("command", ["txn", "producers"])
def test_nothing_there(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(tmp_path / "gone")]) == 2
    assert main([command, str(tmp_path)]) == 2
    assert main([command, str(NEW), "--topic", "nothing"]) == 2
    capsys.readouterr()
    (tmp_path / "t-0").mkdir()
    assert main([command, str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("no ")
    (tmp_path / "t-0" / f"{0:020}.log").touch()
    (tmp_path / "__transaction_state-0").mkdir()
    (tmp_path / "__transaction_state-0" / f"{0:020}.log").touch()
    assert main([command, str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("no ")


@pytest.mark.parametrize("command", ["txn", "producers"])
@pytest.mark.parametrize(
    "end", [marker_of(1, 7, "commit")[:-1], marker_of(1, 7, "commit")[:9], bytes(4096)]
)
def test_what_a_killed_broker_leaves(
    command: str, end: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The end of the active segment is no damage, in the directory and by itself."""
    directory = log(tmp_path, "t-0", [data_of(0, 7), end])
    for path in (tmp_path, directory, directory / f"{0:020}.log"):
        assert main([command, str(path)]) == 0
        out, err = capsys.readouterr()
        assert ("open" in out) == (command == "txn")
        assert not err
    assert LogDirectory(tmp_path).txn().column("state").to_pylist() == ["open"]
    assert LogDirectory(tmp_path).producers().num_rows == 1


@pytest.mark.parametrize("command", ["txn", "producers"])
@pytest.mark.parametrize("rolled", [True, False])
def test_an_end_that_is_damage(
    command: str, rolled: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half a batch in a segment that was rolled, and in the active one a length that can't be."""
    end = marker_of(1, 7, "commit")[:-1] if rolled else data_of(1, 7)[:8] + b"\xff" * 60
    directory = log(tmp_path, "t-0", [data_of(0, 7), end])
    if rolled:
        log(tmp_path, "t-0", [data_of(2, 7)], base=2)
    assert main([command, str(directory)]) == 1
    assert f"{directory / f'{0:020}.log'}: bytes" in capsys.readouterr().err
    with pytest.raises(CodecError, match="were skipped"):
        getattr(LogDirectory(tmp_path), command)()


def test_a_segment_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = next((NEW / "transactions-0").glob("*.log"))
    path = tmp_path / "found.log"
    shutil.copy(source, path)
    alone = lines(capsys, "txn", str(path))
    assert {(row["topic"], row["partition"]) for row in alone} == {("found", 0)}
    known = lines(capsys, "txn", str(source.parent))
    assert [row["last_offset"] for row in alone] == [row["last_offset"] for row in known]


def test_what_began_in_a_segment_that_is_gone(tmp_path: Path) -> None:
    """Without the snapshot that knew it, a marker is all that is left."""
    log(tmp_path, "t-0", [marker_of(100, 7, "abort"), data_of(101, 8)], base=100)
    found = LogDirectory(tmp_path).txn(now=TIME).to_pylist()
    assert [(r["state"], r["first_offset"], r["last_offset"], r["records"]) for r in found] == [
        ("open", 101, 101, 1),
        ("aborted", None, 100, 0),
    ]


def test_several_brokers_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each copy of a partition has its rows: one may be behind."""
    whole = [data_of(0, 7), marker_of(1, 7, "commit")]
    one = log(tmp_path / "one", "t-0", whole)
    two = log(tmp_path / "two", "t-0", whole[:1])
    found = lines(capsys, "txn", str(tmp_path / "one"), str(tmp_path / "two"))
    assert [(row["directory"], row["state"]) for row in found] == [
        (str(two), "open"),
        (str(one), "committed"),
    ]
    found = lines(capsys, "producers", str(tmp_path / "one"), str(tmp_path / "two"))
    assert [row["markers"] for row in found] == [1, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no UTF-8 need Linux")
@pytest.mark.parametrize("command", ["txn", "producers"])
def test_names_that_are_no_text(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = os.fsdecode(b"t\xff-0")
    log(tmp_path, name, [data_of(0, 7)])
    (row,) = lines(capsys, command, str(tmp_path))
    assert row["topic"] == "t\\udcff"
    assert main([command, str(tmp_path)]) == 0


@pytest.mark.slow
@examples(60)
@given(data=st.data())
def test_whatever_bytes_there_are(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Damage is told, never raised as anything but an error of the formats; and files stay as they are."""
    source = data.draw(
        st.sampled_from(["transactions-0", "compacted-again-0", "__transaction_state-0"])
    )
    root = tmp_path_factory.mktemp("log")
    directory = root / source
    shutil.copytree(NEW / source, directory)
    for path in sorted(directory.iterdir()):
        if path.suffix in {".log", ".snapshot"}:
            held = bytearray(path.read_bytes())
            for _ in range(data.draw(st.integers(0, 4))):
                if held:
                    at = data.draw(st.integers(0, len(held) - 1))
                    held[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
            path.write_bytes(bytes(held[: data.draw(st.sampled_from([None, -1, 200]))]))
    before = {path: path.read_bytes() for path in directory.iterdir()}
    told: list[str] = []
    log_directory = LogDirectory(root)
    for table in (
        log_directory.txn(on_damage=told.append),
        log_directory.producers(on_damage=told.append),
    ):
        table.validate(full=True)
    assert {path: path.read_bytes() for path in directory.iterdir()} == before
    assert all(source in line for line in told)
