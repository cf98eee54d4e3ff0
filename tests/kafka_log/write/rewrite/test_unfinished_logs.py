"""What a live or killed broker leaves at the end of the active segment is no damage to the verbs that write logs; in a rolled one it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.logs.names import CLEAN_SHUTDOWN, HIGH_WATERMARK, RECOVERY_POINT
from tests.support.batches import batch, message
from tests.support.salvage_rows import rows
from tests.support.segment_files import put

WHOLE = batch(0) + batch(10)
LOOKS = {
    "some bytes of a head": batch(20)[:5],
    "half a head": batch(20)[:40],
    "a head alone": batch(20)[:61],
    "half a batch": batch(20)[:-20],
    "all but a byte": batch(20)[:-1],
    "half of a compressed batch": batch(20, "zstd", records=50)[:-9],
    "half a message": message(21)[:-4],
    "zeros": bytes(4096),
    "one zero": bytes(1),
    "half a batch, then zeros": batch(20)[:-30] + bytes(5000),
    "some bytes of a head, then zeros": batch(20)[:5] + bytes(5000),
    "a head, then zeros": batch(20, size=5000)[:61] + bytes(1 << 16),
}
VERBS: dict[str, list[str]] = {
    "salvage": [],
    "reindex": [],
    "cut": ["--offsets", "0:"],
    "convert": ["--codec", "none"],
}


def wrote(
    verb: str, log: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, list[dict[str, Any]], str]:
    """The exit code, the rows, and what stands on the error output."""
    code = main([verb, str(log), *VERBS[verb], "--out", str(out), "--format", "jsonl"])
    captured = capsys.readouterr()
    return code, [json.loads(line) for line in captured.out.splitlines()], captured.err


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("verb", VERBS)
def test_in_the_active_segment(
    verb: str, look: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = put(tmp_path / "t-0", (0, WHOLE + LOOKS[look]))
    code, said, err = wrote(verb, log, tmp_path / "out", capsys)
    assert code == 0
    assert not [row for row in said if row["what"] in ("lost", "refused")]
    start, end = len(WHOLE), len(WHOLE) + len(LOOKS[look])
    if verb == "convert":
        name = f"{0:020d}.log"
        assert [row["reason"] for row in said] == [err.partition(": t-0: ")[2].rstrip("\n")]
        assert err.startswith(f"kafka-log: t-0: {name}: bytes {start} to {end} are left out: ")
    else:
        (row,) = [row for row in said if row["what"] == "unfinished"]
        assert (row["byte"], row["bytes"]) == (start, end - start)
        assert ("zeros" in row["reason"]) is (not LOOKS[look].strip(b"\0"))
    if verb != "reindex":
        put(tmp_path / "whole" / "t-0", (0, WHOLE))
        there = rows(tmp_path / "out" / "t-0")
        assert there[: len(rows(tmp_path / "whole"))] == rows(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("verb", VERBS)
def test_in_a_rolled_segment(
    verb: str, look: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = put(tmp_path / "t-0", (0, WHOLE + LOOKS[look]), (50, batch(50)))
    code, said, _ = wrote(verb, log, tmp_path / "out", capsys)
    assert code == 1
    bad = [row for row in said if row["what"] in ("lost", "refused")]
    assert bad and not [row for row in said if row["what"] == "unfinished"]
    if verb == "convert":
        assert f" of {log / f'{0:020d}.log'}" in bad[0]["reason"]
    else:
        assert bad[0]["byte"] == len(WHOLE)


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
def test_between_replicas(look: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = put(tmp_path / "a" / "t-0", (0, WHOLE))
    active = put(tmp_path / "b" / "t-0", (0, WHOLE + LOOKS[look]))
    assert main(["diff", str(whole), str(active)]) == 0
    table = LogDirectory(whole).diff(active).to_pylist()
    assert [row["verdict"] for row in table] == ["same"]
    longer = put(tmp_path / "c" / "t-0", (0, WHOLE), (50, batch(50)))
    rolled = put(tmp_path / "d" / "t-0", (0, WHOLE + LOOKS[look]), (50, batch(50)))
    assert main(["diff", str(longer), str(rolled)]) == 1
    assert capsys.readouterr().out.endswith("1 partition: 1 damaged\n")


@pytest.mark.parametrize("verb", ["salvage", "reindex", "cut"])
def test_text_says_it_in_one_line(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = put(tmp_path / "t-0", (0, WHOLE + LOOKS["half a head"]))
    assert main([verb, str(log), *VERBS[verb], "--out", str(tmp_path / "out")]) == 0
    line = (
        f"  unfinished: {0:020d}.log byte {len(WHOLE)}, 40 bytes, from offset 13 on:"
        " of a batch that was not written to its end"
    )
    assert capsys.readouterr().out.splitlines()[1:] == [line, "nothing is lost"]


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_damage_there_stays_damage(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes that are no batch, also with half a batch behind them; a whole last batch with a wrong checksum."""
    wrong = bytearray(batch(20))
    wrong[70] ^= 1
    garbage = b"\xff" * 100 + batch(20) + batch(30)[:-20]
    for i, end in enumerate((garbage, bytes(wrong), b"what is this?" * 99)):
        log = put(tmp_path / str(i) / "t-0", (0, WHOLE + end))
        code, said, _ = wrote(verb, log, tmp_path / f"out{i}", capsys)
        assert code == 1
        assert {row["what"] for row in said} & {"lost", "refused"}


