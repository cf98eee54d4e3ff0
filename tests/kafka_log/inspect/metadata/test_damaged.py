"""``kafka-log metadata`` where snapshots or the log are damaged: the answer is from what is whole, and what is left out is told."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log import SegmentReader
from kafka_log.cli import main
from kafka_log.inspect.metadata import metadata_log
from kafka_log.inspect.metadata.table import KINDS
from kafka_log.log_directory import LogDirectory
from kafka_log.logs.metadata_snapshots import (
    MetadataSnapshot,
    find_snapshot_damage,
    list_snapshots,
)
from kafka_log.logs.partitions import DirectoryError
from kafka_log.segment.positioned_reads import UnreadableError
from tests.paths import SAMPLES
from tests.support.made_topics import entry, log, metadata, uuid

SAMPLE = SAMPLES / "kafka-4.x" / "__cluster_metadata-0"
NEWEST, OLDEST = list_snapshots(SAMPLE)
END = 167
SEGMENT = f"{0:020}.log"


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return shutil.copytree(SAMPLE, tmp_path / SAMPLE.name)


def flipped(path: Path, byte: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if byte is None else byte] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def noise(path: Path) -> None:
    path.write_bytes(b"\xff" * 300)


def unknown(path: Path) -> None:
    """Whole, but its second batch has a record of a type that nobody knows."""
    batches = [path.read_bytes()[b.position : b.position + b.size] for b in SegmentReader(path)]
    last = list(SegmentReader(path))[-1]
    made = entry(last.base_offset, None, b"\1\x63\0\0")
    footer = bytearray(batches[-1])
    footer[:8] = (last.base_offset + 1).to_bytes(8, "big")
    path.write_bytes(b"".join(batches[:-1]) + made + footer)


def without_footer(path: Path) -> None:
    last = list(SegmentReader(path))[-1]
    path.write_bytes(path.read_bytes()[: last.position])


def without_header(path: Path) -> None:
    second = list(SegmentReader(path))[1]
    path.write_bytes(path.read_bytes()[second.position :])


DAMAGES: list[Callable[[Path], None]] = [flipped, cut, emptied, noise, unknown, without_footer, without_header]  # fmt: skip


def begins_at_newest(sample: Path) -> None:
    """The log of the sample as retention leaves it: from the newest snapshot on."""
    first = sample / SEGMENT
    start = next(b.position for b in SegmentReader(first) if b.base_offset == NEWEST.end_offset)
    (sample / f"{NEWEST.end_offset:020}.log").write_bytes(first.read_bytes()[start:])
    for name in (SEGMENT, f"{0:020}.index", f"{0:020}.timeindex"):
        (sample / name).unlink()


def told(
    path: Path, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, list[str], list[str]]:
    code = main(["metadata", str(path), "--format", "jsonl", *options])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err.splitlines()


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_newest_snapshot_that_is_damaged(
    sample: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The log has all of it: the answer is whole, and the snapshot is told."""
    code, whole, err = told(sample, capsys, "--what", "partitions")
    assert (code, err) == (0, [])
    damage(sample / NEWEST.path.name)
    for options in ([], ["--policy", "salvage"], ["--as-of", str(END)]):
        code, rows, err = told(sample, capsys, "--what", "partitions", *options)
        assert (code, rows, len(err)) == (1, whole, 1)
        assert NEWEST.path.name in err[0]
        assert f"the answer comes from {OLDEST.path.name} and the log after it" in err[0]
    assert LogDirectory(sample).metadata("partitions") == LogDirectory(SAMPLE).metadata("partitions")  # fmt: skip


