"""The same partition in several directories: no answer adds it up in silence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_log import DirectoryError, LogDirectory, read_table, scan_batches
from kafka_log.cli import main
from kafka_log.segment.positioned_reads import UnreadableError
from tests.paths import SAMPLES
from tests.support.made_topics import commit, log
from tests.support.tiers import IDS, local

SAMPLE = SAMPLES / "kafka-4.x"
TOPICS = ("codecs-0", "compacted-0", "transactions-0", "__transaction_state-0")

LABELED = ["ls", "stat", "stat --by partition,codec", "check --deep", "txn", "producers", "keys"]
"""Rows name the directory or the file."""

REFUSING = [
    *("stat --by topic", "stat --by codec", "stat --by hour,producer", "stat --largest 3"),
    *("dump", "dump --batches", "keys --key k0"),
]

WRITING = ["export", "salvage", "cut --offsets 0:2", "reindex", "convert --codec zstd"]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two brokers with the same partitions."""
    places = [tmp_path_factory.mktemp(name) for name in "ab"]
    for place in places:
        for name in TOPICS:
            shutil.copytree(SAMPLE / name, place / name)
    return places


def run(capsys: pytest.CaptureFixture[str], verb: str, *more: object) -> tuple[int, str, str]:
    """Run a command. Return its exit code, and what it prints."""
    command, *words = verb.split()
    code = main([command, *map(str, more), *words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.share(3)
@pytest.mark.parametrize("verb", LABELED)
def test_rows_name_the_directory(
    copies: list[Path], verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of each copy are those of its directory alone; text shows which are which."""
    output = "--format", "jsonl"
    alone = [run(capsys, verb, place, *output)[1].splitlines() for place in copies]
    code, out, _ = run(capsys, verb, *copies, *output)
    assert code == 0
    assert sorted(out.splitlines()) == sorted([line for lines in alone for line in lines])
    rows = [json.loads(line) for line in out.splitlines()]
    assert all("directory" in row or "file" in row for row in rows)
    text = run(capsys, verb, *copies)[1]
    if rows:
        assert all(str(place) in text for place in copies)
        assert "total" not in text


@pytest.mark.share(3)
@pytest.mark.parametrize("verb", REFUSING)
def test_what_does_not_is_refused(
    copies: list[Path], verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, verb, *copies)
    assert (code, out) == (2, "")
    assert (
        f"{copies[1]}/__transaction_state-0: {copies[0]}/__transaction_state-0 holds the same partition"
        in err
    )
    assert "--replicas" in err
    output = ("--format", "jsonl")
    alone = run(capsys, verb, copies[0], *output)
    assert run(capsys, verb, *copies, "--replicas", "newest", *output) == alone
    code, kept, _ = run(capsys, verb, *copies, "--replicas", "keep", *output)
    assert code == 0 and kept != alone[1]
    # Of a topic that lies in one of them nothing is refused.
    topic = ("--topic", "compacted")
    there = [copies[0], copies[1] / "codecs-0"]
    assert run(capsys, verb, *there, *topic, *output) == run(
        capsys, verb, copies[0], *topic, *output
    )


@pytest.mark.share(3)
@pytest.mark.parametrize("verb", WRITING)
def test_nothing_is_written_of_two(
    copies: list[Path], tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, verb, *copies, "--out", tmp_path / "out")
    assert code == 2 and "--replicas" in err
    assert not (tmp_path / "out").exists()
    assert run(capsys, verb, *copies, "--replicas", "newest", "--out", tmp_path / "out")[0] == 0
    assert len([p for p in (tmp_path / "out").iterdir() if "-0" in p.name]) == len(TOPICS)


def test_a_side_of_a_comparison(copies: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Which of the two is compared would be a guess."""
    above = copies[0].parent
    shutil.copytree(copies[0], above / "both" / "a")
    shutil.copytree(copies[1], above / "both" / "b")
    for sides in ((above / "both", copies[0]), (copies[0], above / "both")):
        code, out, err = run(capsys, "diff", *sides)
        assert (code, out) == (2, "") and "--replicas" in err
        assert run(capsys, "diff", *sides, "--replicas", "newest")[:2] == (
            0,
            "4 partitions: 4 same\n",
        )


API: dict[str, Callable[[list[Path]], Any]] = {
    "scan": lambda paths: read_table(paths),
    "scan_batches": lambda paths: scan_batches(paths).read_all(),
    "stat": lambda paths: LogDirectory(paths).stat(by="topic"),
    "largest": lambda paths: LogDirectory(paths).largest(3),
    "records_of_key": lambda paths: LogDirectory(paths).records_of_key(b"k0"),
    "export": lambda paths: list(LogDirectory(paths).export("/nowhere/at/all")),
    "diff": lambda paths: LogDirectory(paths).diff(paths[0]),
    "merge": lambda paths: LogDirectory(paths).merge(paths[0], "/nowhere/at/all"),
    "merge, another one": lambda paths: LogDirectory(paths[0]).merge(
        LogDirectory(paths), "/nowhere/at/all"
    ),
    "diff, the other side": lambda paths: LogDirectory(paths[0]).diff(LogDirectory(paths)),
}


@pytest.mark.parametrize("name", API)
def test_the_api_refuses_it(copies: list[Path], name: str) -> None:
    with pytest.raises(DirectoryError, match="--replicas"):
        API[name](copies)


def test_the_newest_is_not_chosen_of_different_topics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker that was down while a topic was deleted and created again still has the earlier one, which may be longer."""
    for place, end, number in (("a", 30, 0), ("b", 10, 1)):
        local(tmp_path / place, 0, end)
        stated = f"version: 0\ntopic_id: {IDS[number]}\n"
        (tmp_path / place / "t-0" / "partition.metadata").write_text(stated)
        log(tmp_path / place, "__consumer_offsets-0", commit(0, "g", end))
        (tmp_path / place / "__consumer_offsets-0" / "partition.metadata").write_text(stated)
    places = [tmp_path / "a", tmp_path / "b"]
    said = "states another topic id than that of"
    with pytest.raises(DirectoryError, match=said) as caught:
        read_table(places, topics="t", replicas="newest")
    assert caught.value.path == places[1] / "t-0"
    with pytest.raises(DirectoryError, match=said):
        LogDirectory(places).groups()
    assert main(["dump", *map(str, places), "--topic", "t", "--replicas", "newest"]) == 2
    assert said in capsys.readouterr().err
    assert read_table(places, topics="t", replicas="keep").num_rows == 40
    (tmp_path / "a" / "t-0" / "partition.metadata").unlink()
    assert read_table(places, topics="t", replicas="newest").num_rows == 30


HIDDEN: dict[str, Callable[[Path], Any]] = {
    "damaged": lambda path: path.write_bytes(b"version: 0\ntopic_id: \xff\n"),
    "empty": lambda path: path.write_bytes(b""),
    "zero": lambda path: path.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n"),
    "a directory": lambda path: path.mkdir(),
    "a dangling link": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", HIDDEN)
@pytest.mark.parametrize("damaged", ["a", "b"])
def test_the_newest_may_be_of_another_topic(
    tmp_path: Path, how: str, damaged: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Damage hides the topic id of one copy, whether it is the newest or not: the rows are those of the newest, and it is an error."""
    for place, end, number in (("a", 30, 0), ("b", 10, 1)):
        for name in ("t-0", "__consumer_offsets-0"):
            (tmp_path / place).mkdir(exist_ok=True)
            if name == "t-0":
                local(tmp_path / place, 0, end)
            else:
                log(tmp_path / place, name, commit(0, "g", end))
            path = tmp_path / place / name / "partition.metadata"
            if place == damaged:
                HIDDEN[how](path)
            else:
                path.write_text(f"version: 0\ntopic_id: {IDS[number]}\n")
    places = [tmp_path / "a", tmp_path / "b"]
    said = "the topic id of this log is not known"
    with pytest.raises(UnreadableError, match=said) as caught:
        read_table(places, topics="t", replicas="newest")
    assert caught.value.where.file == str(tmp_path / damaged / "t-0")
    lost: list[str] = []
    options: dict[str, Any] = {"replicas": "newest", "on_lost": lambda _, one: lost.append(one.reason)}  # fmt: skip
    assert read_table(places, topics="t", policy="salvage", **options).num_rows == 30
    assert [said in one for one in lost] == [True]
    with pytest.raises(UnreadableError, match=said):
        LogDirectory(places).groups()
    for words in (["dump", "--topic", "t", "--replicas", "newest"], ["groups"]):
        assert main([words[0], *map(str, places), *words[1:]]) == 1
        shown = capsys.readouterr()
        assert said in shown.err + shown.out
    merged = LogDirectory(places[0]).merge_plan(places[1]).to_pylist()
    assert {row["what"] for row in merged} == {"lost"}
    assert all("a topic id is not known" in row["reason"] for row in merged)
    assert main(["merge", *map(str, places), "--out", str(tmp_path / "out")]) == 1
    assert not list((tmp_path / "out").glob("*-0/*.log"))