def stop_broker(directory: Path, *, is_clean: bool, reached: dict[str, int]) -> None:
    """Write the files of a broker that has stopped beside the partition t-0."""
    if is_clean:
        (directory / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":7}')
    for name, offset in reached.items():
        (directory / name).write_text(f"0\n1\nt 0 {offset}\n")


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("is_clean", "reached", "offsets"),
    [
        (True, {}, (13, None)),
        (True, {RECOVERY_POINT: 22}, (13, 21)),
        (False, {HIGH_WATERMARK: 22}, (13, 21)),
        (False, {RECOVERY_POINT: 22, HIGH_WATERMARK: 21}, (13, 21)),
    ],
)
def test_a_tail_that_the_broker_had_written_is_lost(
    verb: str,
    is_clean: bool,
    reached: dict[str, int],
    offsets: tuple[int, int | None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A clean shutdown leaves no such tail, and offsets below a checkpoint were complete."""
    for i, look in enumerate(("half a head", "zeros")):
        log = put(tmp_path / str(i) / "t-0", (0, WHOLE + LOOKS[look]))
        stop_broker(log.parent, is_clean=is_clean, reached=reached)
        code, said, _ = wrote(verb, log, tmp_path / f"out{i}", capsys)
        assert code == 1
        assert "unfinished" not in {row["what"] for row in said}
        (row,) = [row for row in said if row["what"] in ("lost", "refused")]
        if verb == "convert":
            assert "salvage it first" in row["reason"]
        else:
            assert (row["first_offset"], row["last_offset"]) == offsets
            assert row["byte"] == len(WHOLE)
        found = LogDirectory(log.parent).check().to_pylist()
        assert {row["severity"] for row in found} & {"error", "warning"}


@pytest.mark.parametrize("verb", VERBS)
def test_a_tail_after_all_that_was_written_is_no_damage(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = put(tmp_path / "disk" / "t-0", (0, WHOLE + LOOKS["half a head"]))
    stop_broker(log.parent, is_clean=False, reached={RECOVERY_POINT: 13, HIGH_WATERMARK: 13})
    code, said, _ = wrote(verb, log, tmp_path / "out", capsys)
    assert code == 0
    assert not {row["what"] for row in said} & {"lost", "refused"}
    found = LogDirectory(log.parent).check().to_pylist()
    assert {row["severity"] for row in found} == {"note"}


def test_text_names_the_offsets_that_are_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = put(tmp_path / "disk" / "t-0", (0, WHOLE + LOOKS["half a head"]))
    stop_broker(log.parent, is_clean=True, reached={HIGH_WATERMARK: 22})
    assert main(["salvage", str(log), "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"  lost: {0:020d}.log byte {len(WHOLE)}, 40 bytes, offsets 13 to 21: of a batch that was not written to its end;"
        f" the broker was shut down cleanly ({CLEAN_SHUTDOWN}); by the checkpoints, the log reached offset 22",
        "1 range or record is lost: see the line with lost",
    ]


def test_what_lies_outside_of_a_range_is_not_said(tmp_path: Path) -> None:
    log = put(tmp_path / "t-0", (0, WHOLE + LOOKS["half a batch"]))
    table = LogDirectory(log).cut(tmp_path / "out", (0, 5))
    assert table.column("what").to_pylist() == ["kept"]


@pytest.mark.slow
def test_a_log_that_holds_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i, (verb, look) in enumerate((v, k) for v in VERBS for k in LOOKS):
        log = put(tmp_path / str(i) / "t-0", (7, LOOKS[look]))
        code, said, _ = wrote(verb, log, tmp_path / f"out{i}", capsys)
        assert code == 0, (verb, look)
        assert not {row["what"] for row in said} & {"lost", "refused"}
