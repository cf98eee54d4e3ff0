"""Text of every verb on screens of any width from 60 columns: no line is longer, and no number is cut."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from rich.cells import cell_len

from kafka_log import write_segment
from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.commands import LOG_COMMANDS

BROKER = SAMPLES / "kafka-4.x"
EVERY = "topic,partition,offset,timestamp,producer_id,producer_epoch,sequence,leader_epoch,is_transactional,base_offset,position,segment,key,value,headers"  # fmt: skip
OF_BATCHES = "base_offset,last_offset,size,position,codec,max_timestamp,producer_id,producer_epoch,record_count,topic"  # fmt: skip
WIDTHS = (60, 80, 200)

ASKED = [
    *("overview", "ls", "ls --segments", "ls --include all", "ls --by topic"),
    *("stat --deep", "stat --by producer", "stat --by codec,hour", "stat --largest 5 --deep", "stat --largest 1 --by topic"),
    *("check", "diff OTHER", "txn --wide", "txn --state open", "producers --wide", "keys", "keys --key nobody"),
    *("sql RECORDS", "sql SEGMENTS"),
    *("schemas REGISTRY", "schemas REGISTRY --wide"),
    *("dump", f"dump --columns {EVERY}", "dump --columns value,offset,key", "dump --columns offset,timestamp", "dump --decode hex"),
    *(f"dump --columns {EVERY} --topic __consumer_offsets --control-records", f"dump --batches --columns {OF_BATCHES}"),
    *("groups", "groups --states", *(f"metadata --what {kind}" for kind in ("topics", "partitions", "configs", "brokers", "features"))),
    *("metadata --what partitions --changes 60:", "metadata --what configs --changes :"),
    *("hexdump FILE", "hexdump FILE --offset 3", "hexdump INDEX", "coordinator a-group-with-a-long-name.of-a-department BROKER"),
    *("salvage --out OUT", "merge OTHER --out OUT", "cut --offsets 0:9 --out OUT", "reindex --out OUT", "convert --codec zstd --out OUT", "export --out OUT --topic codecs", "report --out OUT --topic codecs"),
]  # fmt: skip


def run(command: str, tmp_path: Path) -> int:
    verb, *words = command.split()
    words = [
        {
            "RECORDS": "select * from records",
            "SEGMENTS": "select * from segments",
            "OTHER": str(SAMPLES / "kafka-4.x"),
            "BROKER": str(BROKER),
            "REGISTRY": str(SAMPLES / "schema-registry"),
            "OUT": str(tmp_path / "out"),
            "FILE": str(BROKER / "transactions-2" / f"{0:020}.log"),
            "INDEX": str(BROKER / "segments.small-0" / f"{0:020}.index"),
        }.get(word, word)
        for word in words
    ]
    paths = [] if verb in ("hexdump", "coordinator", "schemas") else [str(BROKER)]
    return main([verb, *paths, *words])


def test_every_verb_is_here() -> None:
    assert {command.split()[0] for command in ASKED} == set(LOG_COMMANDS)


@pytest.mark.slow
@pytest.mark.share(6, ci=4)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", ASKED)
def test_no_line_is_longer(
    command: str,
    width: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(command, tmp_path) in (0, 1)
    out = capsys.readouterr().out
    assert out or command.startswith("export")
    commands = "  kafka-log "  # to be copied
    assert [
        line
        for line in out.splitlines()
        if cell_len(line) > width and not line.startswith(commands)
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_a_check_of_damage(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = shutil.copytree(BROKER, tmp_path / "b")
    path = broker / "codecs-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes()[:5000] + b"oops" + path.read_bytes()[5004:])
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["check", str(broker)]) == 1
    # What is to be copied is never broken: the place of the file.
    long = [line for line in capsys.readouterr().out.splitlines() if cell_len(line) > width]
    assert all(str(broker) in line for line in long)


@pytest.mark.parametrize("engine", ["construct", "arrow"])
@pytest.mark.parametrize("width", WIDTHS)
def test_paragraphs_say_all_that_lines_say(
    width: int,
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each record with each column, by name; numbers are whole."""
    directory = tmp_path / "a-topic-with-a-long-name.of-a-department-2147483647"
    directory.mkdir()
    last = 2**63 - 10
    table = pa.table(
        {
            "offset": pa.array(range(last, last + 3), pa.int64()),
            "key": pa.array([b"k" * 90, None, b"\x00\x01"], pa.binary()),
            "value": pa.array([b"a text of some words " * 9, b"", None], pa.binary()),
        }
    )
    write_segment(directory / f"{last:020}.log", table)
    monkeypatch.setenv("COLUMNS", str(width))
    names = "topic,partition,offset,timestamp,base_offset,producer_id,segment,key,value"
    assert main(["dump", str(directory), "--columns", names, "--engine", engine]) == 0
    out = capsys.readouterr().out
    rows = [dict(line.split(None, 1) for line in part.splitlines() if line[0] != " ") for part in out.split("\n\n")]  # fmt: skip
    assert [row["offset"] for row in rows] == [str(last + i) for i in range(3)]
    for row in rows:
        assert list(row) == names.split(",")
        assert (row["topic"], row["partition"]) == (directory.name[:-11], "2147483647")
        assert row["base_offset"] == str(last)
    assert rows[0]["key"].endswith("…") or width == 200
    assert [row["value"] for row in rows[1:]] == ['""', "null"]


def test_rows_that_fit_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of topics that are longer: rows are lines as long as they fit, and paragraphs from then on."""
    for name in ("a-0", "b" * 60 + "-0"):
        (tmp_path / name).mkdir()
        table = pa.table({"offset": pa.array([0, 1], pa.int64()), "value": [b"x" * 40, b"y"]})
        write_segment(tmp_path / name / f"{0:020}.log", table)
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["dump", str(tmp_path), "--columns", "value,offset,topic"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(cell_len(line) <= 60 for line in lines)
    assert lines[0].split() == ["value", "offset", "topic"]
    assert lines[2].split() == ['"y"', "1", "a"]
    assert "".join("".join(lines[3:]).split()).count("b" * 60) == 2
    assert [line for line in lines if line.startswith("offset")] == ["offset  0", "offset  1"]
