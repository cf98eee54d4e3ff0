"""Segments that are not live: nothing is passed over in silence, and each is read under its own name when asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory, Selection, read_table
from kafka_log.cli import main
from kafka_log.logs.discovery import discover
from kafka_log.logs.names import STATES, parse_include
from tests.paths import SAMPLES

SEGMENT = "00000000000000000000.log"
ID = "00112233445566778899aabbccddeeff"
ONE, OTHER = (SAMPLES / "kafka-4.x" / name / SEGMENT for name in ("codecs-1", "codecs-2"))


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    places = {
        f"orders-0/{SEGMENT}": ONE,
        f"orders-0/{SEGMENT}.deleted": OTHER,
        f"orders-0.{ID}-future/{SEGMENT}": ONE,
        f"old-3.{ID}-delete/{SEGMENT}": OTHER,
    }
    for name, source in places.items():
        path = tmp_path / "broker" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)
    return tmp_path / "broker"


def test_scan_leaves_them_out(broker: Path) -> None:
    assert read_table(broker).equals(read_table(ONE))


def test_scan_takes_them_in_with_their_state(broker: Path) -> None:
    columns = ["topic", "partition", "state", "offset", "value"]
    table = read_table(broker, columns, include=["deleted", "future", "delete"])
    expected = [
        (topic, number, state, *row.values())
        for topic, number, state, source in [
            ("old", 3, "delete", OTHER),
            ("orders", 0, "live", ONE),
            ("orders", 0, "deleted", OTHER),
            ("orders", 0, "future", ONE),
        ]
        for row in read_table(source, ["offset", "value"]).to_pylist()
    ]
    assert [tuple(row.values()) for row in table.to_pylist()] == expected


@pytest.mark.parametrize("command", ["ls", "stat", "dump"])
def test_the_command_says_what_it_left_out(
    broker: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(broker)]) == 0
    sizes = f"{OTHER.stat().st_size / 1000:.1f} kB", f"{ONE.stat().st_size / 1000:.1f} kB"
    assert capsys.readouterr().err == (
        f"kafka-log: segments that are not live were skipped: 1 deleted ({sizes[0]}), 1 delete ({sizes[0]}), 1 future ({sizes[1]});"
        " add --include deleted,delete,future to read them\n"
    )
    assert main([command, str(broker), "--include", "all"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("include", [[], ["--include", "snapshot"]])
@pytest.mark.parametrize("command", ["ls", "stat", "dump", "dump --batches", "keys", "txn", "producers", "export", "diff", "salvage", "cut", "convert", "reindex"])  # fmt: skip
def test_what_each_command_says_of_snapshots(
    command: str, include: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One rule: what reads segments names the snapshots that it leaves out and takes them in; to what compares or writes logs they are no
    part of one, and it says so; salvage copies them."""
    path = str(SAMPLES / "kafka-4.x" / "__cluster_metadata-0")
    verb, *more = command.split()
    more += {"diff": [path], "cut": ["--offsets", "0:"]}.get(verb, [])
    if verb in ("export", "salvage", "cut", "convert", "reindex"):
        more += ["--out", str(tmp_path / "out")]
    assert main([verb, path, *more, *include]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "snapshot" in line]
    if verb in ("cut", "convert", "reindex", "diff"):
        why = f"{verb} does not write metadata snapshots; salvage copies them"
        line = f"kafka-log: metadata snapshots in {path} were skipped: "
        assert said == (
            [line + "diff does not compare metadata snapshots"] * 2
            if verb == "diff"
            else [line + why]
        )
    elif verb == "salvage" or include:
        assert said == []
    else:
        assert said == [
            "kafka-log: segments that are not live were skipped: 2 snapshot (4.1 kB); add --include snapshot to read them"
        ]


@pytest.mark.slow
@pytest.mark.parametrize("include", [(), "snapshot"])
@pytest.mark.parametrize("verb", ["cut", "convert", "reindex"])
def test_rows_say_it_in_python(verb: str, include: Any, tmp_path: Path) -> None:
    directory = SAMPLES / "kafka-4.x" / "__cluster_metadata-0"
    names = {path.name for path in directory.glob("*.checkpoint")}
    log = LogDirectory(directory, include=include)
    for _ in range(2):  # also where all is there already
        rows = getattr(log, verb)(tmp_path / "out").to_pylist()
        left_out = [row for row in rows if row["what"] == "left out"]
        assert len(left_out) == len(names) == 2
        for row in left_out:
            assert (row["topic"], row["partition"]) == ("__cluster_metadata", 0)
            assert any(name in (row.get("file") or row["reason"]) for name in names)
            assert "salvage copies it" in row["reason"]
    others = LogDirectory(SAMPLES / "kafka-4.x", topics="codecs")
    rows = getattr(others, verb)(tmp_path / "others").to_pylist()
    assert all(row["what"] != "left out" for row in rows)


