"""Copies in tiered storage that are truncated or missing: what they lack is never passed over in silence."""

from __future__ import annotations

import base64
import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafka_codecs import REMOTE_LOG_METADATA_RECORD
from kafka_log import LogDirectory, Lost, read_table, scan, scan_batches
from kafka_log.cli import main
from kafka_log.logs.names import LOG_START
from kafka_log.segment.positioned_reads import UnreadableError
from tests.support.commands import LOG_COMMANDS, command_line, options_of
from tests.support.made_topics import entry, log
from tests.support.tiers import TIER, local, remote

SAID = "when it was copied, and has"


def describe(root: Path, sizes: dict[Path, int], ends: Mapping[Path, int] | None = None) -> None:
    """Write the topic that has the sizes of finished copies, and the last offsets of some."""
    values = []
    for path, size in sizes.items():
        topic, number = (_decode(text) for text in (path.parent.name[4:], path.stem[21:]))
        place = {"name": "t", "id": topic, "partition": 0}
        body: dict[str, Any] = {
            "remote_log_segment_id": {"topic_id_partition": place, "id": number},
            "broker_id": 1,
            "event_timestamp_ms": 5,
            "custom_metadata": None,
            "remote_log_segment_state": "copy_segment_finished",
            "start_offset": int(path.name[:20]),
            "end_offset": (ends or {}).get(path, 0),
            "max_timestamp_ms": 1,
            "segment_leader_epochs": [],
            "segment_size_in_bytes": size,
        }
        kind = "remote_log_segment_metadata_record"
        record: Any = {"api_key": kind, "version": 0, "body": body}
        values.append(bytes(REMOTE_LOG_METADATA_RECORD.build(record)))
    log(root, "__remote_log_metadata-3", *(entry(i, None, v) for i, v in enumerate(values)))