def test_all_snapshots_are_damaged(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = LogDirectory(sample).metadata("configs")
    for name in (NEWEST.path.name, OLDEST.path.name):
        flipped(sample / name)
    assert LogDirectory(sample).metadata("configs") == expected
    code, rows, err = told(sample, capsys, "--what", "configs")
    assert (code, len(rows), len(err)) == (1, expected.num_rows, 2)
    assert all("the answer comes from the log" in line for line in err)


@pytest.mark.share(2)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_the_log_begins_at_the_damaged_snapshot(
    sample: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is whole ends with the older snapshot: never the rest of the damaged one, or the log without what it stands on."""
    begins_at_newest(sample)
    damage(sample / NEWEST.path.name)
    older = OLDEST.end_offset - 1
    for options in ([], ["--as-of", str(END)]):
        code, rows, err = told(sample, capsys, "--what", "features", *options)
        before = told(sample, capsys, "--what", "features", "--as-of", str(older))
        assert (code, rows) == (1, before[1])
        asked = options[1] if options else "the end of the log"
        assert [f"the answer is as of offset {older}, not {asked}" in line for line in err] == [False, True]  # fmt: skip
        assert f"the records from offset {OLDEST.end_offset} to {NEWEST.end_offset - 1} are missing" in err[1]  # fmt: skip
    with pytest.raises(DirectoryError, match="are missing"):
        LogDirectory(sample).metadata("features")
    (sample / OLDEST.path.name).unlink()
    code, rows, err = told(sample, capsys)
    assert (code, rows) == (2, [])
    assert NEWEST.path.name in err[0]


def test_salvage_of_a_snapshot(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing whole goes further, the valid batches of the newest one are read, and it is told."""
    expected = LogDirectory(sample).metadata("topics").to_pylist()
    begins_at_newest(sample)
    path = sample / NEWEST.path.name
    whole = path.read_bytes()
    last = next(b for b in reversed(list(SegmentReader(path))) if not b.is_control)
    flipped(path, last.position + last.size - 4)
    code, rows, err = told(sample, capsys, "--policy", "salvage")
    assert code == 1 and any("their changes are missing" in line for line in err)
    path.write_bytes(whole[: last.position] + whole[last.position + last.size :])
    assert told(sample, capsys, "--policy", "salvage")[1] == rows
    assert len(rows) < len(expected)


@pytest.mark.slow
@pytest.mark.parametrize("salvage", [False, True])
@pytest.mark.parametrize("damaged", [NEWEST, OLDEST])
def test_snapshots_that_are_included(
    sample: Path, damaged: MetadataSnapshot, salvage: bool
) -> None:
    """To include them changes nothing: the newest undamaged one is read anyhow."""
    begins_at_newest(sample)
    flipped(sample / damaged.path.name)
    answers = []
    for include in ((), "snapshot"):
        lines: list[str] = []
        log = LogDirectory(sample, include=include)
        answers.append((log.metadata(salvage=salvage, on_damage=lines.append), lines))
    assert answers[0] == answers[1]


def topic(offset: int) -> bytes:
    return metadata(offset, "TOPIC_RECORD", name=f"t{offset}", topic_id=uuid(offset))


def broken(offset: int) -> bytes:
    data = bytearray(topic(offset))
    data[-1] ^= 1
    return bytes(data)


STRETCHES: dict[str, list[bytes]] = {
    "a checksum": [broken(2)],
    "noise": [b"\xff" * 200],
    "zeros": [bytes(200)],
    "a record that is not known": [entry(2, None, b"\1\x63\0\0")],
    "a record without a value": [entry(2, None, None)],
    "a batch is gone": [],
}


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("stretch", STRETCHES)
def test_a_damaged_stretch_of_the_log(
    tmp_path: Path, stretch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log(tmp_path, "__cluster_metadata-0", topic(0), topic(1), *STRETCHES[stretch], topic(3))
    for what in KINDS:
        code, rows, err = told(path, capsys, "--what", what)
        assert (code, len(err)) == (1, 1), what
        assert "the answer is as of offset 1, not the end of the log" in err[0]
        assert len(rows) == 2 * (what == "topics")
    assert told(path, capsys, "--as-of", "1")[0] == 0
    code, rows, err = told(path, capsys, "--as-of", "3")
    assert code == 1
    assert [json.loads(row)["topic"] for row in rows] == ["t0", "t1"]
    assert "as of offset 1, not 3" in err[0]
    with pytest.raises((CodecError, DirectoryError)):
        LogDirectory(path).metadata()
    lines: list[str] = []
    assert LogDirectory(path).metadata(on_damage=lines.append).num_rows == 2
    assert len(lines) == 1
    code, rows, err = told(path, capsys, "--policy", "salvage")
    names = [json.loads(row)["topic"] for row in rows]
    assert (code, names[:2], names[-1]) == (1, ["t0", "t1"], "t3")
    assert "their changes are missing" in err[0]


def test_an_unknown_topic_beside_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It may be in what cannot be read."""
    path = log(tmp_path, "__cluster_metadata-0", topic(0), broken(1), topic(2))
    code, rows, err = told(path, capsys, "--topic", "t2")
    assert (code, rows, len(err)) == (2, [], 2)
    assert "the answer is as of offset 0" in err[0] and "no topic t2; there are: t0" in err[1]


def test_changes_beside_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path, "__cluster_metadata-0", topic(0), topic(1), broken(2), topic(3), topic(4))
    code, rows, err = told(path, capsys, "--changes", "0:4")
    assert (code, len(rows), len(err)) == (1, 1, 1)
    assert json.loads(rows[0])["topic"] == "t1"
    assert "after: the answer is as of offset 1, not 4" in err[0]
    assert told(path, capsys, "--changes", "0:1")[0] == 0
    for between in ("1:4", "3:4", "2:"):  # nothing is left to compare
        code, rows, err = told(path, capsys, "--changes", between)
        assert (code, rows, len(err)) == (1, [], 1)
    with pytest.raises(CodecError):
        LogDirectory(path).metadata_changes(0, 4)
    code, rows, err = told(path, capsys, "--changes", "0:4", "--policy", "salvage")
    assert code == 1
    assert {json.loads(row)["topic"] for row in rows} >= {"t1", "t3", "t4"}


def test_changes_from_before_a_snapshot_after_damage(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first offset lies in a damaged stretch, and the snapshot after it is whole: another first one is compared, and told."""
    bad = next(b for b in SegmentReader(sample / SEGMENT) if b.base_offset >= 40)
    flipped(sample / SEGMENT, bad.position + bad.size - 1)
    code, rows, err = told(sample, capsys, "--what", "partitions", "--changes", f"50:{END}")
    assert code == 1
    first = bad.base_offset - 1
    assert f"before: the answer is as of offset {first}, not 50" in err[0]
    expected = told(SAMPLE, capsys, "--what", "partitions", "--changes", f"{first}:{END}")[1]
    assert rows == expected
    assert told(sample, capsys, "--what", "partitions")[0] == 0, "the snapshot is after it"


def test_noise_in_the_log_before_the_newest_snapshot(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the snapshot says already is not read."""
    expected = told(sample, capsys, "--what", "partitions")
    bad = next(b for b in SegmentReader(sample / SEGMENT) if b.base_offset >= 40)
    data = (sample / SEGMENT).read_bytes()
    end = bad.position + bad.size
    (sample / SEGMENT).write_bytes(data[: bad.position] + b"\xff" * bad.size + data[end:])
    assert told(sample, capsys, "--what", "partitions") == expected
    code, _, err = told(sample, capsys, "--as-of", "58")
    assert code == 1
    assert f"as of offset {bad.base_offset - 1}, not 58" in err[0]


def test_another_controller_has_what_is_damaged_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log(tmp_path / "a", "__cluster_metadata-0", topic(0), broken(1), topic(2), topic(3))
    log(tmp_path / "b", "__cluster_metadata-0", topic(0), topic(1), topic(2))
    code = main(["metadata", str(tmp_path / "a"), str(tmp_path / "b")])
    out, err = capsys.readouterr()
    assert code == 1
    assert out.count("t") > 3
    assert "as of offset 2, not the end of the log" in err


def test_the_end_of_another_controller_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has records that the whole replica lacks, and nothing says how many."""
    paths = [tmp_path / name for name in "ab"]
    log(paths[0], "__cluster_metadata-0", *map(topic, range(4)), b"\xff" * 100)
    log(paths[1], "__cluster_metadata-0", topic(0), topic(1))
    for more in ([], ["--policy", "salvage"], ["--changes", "0:"]):
        assert main(["metadata", *map(str, paths), *more]) == 1
        err = capsys.readouterr().err
        assert str(paths[0]) in err and "may be newer than the one that is read" in err
    both = LogDirectory(paths)
    with pytest.raises(CodecError, match=re.escape(str(paths[0]))):
        both.metadata()
    assert both.metadata(as_of=1) == LogDirectory(paths[1]).metadata(as_of=1)
    assert both.metadata(salvage=True).num_rows == 2


def test_a_log_that_cannot_be_read_for_another_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Directories of other topics are none of its business."""
    log(tmp_path, "__cluster_metadata-0", topic(0))
    (tmp_path / "orders-0").symlink_to(tmp_path / "nowhere")
    assert main(["metadata", str(tmp_path)]) == 0
    assert "t0" in capsys.readouterr().out


def removed(path: Path) -> None:
    path.unlink()


def replaced_by_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.slow
@pytest.mark.parametrize("change", [removed, replaced_by_a_directory])
@pytest.mark.parametrize("salvage", [False, True])
def test_a_segment_that_is_gone_after_the_listing(
    sample: Path, change: Callable[[Path], None], salvage: bool
) -> None:
    """What the newest snapshot has is still known; the records after it are damage, as unreadable ones are."""
    opened, lines = LogDirectory(sample), list[str]()
    expected = LogDirectory(sample).metadata(as_of=NEWEST.end_offset - 1)
    assert opened.partitions
    change(sample / SEGMENT)
    with pytest.raises(UnreadableError, match=SEGMENT):
        opened.metadata()
    assert opened.metadata(salvage=salvage, on_damage=lines.append) == expected
    assert len(lines) == 1 and SEGMENT in lines[0]
    assert opened.metadata_changes(0, salvage=salvage, on_damage=lines.append).num_rows


@pytest.mark.slow
@pytest.mark.parametrize("salvage", [False, True])
@pytest.mark.parametrize("is_checked", [False, True])
def test_a_snapshot_that_is_gone_after_the_listing(
    sample: Path, monkeypatch: pytest.MonkeyPatch, is_checked: bool, salvage: bool
) -> None:
    """A broker deletes snapshots before or after they are checked: the log has the same records."""
    expected = LogDirectory(sample).metadata("partitions")

    def remove_and_check(snapshot: MetadataSnapshot) -> CodecError | None:
        why = find_snapshot_damage(snapshot) if is_checked else None
        snapshot.path.unlink(missing_ok=True)
        return why if is_checked else find_snapshot_damage(snapshot)

    monkeypatch.setattr(metadata_log, "find_snapshot_damage", remove_and_check)
    lines: list[str] = []
    opened = LogDirectory(sample)
    assert opened.metadata("partitions", salvage=salvage, on_damage=lines.append) == expected
    # One that is gone before its records were read is not even listed the next time.
    assert [".checkpoint was skipped" in line for line in lines] == (
        [] if is_checked else [True] * 2
    )


@pytest.mark.slow
@pytest.mark.parametrize("salvage", [False, True])
def test_a_directory_that_is_gone_after_the_listing(sample: Path, salvage: bool) -> None:
    """It is followed to the name that a broker gives it before it deletes it; then another replica answers."""
    expected = LogDirectory(sample).metadata()
    other = shutil.copytree(SAMPLE, sample.parent / "other" / SAMPLE.name)
    alone, both = LogDirectory(sample), LogDirectory([sample, other], replicas="keep")
    assert alone.partitions and both.partitions
    renamed = sample.rename(sample.with_name(f"{sample.name}.{'0a' * 16}-delete"))
    assert alone.metadata(salvage=salvage) == expected
    shutil.rmtree(renamed)
    lines: list[str] = []
    with pytest.raises(UnreadableError, match=sample.name):
        alone.metadata(salvage=salvage, on_damage=lines.append)
    assert both.metadata(salvage=salvage) == expected


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 3, -2])
def test_a_length_that_reaches_beyond_the_file(
    tmp_path: Path, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The batch looks like one that a broker still writes, but valid ones follow: the answer ends before it, and that is told."""
    (tmp_path / SAMPLE.name).mkdir()
    path = tmp_path / SAMPLE.name / SEGMENT
    shutil.copy(SAMPLE / SEGMENT, path)
    batch = list(SegmentReader(path))[number]
    flipped(path, batch.position + 9)  # a high byte of the length
    code, rows, err = told(tmp_path, capsys, "--what", "configs")
    assert code != 0 and any("one begins at byte" in line for line in err)
    assert number == -2 or len(rows) < LogDirectory(SAMPLE).metadata("configs").num_rows