WRITTEN: list[tuple[Any, tuple[str, ...]]] = [
    (None, ()),
    ((), ()),
    ("live", ()),
    ("all", STATES[1:]),
    ("ALL", STATES[1:]),
    (["all"], STATES[1:]),
    ("remote,deleted", ("deleted", "remote")),
    (" remote , deleted,remote", ("deleted", "remote")),
    (["remote", "deleted"], ("deleted", "remote")),
    ({"future"}, ("future",)),
    (iter(["stray", "snapshot,swap"]), ("swap", "stray", "snapshot")),
    ("deleted,all", STATES[1:]),
]


@pytest.mark.parametrize(("include", "states"), WRITTEN, ids=map(str, range(len(WRITTEN))))
def test_states_as_people_write_them(include: Any, states: tuple[str, ...]) -> None:
    assert parse_include(include) == states


@pytest.mark.parametrize(
    "include", ["", "gone", "deleted,", ["gone"], [None], b"deleted", [["all"]]]
)
def test_what_is_no_state_is_refused_by_all(broker: Path, include: Any) -> None:
    for ask in (
        lambda: Selection(include=include),
        lambda: LogDirectory(broker, include=include),
        lambda: discover(broker, include),
        lambda: read_table(broker, include=include),
    ):
        with pytest.raises(ValueError, match="is not a state of segments"):
            ask()


@pytest.mark.parametrize(
    "include", ["all", "future,deleted,delete", ["deleted", "future", "delete"]]
)
def test_the_library_and_the_command_mean_the_same(
    broker: Path, include: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text = include if isinstance(include, str) else ",".join(include)
    assert main(["dump", str(broker), "--include", text, "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    columns = ["topic", "partition", "state", "offset"]
    expected = read_table(broker, columns, include=include).to_pylist()
    assert [{name: row[name] for name in columns} for row in rows] == expected
    assert {row["state"] for row in expected} == {"live", "deleted", "future", "delete"}
    there = LogDirectory(broker, include=include)
    assert there.excluded_segments == []
    assert {s.state for p in there.partitions for s in p.segments} == {
        "live",
        "deleted",
        "future",
        "delete",
    }


def test_an_unknown_state(broker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["ls", str(broker), "--include", "deleted,gone"])
    assert caught.value.code == 2
    assert (
        "'gone' is not a state of segments; known: live, deleted, cleaned, "
        in capsys.readouterr().err
    )


def test_tables_name_states(broker: Path) -> None:
    log = LogDirectory(broker, include=["deleted", "delete"])
    assert [s.state for s in log.excluded_segments] == ["future"]
    states = log.ls(segments=True).select(["topic", "state"]).to_pylist()
    assert [tuple(row.values()) for row in states] == [
        ("old", "delete"),
        ("orders", "live"),
        ("orders", "deleted"),
    ]


def test_states_of_a_partition_are_rows(broker: Path) -> None:
    rows = LogDirectory(broker, include=["deleted", "future", "delete"]).ls().to_pylist()
    assert [(row["topic"], row["state"], row["segments"], row["bytes"]) for row in rows] == [
        ("old", "delete", 1, OTHER.stat().st_size),
        ("orders", "live", 1, ONE.stat().st_size),
        ("orders", "deleted", 1, OTHER.stat().st_size),
        ("orders", "future", 1, ONE.stat().st_size),
    ]


@pytest.mark.parametrize("command", ["stat", "dump"])
def test_topics_and_partitions_are_chosen(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    broker = SAMPLES / "kafka-4.x"
    assert main([command, str(broker), "--topic", "codecs", "--partition", "1"]) == 0
    chosen = capsys.readouterr()
    assert chosen.err == ""
    assert main([command, str(broker / "codecs-1")]) == 0
    assert chosen.out == capsys.readouterr().out
    assert main([command, str(broker), "--topic", "nothing"]) == 2
    assert "there is no topic nothing; there are: " in capsys.readouterr().err