def _decode(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def make(root: Path, kept: int, first: int = 60) -> Path:
    """Make copies of offsets 0 to 29 and 30 to 59, a batch each, and a live log from ``first`` on. The second copy keeps ``kept``
    batches. Return its path."""
    remote(root, 0, 0, 30, batch=1)
    remote(root, 1, 30, 60, batch=1)
    local(root, first, 70, batch=1)
    paths = sorted((root / TIER).rglob("*.log"))
    describe(root, {path: path.stat().st_size for path in paths})
    size = paths[1].stat().st_size
    os.truncate(paths[1], size // 30 * kept)
    return paths[1]


def read(root: Path, **options: Any) -> list[int]:
    found: list[int] = read_table(root, ["offset"], topics="t", include="remote", **options)[
        "offset"
    ].to_pylist()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["construct", "arrow"])
@pytest.mark.parametrize("kept", [29, 1, 0])
def test_rows_that_are_gone(tmp_path: Path, kept: int, engine: str) -> None:
    path = make(tmp_path, kept)
    size = path.stat().st_size
    for policy in ("strict", "kafka"):
        with pytest.raises(UnreadableError, match=SAID) as caught:
            read(tmp_path, policy=policy, engine=engine)
        assert (caught.value.where.file, caught.value.where.position) == (str(path), size)
        with pytest.raises(UnreadableError, match=SAID):
            scan_batches(tmp_path, policy=policy, topics="t", include="remote").read_all()
    lost: list[tuple[Path, Lost]] = []
    options: dict[str, Any] = {
        "on_lost": lambda at, one: lost.append((at, one)),
        "on_damage": "drop",
        "engine": engine,
    }
    kept_offsets = [n for n in range(70) if not 30 + kept <= n < 60]
    assert read(tmp_path, policy="salvage", **options) == kept_offsets
    ((where, one),) = lost
    assert (where, one.start) == (path, size) and SAID in one.reason
    assert read(tmp_path, offsets=(60, None), engine=engine) == list(range(60, 70))
    assert read(tmp_path, offsets=(0, 30), engine=engine) == list(range(30))


@pytest.mark.parametrize("kept", [29, 15, 10])
def test_the_live_log_has_what_is_gone(tmp_path: Path, kept: int) -> None:
    make(tmp_path, kept, first=40)
    assert read(tmp_path) == list(range(70))
    assert read(tmp_path, policy="strict") == list(range(70))


def test_another_copy_has_what_is_gone(tmp_path: Path) -> None:
    make(tmp_path, 10)
    remote(tmp_path, 2, 30, 60, batch=1)
    assert read(tmp_path) == list(range(70))


def test_a_copy_of_unknown_size(tmp_path: Path) -> None:
    """Nothing is known of its size without the topic, or if the topic has a smaller one."""
    path = make(tmp_path, 10)
    (found,) = (tmp_path / "__remote_log_metadata-3").glob("*.log")
    found.unlink()
    describe(tmp_path, {path: path.stat().st_size - 1})
    assert read(tmp_path, policy="strict") == [n for n in range(70) if not 40 <= n < 60]


def test_the_size_that_is_listed_is_that_of_the_file(tmp_path: Path) -> None:
    path = make(tmp_path, 10)
    logs = LogDirectory(tmp_path, topics="t", include="remote")
    rows = {row["path"]: row["bytes"] for row in logs.ls(segments=True).to_pylist()}
    assert rows[str(path)] == path.stat().st_size
    assert sum(logs.ls()["bytes"].to_pylist()) == sum(rows.values())


def answers(log: LogDirectory) -> dict[str, Callable[[list[str]], Any]]:
    """What each method says of damage."""
    return {
        "stat": lambda said: said.extend(filter(None, log.stat()["first_problem"].to_pylist())),
        "largest": lambda said: log.largest(3, on_problem=said.append),
        "txn": lambda said: log.txn(on_damage=said.append),
        "producers": lambda said: log.producers(on_damage=said.append),
        "keys": lambda said: said.extend(filter(None, log.keys()["problem"].to_pylist())),
        "records_of_key": lambda said: log.records_of_key(b"k0", on_problem=said.append),
    }


@pytest.mark.parametrize("name", answers(LogDirectory(".")))
def test_methods_say_it(tmp_path: Path, name: str) -> None:
    make(tmp_path, 10)
    said: list[str] = []
    answers(LogDirectory(tmp_path, topics="t", include="remote"))[name](said)
    assert [line for line in said if SAID in line], said


def test_check_tells_it(tmp_path: Path) -> None:
    path = make(tmp_path, 10)
    found = LogDirectory(tmp_path, topics="t", include="remote").check().to_pylist()
    (row,) = [row for row in found if row["severity"] == "error"]
    assert (row["code"], row["file"], row["byte"]) == ("segment_shrunk", str(path), path.stat().st_size)  # fmt: skip
    assert row["first_offset"] == 40 and "__remote_log_metadata" in row["meaning"]


PASSED_OVER = {
    "overview": "reads both ends of each log",
    "ls": "reads no records",
    "check": "says it in words of its own",
    **dict.fromkeys(("salvage", "cut", "reindex", "convert"), "take one copy at a time"),
}
READ_COPIES = [c for c in LOG_COMMANDS if "--include" in options_of(c) and c not in PASSED_OVER]
"""Commands that read the records of copies."""


@pytest.mark.share(4)
@pytest.mark.parametrize("verb", [*READ_COPIES, "dump --batches"])
def test_verbs_say_it(tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    if verb == "sql":
        pytest.importorskip("duckdb")
    make(tmp_path / "logs", 10)
    out = tmp_path / "out"
    topic = ["--topic", "t", "--include", "remote"]
    assert main([*command_line(verb, tmp_path / "logs", out), *topic]) == 1
    shown = capsys.readouterr()
    page = out.read_text("utf-8") if out.is_file() else ""
    assert SAID in shown.out + shown.err + page


def test_spark_says_it(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from pyspark_kafka_log.options import parse
    from pyspark_kafka_log.scan import Scan
    from pyspark_kafka_log.splits.plan import plan
    from pyspark_kafka_log.task_reader import read_splits

    make(tmp_path, 10)
    options = {"path": str(tmp_path), "include": "remote", "subscribe": "t"}
    with pytest.raises(UnreadableError, match=SAID):
        for task in plan(parse(options)):
            list(read_splits(task, Scan(columns=("offset",))))


# ---------------------------------------------------------------- copies that are missing

GAPS = [(30, 39), (60, 69)]
"""First and last offset."""


def make_gaps(root: Path, start: int | None = None) -> LogDirectory:
    """Make two copies and two live segments, with a gap before and after the second copy."""
    remote(root, 0, 0, 30)
    remote(root, 1, 40, 60)
    local(root, 70, 80)
    local(root, 80, 90)
    if start is not None:
        (root / LOG_START).write_text(f"0\n1\nt 0 {start}\n")
    return LogDirectory(root, topics="t", include="remote")


def find_lost(log: LogDirectory, out: Path, **options: Any) -> list[tuple[int, int]]:
    """Return the ranges that an export loses."""
    (file,) = log.export(out, "csv", **options)
    found = [re.search(r": offsets (\d+) to (\d+) are lost: no copy", line) for line in file.lost]
    return [(int(one[1]), int(one[2])) for one in found if one is not None]


@pytest.mark.parametrize("policy", ["strict", "kafka", "salvage"])
def test_an_export_names_the_gaps(tmp_path: Path, policy: Any) -> None:
    log = make_gaps(tmp_path / "logs")
    for _ in range(2):  # the second one keeps the file
        assert find_lost(log, tmp_path / "out", policy=policy) == GAPS
    assert find_lost(log, tmp_path / "some", offsets=(35, 65)) == [(35, 39), (60, 64)]
    assert find_lost(log, tmp_path / "none", offsets=(40, 60)) == []
    assert find_lost(log, tmp_path / "last", offsets=(-25, None)) == [(65, 69)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "gaps"),
    [
        (0, GAPS),
        (35, [(35, 39), (60, 69)]),
        (45, GAPS[1:]),
        (69, [(69, 69)]),
        (70, []),
    ],
)
def test_deleted_records_are_no_gap(
    tmp_path: Path, start: int, gaps: list[tuple[int, int]]
) -> None:
    log = make_gaps(tmp_path / "logs", start)
    assert find_lost(log, tmp_path / "out") == gaps
    assert find_lost(log, tmp_path / "all", deleted_records=True) == gaps
    rows = [row for row in log.check().to_pylist() if row["code"] == "segment_missing"]
    assert [(row["first_offset"], row["last_offset"]) for row in rows] == gaps
    assert all(row["severity"] == "error" and row["records"] for row in rows)


def test_the_verb_names_the_gaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_gaps(tmp_path / "logs")
    words = [str(tmp_path / "logs"), "--include", "remote", "--out", str(tmp_path / "out")]
    assert main(["export", *words]) == 1
    assert "offsets 60 to 69 are lost: no copy in tiered storage" in capsys.readouterr().err


@pytest.mark.parametrize("policy", ["strict", "kafka", "salvage"])
def test_a_scan_names_the_gaps(tmp_path: Path, policy: Any) -> None:
    make_gaps(tmp_path, 35)
    wanted: dict[str, Any] = {"policy": policy, "topics": "t", "include": "remote"}
    for read in (scan, scan_batches):
        lost: list[tuple[str, Lost]] = []

        def on_lost(path: Path, one: Lost, lost: list[tuple[str, Lost]] = lost) -> None:
            lost.append((path.name[:20], one))

        read(tmp_path, on_lost=on_lost, **wanted).read_all()
        found = [(int(n), one.end, one.after_offset, one.before_offset) for n, one in lost]
        assert found == [(40, 0, 34, 40), (70, 0, 59, 70)]
        with pytest.warns(
            UserWarning, match="offsets 60 to 69 are lost: no copy in tiered storage"
        ):
            read(tmp_path, offsets=(45, None), **wanted).read_all()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(tmp_path, offsets=(45, 60), **wanted).read_all()


@pytest.mark.parametrize("output", ["text", "jsonl", "csv"])
def test_dump_names_the_gaps(
    tmp_path: Path, output: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    make_gaps(tmp_path, 35)
    command = ["dump", str(tmp_path), "--topic", "t", "--include", "remote", "--format", output]
    for more, gaps in (
        ((), [(35, 39), (60, 69)]),
        (("--last", "20"), []),
        (("--offsets", "70:"), []),
    ):
        assert main([*command, *more]) == bool(gaps)
        shown = capfdbinary.readouterr()
        lines = (shown.out if output == "text" else shown.err).decode().splitlines()
        said = [line for line in lines if "no copy in tiered storage" in line]
        assert [
            f"offsets {first} to {last} are lost" in line
            for (first, last), line in zip(gaps, said, strict=True)
        ] == [True] * len(gaps)


def test_sql_names_the_gaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    make_gaps(tmp_path)
    command = [
        "sql",
        str(tmp_path),
        "select count(*) from records",
        "--topic",
        "t",
        "--include",
        "remote",
    ]
    for more in ((), ("--policy", "salvage")):
        assert main([*command, *more]) == 1
        shown = capsys.readouterr()
        assert shown.err.count("no copy in tiered storage") == 2


@pytest.mark.parametrize("command", ["keys", "keys --key x", "txn", "producers"])
def test_other_verbs_name_the_gaps(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_gaps(tmp_path, 35)
    verb, *words = command.split()
    code = main([verb, str(tmp_path), *words, "--topic", "t", "--include", "remote"])
    assert code == (verb != "keys")  # keys are counted of compacted topics, which may have gaps
    err = capsys.readouterr().err
    assert "offsets 35 to 39 are lost" in err and "offsets 60 to 69 are lost" in err
    with pytest.warns(UserWarning, match="offsets 35 to 39 are lost: no copy"):
        LogDirectory(tmp_path, topics="t", include="remote").producers()


def test_the_metadata_says_that_compaction_left_a_gap(tmp_path: Path) -> None:
    """A copy ends where the next segment began, whatever its last batch is."""
    log = make_gaps(tmp_path / "logs")
    paths = sorted((tmp_path / "logs" / TIER).rglob("*.log"))
    describe(tmp_path / "logs", {path: path.stat().st_size for path in paths}, {paths[1]: 69})
    log = LogDirectory(tmp_path / "logs", topics="t", include="remote")
    assert find_lost(log, tmp_path / "out") == GAPS[:1]
    assert "segment_missing" in log.check()["code"].to_pylist()


def test_there_is_no_gap(tmp_path: Path) -> None:
    make(tmp_path / "logs", 30, first=40)
    log = LogDirectory(tmp_path / "logs", topics="t", include="remote")
    assert find_lost(log, tmp_path / "out") == []
    assert "segment_missing" not in log.check()["code"].to_pylist()
    assert find_lost(LogDirectory(tmp_path / "logs", topics="t"), tmp_path / "live") == []
