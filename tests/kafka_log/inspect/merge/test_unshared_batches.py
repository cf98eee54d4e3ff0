"""What one replica has alone: whole batches, with their bytes and offsets, in a log of their own."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import Compression
from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.inspect.merge import overlaps, unshared_batches
from tests.shares import examples
from tests.support.replicas import Entry, Log, Made, compacted, logs, rebatched, write
from tests.support.salvage_rows import files, problems, said


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("only")


def alone(scratch: Path, a: Log, b: Log, rolls: Sequence[int] = ()) -> tuple[list[Any], bytes]:
    """The report of what A has alone, and the bytes of the segments that are written."""
    shutil.rmtree(scratch, ignore_errors=True)
    one = write(scratch / "a" / "t-0", a, rolls)
    other = write(scratch / "b" / "t-0", b)
    before = files(scratch, "")
    table = LogDirectory(one).write_unshared(other, scratch / "out")
    after = {n: data for n, data in files(scratch, "").items() if not n.startswith("out")}
    assert after == before
    made = sorted((scratch / "out").glob("*/*.log"))
    if made:
        found = problems(scratch / "out", ("offsets_missing", "segment_missing"))
        assert [row["code"] for row in found if row["severity"] == "error"] == []
    assert all(int(path.stem) == int.from_bytes(path.read_bytes()[:8], "big") for path in made)
    return table.to_pylist(), b"".join(path.read_bytes() for path in made)


def built(log: Log) -> bytes:
    return b"".join(entry.built() for entry in log)


def other(log: Log, epoch: int) -> Log:
    """The same offsets, written by another leader."""
    return [
        replace(e, epoch=epoch, producer=-1, kind="data", records=tuple(replace(r, key=b"x", value=b"other") for r in e.records))
        for e in log
    ]  # fmt: skip


@pytest.mark.slow
@given(logs(), st.lists(st.integers(1, 12), max_size=3), st.data())
@examples(20)
def test_after_an_election(scratch: Path, log: Log, rolls: list[int], data: st.DataObject) -> None:
    """Both have the same up to an offset, and after it their own records."""
    at = data.draw(st.integers(0, len(log)))
    taken = data.draw(st.integers(at, len(log)))
    found, made = alone(scratch, log, [*log[:at], *other(log[at:taken], 99)] or log[:1], rolls)
    expected = log[at:] if at or taken else log[1:]
    assert made == built(expected)
    whats = {row["what"] for row in found}
    assert whats <= {"kept", "open"} and ("kept" in whats) == bool(expected)
    kept = [row for row in found if row["what"] == "kept"]
    assert sum(row["records"] + row["control_records"] for row in kept) == sum(
        len(entry.records) for entry in expected
    )
    if taken > at:
        assert any("leader epoch 99" in row["reason"] for row in found)


@pytest.mark.slow
@given(logs(), st.sampled_from(list(Compression)))
@examples(20)
def test_the_same_records_are_not_alone(scratch: Path, log: Log, codec: Compression) -> None:
    for replica in (log, rebatched(log, codec)):
        assert alone(scratch, log, replica) == ([], b"")
        assert not (scratch / "out").exists()


@pytest.mark.slow
@given(logs(), st.data())
@examples(20)
def test_what_compaction_removed_is_alone(scratch: Path, log: Log, data: st.DataObject) -> None:
    clean_to = data.draw(st.integers(log[0].base, log[-1].last + 1))
    left = compacted(log, clean_to)
    there = {r.offset for entry in left for r in entry.records}
    if not left:
        return
    _, made = alone(scratch, log, left)
    assert made == built([e for e in log if any(r.offset not in there for r in e.records)])


def test_a_batch_of_which_one_record_is_alone(tmp_path: Path) -> None:
    full: Log = [Entry(0, 3, 0, tuple(Made(i, b"k", b"v") for i in range(4)))]
    part = [replace(full[0], records=full[0].records[1:])]
    found, made = alone(tmp_path / "s", full, part)
    assert made == built(full)
    assert found[0]["records"] == 4
    assert alone(tmp_path / "s", part, full) == ([], b"")


def test_damage_and_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log: Log = [Entry(i, i, 0, (Made(i, b"k", b"%d" % i),)) for i in range(4)]
    a, b = write(tmp_path / "a/t-0", log), write(tmp_path / "b/t-0", log[:3])
    words = ["diff", str(tmp_path / "a"), str(tmp_path / "b")]
    assert main([*words, "--only", "A"]) == 2
    assert main([*words, "--out", "x"]) == 2
    capsys.readouterr()
    assert main([*words, "--only", "B", "--out", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().out == "nothing to write: B has no records that the other side lacks\n"  # fmt: skip
    assert not (tmp_path / "none").exists()
    assert main([*words, "--topic", "t", "--only", "A", "--out", str(tmp_path / "out")]) == 0
    assert "1 record in 1 batch" in capsys.readouterr().out
    (path,) = (tmp_path / "out" / "t-0").glob("*.log")
    assert (path.name, path.read_bytes()) == (f"{3:020d}.log", log[3].built())
    # A second run keeps what is there.
    assert main([*words, "--topic", "t", "--only", "A", "--out", str(tmp_path / "out")]) == 0
    (path,) = a.glob("*.log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    table = LogDirectory(a).write_unshared(b, tmp_path / "hurt")
    assert [row["first_offset"] for row in said(table, "lost")] == [3]
    assert not (tmp_path / "hurt").exists()


@pytest.mark.parametrize("happens", ["removed", "rewritten", "cut"])
@pytest.mark.parametrize("verb", ["diff", "merge"])
def test_a_segment_that_changes_before_its_records_are_compared(
    verb: str,
    happens: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What it had is not known then: the command says so, and writes nothing."""
    records = [Made(0, b"k", b"v" * 50), Made(1, b"k", b"w" * 50)]
    whole = [Entry(0, 1, 0, tuple(records))]
    halves = [Entry(i, i, 0, (record,)) for i, record in enumerate(records)]
    one, two = write(tmp_path / "a" / "t-0", whole), write(tmp_path / "b" / "t-0", halves)
    (segment,) = two.glob("*.log")

    def read(*arguments: Any) -> Any:
        data = segment.read_bytes()
        if happens == "removed":
            segment.unlink()
        elif happens == "cut":
            segment.write_bytes(data[:70])
        else:
            segment.write_bytes(data[:-1] + b"!")
        monkeypatch.undo()
        return overlaps.read_batch_records(*arguments)

    monkeypatch.setattr(
        overlaps if verb == "merge" else unshared_batches, "read_batch_records", read
    )
    command = {"diff": ["diff", "--only", "A"], "merge": ["merge"]}[verb]
    code = main([*command, str(one), str(two), "--out", str(tmp_path / "out")])
    assert code == 1
    assert segment.name in "".join("".join(capsys.readouterr()).split())  # lines are folded
    assert not list((tmp_path / "out").rglob("*.log"))
