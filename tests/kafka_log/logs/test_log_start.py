"""Records before the log start offset: gone for consumers, and there when they are asked for."""

from __future__ import annotations

import io
import json
import shutil
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory, discover, read_table
from kafka_log.cli import main
from kafka_log.logs.names import LOG_START
from tests.paths import SAMPLES

EXPECTED: dict[str, Any] = json.loads((SAMPLES / "expected.json").read_text("utf-8"))
BROKERS = ("kafka-2.8", "kafka-4.x")
CONSUMED = [
    (broker, name, level)
    for broker in BROKERS
    for name, part in EXPECTED[broker]["partitions"].items()
    for level in ("read_uncommitted", "read_committed")
    if level in part
]


@pytest.mark.slow
@pytest.mark.parametrize(("broker", "name", "level"), CONSUMED)
def test_what_consumers_got(broker: str, name: str, level: Any) -> None:
    wanted = EXPECTED[broker]["partitions"][name][level]
    found = read_table(SAMPLES / broker / name, ["offset"], isolation=level)["offset"].to_pylist()
    assert len(found) == wanted["count"]
    assert (min(found, default=None), max(found, default=None)) == (
        wanted["first_offset"],
        wanted["last_offset"],
    )


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """Two partitions of four segments or more, the start of one of them in its second."""
    for name in ("segments.small-0", "segments.small-1"):
        shutil.copytree(SAMPLES / "kafka-4.x" / name, tmp_path / "disk" / name)
    bases = [s.base_offset for s in discover(tmp_path / "disk")[0].segments]
    checkpoint(tmp_path / "disk", f"segments.small 0 {bases[1] + 3}")
    return tmp_path / "disk"


def checkpoint(directory: Path, *lines: str) -> None:
    text = "\n".join(["0", str(len(lines)), *lines, ""])
    (directory / LOG_START).write_text(text)


def offsets(path: Any, **options: Any) -> list[int]:
    found: list[int] = read_table(path, ["offset"], **options)["offset"].to_pylist()
    return found


def test_the_same_rows_however_it_is_named(broker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (part, _) = discover(broker)
    everything = offsets(part.directory, deleted_records=True)
    start = part.segments[1].base_offset + 3
    wanted = [offset for offset in everything if offset >= start]
    assert 0 < len(wanted) < len(everything)
    assert offsets(broker, partitions=0) == wanted
    assert offsets(part.directory) == wanted
    assert offsets([segment.path for segment in part.segments]) == wanted
    assert offsets(part.segments[0].path) == []
    assert offsets([part]) == wanted
    assert offsets([part], offsets=(start - 5, start + 5)) == [o for o in wanted if o < start + 5]
    assert offsets([part], offsets=(None, start)) == []
    assert offsets([part], policy="salvage") == wanted
    link = broker.parent / "link"
    link.symlink_to(part.directory)
    assert offsets(link) == wanted
    monkeypatch.chdir(part.directory)
    assert offsets(".") == wanted
    other = LogDirectory(broker, partitions=[1]).partitions
    assert offsets(other) == offsets(other, deleted_records=True)


@pytest.mark.parametrize(
    "text", ["0\n2\nsegments.small 0 25\n", "nonsense", "9\n1\nsegments.small 0 25\n", "\xff"]
)
def test_a_checkpoint_that_cannot_be_read_says_nothing(broker: Path, text: str) -> None:
    everything = offsets(broker, partitions=0, deleted_records=True)
    (broker / LOG_START).write_bytes(text.encode("latin-1"))
    with pytest.warns(UserWarning, match=rf"log start offsets are unknown: .*{LOG_START}"):
        assert offsets(broker, partitions=0) == everything


@pytest.mark.parametrize("how", ["dangling link", "directory"])
def test_a_checkpoint_that_is_no_file_says_nothing(broker: Path, how: str) -> None:
    everything = offsets(broker, partitions=0, deleted_records=True)
    (broker / LOG_START).unlink()
    if how == "directory":
        (broker / LOG_START).mkdir()
    else:
        (broker / LOG_START).symlink_to("/nowhere/at/all")
    with pytest.warns(UserWarning, match=rf"log start offsets are unknown: .*{LOG_START}"):
        assert offsets(broker, partitions=0) == everything


def test_an_empty_checkpoint_has_no_entries(broker: Path) -> None:
    (broker / LOG_START).write_bytes(b"")
    assert offsets(broker, partitions=0) == offsets(broker, partitions=0, deleted_records=True)


def test_a_start_after_the_end_leaves_nothing(broker: Path) -> None:
    """As a broker has it: it deletes such a log when it starts."""
    checkpoint(broker, "segments.small 0 1000000")
    assert offsets(broker, partitions=0) == []


def test_segments_that_are_asked_for_by_their_state(broker: Path) -> None:
    first = discover(broker)[0].segments[0].path
    wanted = offsets(first, deleted_records=True)
    first.rename(first.with_name(first.name + ".deleted"))
    live = offsets(broker, partitions=0)
    assert offsets(broker, partitions=0, include="deleted") == [*wanted, *live]


def test_commands_say_what_they_leave_out(
    broker: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    start = discover(broker)[0].segments[1].base_offset + 3
    told = f"records below the log start offset were skipped: segments.small-0 before {start}; add --deleted"
    out = ["--out", str(tmp_path / "out")]
    for command in (["dump"], ["keys"], ["export", *out]):
        with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")):
            assert main([command[0], str(broker), *command[1:]]) == 0
        assert told in capsys.readouterr().err, command
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")):
        assert main(["dump", str(broker), "--deleted-records"]) == 0
        assert main(["dump", str(broker), "--offsets", f"{start}:"]) == 0
        assert main(["dump", str(broker), "--partition", "1"]) == 0
    assert capsys.readouterr().err == ""


def test_an_export_is_made_anew_when_the_start_moves(broker: Path, tmp_path: Path) -> None:
    log = LogDirectory(broker, partitions=[0])
    (first,) = log.export(tmp_path / "out")
    checkpoint(broker, "segments.small 0 70")
    (again,) = log.export(tmp_path / "out", overwrite=True)
    assert again.made and 0 < again.rows < first.rows
    (kept,) = log.export(tmp_path / "out")
    assert not kept.made and kept.rows == again.rows
