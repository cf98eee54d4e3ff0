"""Offsets that are nowhere: an error where compaction cannot have taken them, a note where nobody knows, nothing where it has been."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_log import LogDirectory, SegmentReader, encode
from tests.paths import SAMPLES
from tests.support.batches import batch
from tests.support.check_plants import PLAIN, pieces, remove_segment, replaced
from tests.support.lying_headers import with_header
from tests.support.made_topics import metadata

BROKER = SAMPLES / "kafka-4.x"
EPOCHS = "leader-epoch-checkpoint"
METADATA = "__cluster_metadata-0"


def gaps(root: Path) -> list[tuple[str, str, int, int]]:
    rows = LogDirectory(root).check().to_pylist()
    return [
        (row["severity"], row["code"], row["first_offset"], row["last_offset"])
        for row in rows
        if row["code"] in ("segment_missing", "offsets_missing")
    ]


@pytest.mark.slow
def test_a_partition_that_the_cleaner_does_not_know(tmp_path: Path) -> None:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    remove_segment(root / PLAIN, 42)
    assert gaps(root) == [("error", "segment_missing", 42, 83)]
    assert gaps(root / PLAIN) == [("error", "segment_missing", 42, 83)]
    # Without either the metadata says that the topic was never compacted.
    (root / "cleaner-offset-checkpoint").unlink()
    assert gaps(root) == [("error", "segment_missing", 42, 83)]
    shutil.rmtree(root / METADATA)
    assert gaps(root) == [("note", "segment_missing", 42, 83)]


def begin_without_batch(directory: Path, base: int, how: str) -> None:
    """Make a segment one in which no valid batch comes first, as a broker may leave it that is killed."""
    path = directory / f"{base:020d}.log"
    data = path.read_bytes()
    for suffix in (".index", ".timeindex"):
        path.with_suffix(suffix).write_bytes(b"")
    contents = {
        "empty": b"",
        "zeros": bytes(512),
        "torn": data[:70],
        "short": data[:9],
        "damaged": bytes([*data[:80], data[80] ^ 1, *data[81:]]),
    }
    path.write_bytes(contents[how])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["empty", "zeros", "torn", "short", "damaged"])
def test_a_segment_without_a_batch_at_its_start_ends_a_gap(tmp_path: Path, how: str) -> None:
    """A broker names a segment after the end of the log."""
    directory = tmp_path / "broker" / PLAIN
    for name in (METADATA, PLAIN):
        shutil.copytree(BROKER / name, tmp_path / "broker" / name)
    begin_without_batch(directory, 126, how)
    assert gaps(tmp_path / "broker") == []
    remove_segment(directory, 84)
    assert gaps(tmp_path / "broker") == [("error", "segment_missing", 84, 125)]
    last = LogDirectory(directory).partitions[0].segments[1].path
    rows = [batch.position for batch in SegmentReader(last)]
    last.write_bytes(last.read_bytes()[: rows[-1]])
    (gap,) = gaps(tmp_path / "broker")
    assert gap[0] == "error"
    assert gap[2] < 84
    assert gap[3] == 125


def test_several_empty_segments_end_one_gap(tmp_path: Path) -> None:
    for name in (METADATA, PLAIN):
        shutil.copytree(BROKER / name, tmp_path / name)
    remove_segment(tmp_path / PLAIN, 84)
    begin_without_batch(tmp_path / PLAIN, 126, "empty")
    (tmp_path / PLAIN / f"{144:020d}.log").touch()
    assert gaps(tmp_path) == [("error", "segment_missing", 84, 143)]
    # A file that cannot be read does not hide it.
    (tmp_path / PLAIN / f"{150:020d}.log").symlink_to("gone")
    assert gaps(tmp_path) == [("error", "segment_missing", 84, 143)]


def test_an_empty_segment_at_the_end_of_a_compacted_log(tmp_path: Path) -> None:
    """The cleaner removes tombstones and markers, also the last ones before the active segment."""
    for name in ("cleaner-offset-checkpoint", METADATA):
        (shutil.copytree if (BROKER / name).is_dir() else shutil.copy)(
            BROKER / name, tmp_path / name
        )
    directory = tmp_path / "compacted-0"
    shutil.copytree(BROKER / "compacted-0", directory)
    last = LogDirectory(directory).partitions[0].segments[-1]
    end = list(SegmentReader(last.path))[-1].last_offset + 1
    (directory / f"{end + 2:020d}.log").touch()
    assert gaps(tmp_path) == []


def test_a_partition_that_the_cleaner_knows(tmp_path: Path) -> None:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    remove_segment(root / PLAIN, 42)
    path = root / "cleaner-offset-checkpoint"
    text = path.read_text(encoding="utf-8").replace("0\n3\n", "0\n4\nsegments.small 0 84\n")
    path.write_text(text, encoding="utf-8")
    assert gaps(root) == []


@pytest.mark.parametrize("index", [".index", ".timeindex"])
@pytest.mark.parametrize("is_compacted", [False, True])
def test_an_index_without_its_segment_is_proof(
    tmp_path: Path, index: str, *, is_compacted: bool
) -> None:
    """Whoever deletes or cleans a segment takes its indexes too. One finding says all of it."""
    directory = tmp_path / PLAIN
    shutil.copytree(BROKER / PLAIN, directory)
    if is_compacted:
        (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nsegments.small 0 144\n")
    kept = (directory / f"{42:020d}{index}").read_bytes()
    remove_segment(directory, 42)
    path = directory / f"{42:020d}{index}"
    path.write_bytes(kept)
    (row,) = LogDirectory(tmp_path).check().to_pylist()
    found = row["severity"], row["code"], row["file"], row["byte"]
    assert found == ("error", "segment_missing", str(directory / f"{84:020d}.log"), 0)
    assert (row["first_offset"], row["last_offset"], row["records"]) == (42, 83, 42)
    assert path.name in row["meaning"]
    # Not one of another place, and not one whose segment is about to be deleted.
    path.rename(directory / f"{43:020d}{index}")
    assert ("error", "segment_missing", 42, 83) not in gaps(tmp_path)
    (directory / f"{43:020d}{index}").rename(path)
    (directory / f"{42:020d}.log.deleted").touch()
    assert ("error", "segment_missing", 42, 83) not in gaps(tmp_path)


@pytest.mark.slow
def test_the_first_segments_and_the_last_ones_may_be_missing(tmp_path: Path) -> None:
    """Retention takes the first ones; what is missing at the end the high watermark says."""
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    remove_segment(root / PLAIN, 0)
    assert gaps(root) == [("error", "segment_missing", 0, 41)]
    # The broker cuts the epochs to the start of the log.
    replaced(root / PLAIN / EPOCHS, "\n0 0\n", "\n0 42\n")
    assert gaps(root) == []
    remove_segment(root / PLAIN, 126)
    assert gaps(root) == []
    codes = {row["code"] for row in LogDirectory(root).check().to_pylist()}
    assert "high_watermark_beyond_end" in codes


def test_the_metadata_log_is_not_compacted(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    shutil.copytree(BROKER / "__cluster_metadata-0", directory)
    path = directory / f"{0:020d}.log"
    found = pieces(path)
    path.write_bytes(b"".join(found[:10] + found[11:]))
    ((severity, code, _, _),) = gaps(directory)
    assert (severity, code) == ("error", "offsets_missing")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([None, None, None], "error"),
        ([b"k", None, b"k"], "error"),
        ([b"k", b"k", b"k"], "note"),
        ([b"k", b"k", None], "error"),
    ],
)
def test_records_without_keys_are_of_no_compacted_topic(
    tmp_path: Path, keys: list[bytes | None], expected: str
) -> None:
    directory = tmp_path / "orders-0"
    write(directory, [(0, keys[0]), (5, keys[1]), (20, keys[2])])
    assert gaps(directory) == [(expected, "offsets_missing", 10, 19)]


@pytest.mark.parametrize("count", [7, 40])
def test_many_gaps_between_records_with_keys_may_be_compaction(tmp_path: Path, count: int) -> None:
    """One note says how many offsets it is about: a replica that was fetched from a compacted leader looks like that."""
    directory = tmp_path / "orders-0"
    write(directory, [(10 * i, b"k") for i in range(count)])
    ((severity, code, first, last),) = gaps(directory)
    assert (severity, code, first, last) == ("note", "offsets_missing", 5, 10 * count - 11)
    (row,) = [r for r in LogDirectory(directory).check().to_pylist() if r["code"] == code]
    assert row["records"] == 5 * (count - 1)
    assert row["meaning"].startswith(f"{5 * (count - 1)} offsets are missing in {count - 1} gaps")


def test_gaps_between_records_without_keys_are_told_one_by_one(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    write(directory, [(10 * i, None) for i in range(7)])
    assert gaps(directory) == [
        ("error", "offsets_missing", 10 * i + 5, 10 * i + 9) for i in range(6)
    ]


CUT = {0: (1, 3, 5), 42: (1, 3)}
"""Batches of two segments that are cut out, six records each."""


@pytest.fixture
def cut_out(tmp_path: Path) -> Path:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    without_batches(root / PLAIN, CUT)
    return root


def without_batches(directory: Path, gone: dict[int, tuple[int, ...]]) -> None:
    """Batches of segments are cut out, and the indexes are those of the rest."""
    for base, those in gone.items():
        path = directory / f"{base:020d}.log"
        path.write_bytes(b"".join(b for i, b in enumerate(pieces(path)) if i not in those))
    LogDirectory(directory).reindex(directory.parent / ".." / "indexes")
    for path in (directory.parent / ".." / "indexes" / directory.name).iterdir():
        if path.suffix in (".index", ".timeindex"):
            shutil.copy(path, directory / path.name)


@pytest.mark.slow
def test_the_metadata_says_that_a_topic_was_never_compacted(cut_out: Path) -> None:
    expected = [
        ("error", "offsets_missing", base + 6 * i, base + 6 * i + 5)
        for base, those in CUT.items()
        for i in those
    ]
    assert gaps(cut_out) == gaps(cut_out / PLAIN) == expected
    shutil.rmtree(cut_out / METADATA)
    assert gaps(cut_out) == [("note", "offsets_missing", 6, 65)]


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("policy", ["compact", "delete", None])
@pytest.mark.parametrize("resource", [(2, "segments.small"), (4, "")])
def test_a_topic_whose_policy_somebody_set(
    cut_out: Path, resource: tuple[int, str], policy: str | None
) -> None:
    """It may have been compacted once, whatever the setting is now."""
    name = "cleanup.policy" if resource[0] == 2 else "log.cleanup.policy"
    set_in_metadata(cut_out / METADATA, *resource, name, policy)
    assert gaps(cut_out) == [("note", "offsets_missing", 6, 65)]


@pytest.mark.slow
def test_another_setting_says_nothing_of_cleaning(cut_out: Path) -> None:
    set_in_metadata(cut_out / METADATA, 2, "segments.small", "retention.ms", "1")
    set_in_metadata(cut_out / METADATA, 2, "codecs", "cleanup.policy", "compact")
    assert len(gaps(cut_out)) == 5


def test_metadata_that_cannot_be_read(cut_out: Path) -> None:
    for path in (cut_out / METADATA).iterdir():
        path.write_bytes(b"not what it was")
    assert gaps(cut_out)[-1] == ("note", "offsets_missing", 6, 65)


@pytest.mark.slow
@pytest.mark.parametrize("gone", [(0,), (0, 1, 2)])
def test_the_first_batches_of_the_log(tmp_path: Path, gone: tuple[int, ...]) -> None:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    without_batches(root / PLAIN, {0: gone})
    last = 6 * len(gone) - 1
    assert gaps(root) == [("error", "offsets_missing", 0, last)]
    # Those that were deleted nobody reads.
    replaced(root / "log-start-offset-checkpoint", "\n1\n", f"\n2\nsegments.small 0 {last + 1}\n")
    replaced(root / PLAIN / EPOCHS, "\n0 0\n", f"\n0 {last + 1}\n")
    assert gaps(root) == [("note", "offsets_missing", 0, last)]
    (root / "log-start-offset-checkpoint").unlink()
    shutil.rmtree(root / METADATA)
    assert gaps(root) == [("note", "offsets_missing", 0, last)]


def test_the_first_segment_without_its_bytes(tmp_path: Path) -> None:
    directory = tmp_path / PLAIN
    shutil.copytree(BROKER / PLAIN, directory)
    (directory / f"{0:020d}.log").write_bytes(b"")
    assert gaps(directory) == [("error", "offsets_missing", 0, 41)]
    (directory / f"{0:020d}.index").write_bytes(b"")  # it does not prove that batches were there
    assert gaps(directory) == [("note", "offsets_missing", 0, 41)]


def test_the_first_batch_of_records_without_keys(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    write(directory, [(5, None), (10, None)])
    assert gaps(directory) == [("error", "offsets_missing", 0, 4)]


@pytest.mark.slow
def test_a_log_that_begins_later_than_its_epochs(tmp_path: Path) -> None:
    """Retention that was stopped before the file was written, or segments that are in a tier: nobody knows."""
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    remove_segment(root / PLAIN, 0)
    note = [("note", "segment_missing", 0, 41)]
    assert gaps(root / PLAIN) == [("error", "segment_missing", 0, 41)]
    (root / ".kafka_cleanshutdown").unlink()
    assert gaps(root) == note
    (root / ".kafka_cleanshutdown").touch()
    # The checkpoint of a partition that is in a tier says where that begins.
    replaced(root / "log-start-offset-checkpoint", "\n1\n", "\n2\nsegments.small 0 0\n")
    assert gaps(root) == note


def set_in_metadata(directory: Path, kind: int, name: str, setting: str, value: str | None) -> None:
    """A record at the end of a metadata log: somebody sets something."""
    path = directory / f"{0:020d}.log"
    last = [batch.last_offset for batch in SegmentReader(path)][-1]
    fields = {"resource_type": kind, "resource_name": name, "name": setting, "value": value}
    with path.open("ab") as file:
        file.write(metadata(last + 1, "CONFIG_RECORD", **fields))


def write(directory: Path, batches: list[tuple[int, bytes | None]]) -> None:
    """A segment of batches of five records each, by their base offsets and keys."""
    directory.mkdir()
    data = b""
    for base, key in batches:
        rows = {"offset": list(range(base, base + 5)), "key": pa.array([key] * 5, pa.binary())}
        data += b"".join(encode(pa.table(rows)))
    (directory / f"{0:020d}.log").write_bytes(data)


@pytest.mark.slow
def test_a_broker_that_compacts_by_its_own_properties(tmp_path: Path) -> None:
    """Nothing in the metadata says so, but its cleaner has been at a topic for which nobody has set it."""
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    path = root / PLAIN / f"{42:020d}.log"
    found = pieces(path)
    path.write_bytes(b"".join(found[:2] + found[4:]))
    for index in (root / PLAIN).glob(f"{42:020d}.*index"):
        index.unlink()
    assert gaps(root) == [("error", "offsets_missing", 54, 65)]
    (row,) = (r for r in LogDirectory(root).check().to_pylist() if r["code"] == "offsets_missing")
    assert "log.cleanup.policy of server.properties" in row["meaning"]
    path = root / "cleaner-offset-checkpoint"
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace("0\n3\n", "0\n4\ncodecs 0 7\n"), encoding="utf-8")
    assert gaps(root) == [("note", "offsets_missing", 54, 65)]


@pytest.mark.parametrize("bases", [(0,), (0, 3), (0, 9)], ids=["one segment", "after it", "later"])
def test_a_header_that_contradicts_itself_bounds_no_gap(
    tmp_path: Path, bases: tuple[int, ...]
) -> None:
    """The first batch has three records, and a header that says it ends with the first of them. Offsets 6 to 8 are nowhere."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    batches = {0: with_header(batch(0), last_offset_delta=0), 3: batch(3), 9: batch(9)}
    for base, end in zip(bases, (*bases[1:], 99), strict=True):
        data = b"".join(data for first, data in batches.items() if base <= first < end)
        (directory / f"{base:020d}.log").write_bytes(data)
    assert [row[2:] for row in gaps(tmp_path)] == [(6, 8)]
