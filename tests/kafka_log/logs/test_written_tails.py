"""An incomplete batch at the end of a log is a loss for each command if the files of the broker prove that it was written."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from kafka_codecs import OFFSET_CHECKPOINT, RECORD_BATCH
from kafka_log import read_table, scan_batches
from kafka_log.cli import main
from kafka_log.logs.broker_files import read_checkpoint
from kafka_log.logs.names import CLEAN_SHUTDOWN, HIGH_WATERMARK
from kafka_log.segment.model import Lost
from tests.support.batches import batch
from tests.support.segment_files import put
from tests.support.torn_logs import torn_log

COMMANDS = {
    "dump": (),
    "dump --batches": (),
    "txn": (),
    "producers": (),
    "keys": (),
    "stat": (),
    "overview": (),
    "sql": ("select count(*) from records",),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", [*COMMANDS, "export"])
def test_a_tail_that_was_written_is_a_loss_for_each_command(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = torn_log(tmp_path / "logs", "")
    argv = [*command.split(), str(root), *COMMANDS.get(command, ())]
    out = tmp_path / "out"
    assert main([*argv, *(["--out", str(out)] if command == "export" else [])]) == 0
    said = "".join(capsys.readouterr())
    assert "are lost" not in said
    (root / CLEAN_SHUTDOWN).write_text("{}")
    assert main([*argv, *(["--out", str(out) + "2"] if command == "export" else [])]) == 1
    lines = [
        line for text in capsys.readouterr() for line in text.splitlines() if "are lost: " in line
    ]
    is_column_too = command in ("keys", "stat")
    assert len(lines) in ((1, 2) if is_column_too else (1,)) and CLEAN_SHUTDOWN in lines[-1]


@pytest.mark.parametrize("proof", ["clean shutdown", "high watermark", "lower high watermark", ""])
def test_scans_report_a_tail_that_was_written(proof: str, tmp_path: Path) -> None:
    root = torn_log(tmp_path, proof)
    is_lost = proof in ("clean shutdown", "high watermark")
    lost: list[Lost] = []
    read_table(root, on_lost=lambda _, one: lost.append(one))
    scan_batches(root, on_lost=lambda _, one: lost.append(one)).read_all()
    assert [one.after_offset for one in lost] == [12, 12] * is_lost
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_table(root)
    assert len(caught) == is_lost


def test_a_range_before_the_tail_loses_nothing(tmp_path: Path) -> None:
    root = torn_log(tmp_path, "clean shutdown")
    lost: list[object] = []
    table = read_table(root, ["offset"], offsets=(0, 11), on_lost=lambda *one: lost.append(one))
    assert table["offset"].to_pylist()[-1] == 10 and not lost


def test_an_open_transaction_hides_no_lost_end(tmp_path: Path) -> None:
    """Its marker may be what is lost."""
    fields: Any = {
        "producer_id": 7,
        "producer_epoch": 0,
        "base_sequence": 0,
        "base_offset": 13,
        "attributes": {"is_transactional": True},
        "records": [{"offset_delta": 0, "value": b"undecided"}],
    }
    root = torn_log(tmp_path, "clean shutdown")
    whole = batch(0) + batch(10) + RECORD_BATCH.build(fields)
    put(root / "t-0", (0, whole + batch(20)[:-3]))
    lost: list[Lost] = []
    for offsets in (None, (0, 20), (15, None)):
        lost.clear()
        options: Any = {"isolation": "read_committed", "offsets": offsets}
        table = read_table(root, ["offset"], on_lost=lambda _, one: lost.append(one), **options)
        assert 13 not in table["offset"].to_pylist()
        assert [one.after_offset for one in lost] == [13]
    lost.clear()
    read_table(
        root, isolation="read_committed", offsets=(0, 14), on_lost=lambda _, one: lost.append(one)
    )
    assert not lost


def test_a_checkpoint_of_many_partitions_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not read at all if no log has an incomplete batch at its end."""
    root = torn_log(tmp_path, "high watermark")
    for number in range(1, 4):
        put(root / f"t-{number}", (0, batch(0) + batch(10)[:-3]))
    checkpoint = root / HIGH_WATERMARK
    entries = [{"topic": "t", "partition": n, "offset": 23 - n * 10} for n in range(3)]
    checkpoint.write_bytes(OFFSET_CHECKPOINT.build({"entries": entries}))
    read: list[Path] = []

    def count_reads(path: Path) -> Any:
        read.append(path)
        return read_checkpoint(path)

    monkeypatch.setattr("kafka_log.logs.broker_files.read_checkpoint", count_reads)
    found: list[str] = []
    read_table(root, on_lost=lambda path, _: found.append(path.parent.name))
    assert (found, read) == (["t-0", "t-1"], [checkpoint])
    scan_batches(root, on_lost=lambda path, _: found.append(path.parent.name)).read_all()
    assert (found[2:], read[1:]) == (["t-0", "t-1"], [checkpoint])
    read.clear()
    for number in range(4):
        put(root / f"t-{number}", (0, batch(0)))
    read_table(root)
    assert not read
