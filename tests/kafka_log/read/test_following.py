"""Records of logs that grow: each is read once, also if segments are rolled, deleted, replaced or truncated."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_log.logs.partitions import Segment
from kafka_log.read import followed_log, following
from kafka_log.read.following import PartitionFollower
from tests.shares import draw_seeds
from tests.support.batches import message
from tests.support.followed_directories import (
    FollowedDirectory,
    append_bytes,
    create_log_file,
    offsets_of,
)
from tests.support.followed_directories import (
    batch_of_epoch_0 as batch,
)
from tests.support.growing_logs import Growing
from tests.support.made_topics import entry
from tests.support.unreadable_files import bad


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("seed", draw_seeds(12))
def test_each_record_is_read_once_whatever_happens_to_the_log(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    log = Growing(tmp_path / "t-0", r, transactions=False)
    followed = FollowedDirectory(tmp_path, {"policy": r.choice(["kafka", "strict", "salvage"])})
    end = 0
    for _ in range(60):
        happens = r.choice([log.append, log.append, log.append, log.roll, log.tear, log.delete, log.compact, log.truncate])  # fmt: skip
        happens()
        end = min(end, log.end)
        if happens != log.truncate and r.random() < 0.4:
            continue  # several things happen between two looks
        wanted = [(o, v.encode()) for o, v in log.uncommitted() if o >= end]
        assert followed.read() == wanted
        assert followed.read() == []
        end = log.end
    assert not followed.damaged
    assert not followed.ends


@pytest.mark.parametrize("policy", ["kafka", "strict", "salvage"])
def test_a_batch_is_read_when_its_last_byte_is_written(policy: str, tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0))
    followed = FollowedDirectory(tmp_path, {"policy": policy})
    assert offsets_of(followed.read()) == [0, 1, 2]
    data = batch(3)
    for byte in range(len(data) - 1):
        append_bytes(path, data[byte : byte + 1])
        if byte % 7 == 0:
            assert followed.read() == []
    append_bytes(path, data[-1:])
    assert offsets_of(followed.read()) == [3, 4, 5]
    assert not followed.damaged and not followed.ends and not followed.said


def test_a_torn_batch_is_not_damage_however_long_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PATIENCE_S", 0.0)
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3)[:-1])
    followed = FollowedDirectory(tmp_path)
    for _ in range(5):
        followed.read()
    append_bytes(path, batch(3)[-1:])
    assert offsets_of(followed.read()) == [3, 4, 5]
    assert not followed.damaged and not followed.ends


def test_a_torn_batch_is_damage_once_the_next_segment_exists(tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3)[:-1])
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == [0, 1, 2]
    append_bytes(create_log_file(tmp_path / "t-0", 6), batch(6))
    assert offsets_of(followed.read()) == [6, 7, 8]
    [end] = followed.ends
    assert end.iterated_bytes == len(batch(0))


@pytest.mark.parametrize("policy", ["kafka", "strict", "salvage"])
def test_a_wrong_checksum_is_damage_after_a_moment(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create_log_file(tmp_path / "t-0")
    whole = batch(3)
    changed = whole[:-1] + bytes([whole[-1] ^ 1])
    append_bytes(path, batch(0) + changed)
    followed = FollowedDirectory(tmp_path, {"policy": policy})
    assert offsets_of(followed.read()) == [0, 1, 2]
    assert followed.read() == []
    assert not followed.damaged and not followed.ends, "it may be written just now"
    monkeypatch.setattr(following, "PATIENCE_S", 0.0)
    followed.read()
    assert followed.damaged or followed.ends
    reported = len(followed.damaged) + len(followed.ends)
    followed.read()
    followed.read()
    assert len(followed.damaged) + len(followed.ends) == reported, "once"


def test_a_checksum_that_becomes_right_is_no_damage(tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    whole = batch(3)
    append_bytes(path, batch(0) + whole[:-1] + b"\xff")
    followed = FollowedDirectory(tmp_path)
    followed.read()
    path.write_bytes(batch(0) + whole)
    assert offsets_of(followed.read()) == [3, 4, 5]
    assert not followed.damaged


def test_damage_between_good_batches_is_reported_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PATIENCE_S", 0.0)
    path = create_log_file(tmp_path / "t-0")
    whole = batch(3)
    append_bytes(path, batch(0) + whole[:-1] + b"\xff" + batch(6))
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read())[-3:] == [6, 7, 8]
    assert followed.damaged == [len(batch(0))]


def test_preallocated_zeros_are_waited_for(tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    path.write_bytes(batch(0) + b"\0" * 5000)
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == [0, 1, 2]
    for _ in range(5):
        assert followed.read() == []
    with path.open("r+b") as file:
        file.seek(len(batch(0)))
        file.write(batch(3))
    os.utime(path, ns=(1, 1))  # a file system whose times are coarse may show any other
    assert offsets_of(followed.read()) == [3, 4, 5]
    assert not followed.damaged and not followed.ends


def test_a_compacted_segment_is_not_read_again(tmp_path: Path) -> None:
    first = create_log_file(tmp_path / "t-0")
    append_bytes(first, batch(0) + batch(3) + batch(6))
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == list(range(9))
    cleaned = tmp_path / "cleaned"
    cleaned.write_bytes(batch(0) + batch(6) + batch(9))
    cleaned.rename(first)
    append_bytes(create_log_file(tmp_path / "t-0", 12), batch(12))
    assert offsets_of(followed.read()) == [*range(9, 15)], "of the replaced file only what is new"
    assert not followed.said


@pytest.mark.parametrize("kept", [(15,), (12, 15), ()])
def test_unread_segments_that_the_cleaner_merges_into_one_that_was_read(
    kept: tuple[int, ...], tmp_path: Path
) -> None:
    first = create_log_file(tmp_path / "t-0")
    append_bytes(first, batch(0))
    second = create_log_file(tmp_path / "t-0", 9)
    append_bytes(second, batch(9))
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == [0, 1, 2, 9, 10, 11]
    cleaned = tmp_path / "cleaned"
    cleaned.write_bytes(b"".join(map(batch, (0, *kept))))
    second.unlink()
    cleaned.rename(first)
    append_bytes(create_log_file(tmp_path / "t-0", 30), batch(30))
    expected = [offset + i for offset in (*kept, 30) for i in range(3)]
    assert offsets_of(followed.read()) == expected
    assert not followed.said


def test_records_that_retention_deletes_unread_are_reported(tmp_path: Path) -> None:
    first = create_log_file(tmp_path / "t-0")
    append_bytes(first, batch(0))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    append_bytes(create_log_file(tmp_path / "t-0", 30), batch(30))
    first.unlink()
    assert offsets_of(followed.read()) == [30, 31, 32]
    assert followed.said == ["t-0: offsets 3 to 29 were deleted before they were read"]


def test_a_truncated_log_is_read_from_its_new_end(tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    os.truncate(path, len(batch(0)))
    assert followed.read() == []
    append_bytes(path, batch(3, size=20))
    assert offsets_of(followed.read()) == [3, 4, 5]
    [line] = followed.said
    assert "truncated from offset 6 to 3" in line


def test_what_cannot_be_read_any_more_does_not_hide_new_records(tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    append_bytes(path, batch(6))
    with bad(path, [(len(batch(0)), 2 * len(batch(0)))]):
        assert offsets_of(followed.read()) == [6, 7, 8]
    assert followed.said == []


@pytest.mark.parametrize(
    ("offsets_are_start", "expected"), [(True, [3, 4, 5, 6, 7, 8]), (False, [6, 7, 8])]
)
def test_new_records_below_the_first_selected_offset(
    offsets_are_start: bool, expected: list[int], tmp_path: Path
) -> None:
    """After a truncation below it, they are read if that offset only says where reading begins."""
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3) + batch(6))
    followed = FollowedDirectory(
        tmp_path, {"offsets": (6, None)}, offsets_are_start=offsets_are_start
    )
    assert offsets_of(followed.read()) == [6, 7, 8]
    os.truncate(path, len(batch(0)))
    assert followed.read() == []
    append_bytes(path, batch(3, size=11) + batch(6, size=11))
    assert offsets_of(followed.read()) == expected


def test_a_truncation_below_offsets_that_were_skipped_by_a_compaction(tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3) + batch(6))
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == list(range(9))
    compacted = tmp_path / "compacted"
    compacted.write_bytes(batch(0) + batch(6))
    compacted.replace(path)
    append_bytes(path, batch(9))
    assert offsets_of(followed.read()) == [9, 10, 11]
    os.truncate(path, len(batch(0)))
    assert followed.read() == []
    append_bytes(path, batch(3))
    assert offsets_of(followed.read()) == [3, 4, 5]


def test_records_that_were_written_again_below_the_new_end_may_be_missing(tmp_path: Path) -> None:
    """The file does not tell how far it was truncated."""
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3) + batch(6))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    path.write_bytes(batch(0) + batch(3, size=11))
    assert followed.read() == []
    append_bytes(path, batch(6, size=11))
    assert offsets_of(followed.read()) == [6, 7, 8]
    [line] = followed.said
    assert "from offset 9 to 6 or below" in line and "are not printed" in line


def test_a_log_that_was_truncated_and_written_again_is_noticed(tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    with path.open("r+b") as file:
        file.truncate(len(batch(0)))
        file.seek(0, os.SEEK_END)
        file.write(batch(3, size=30) + batch(6))
    assert offsets_of(followed.read()) == [6, 7, 8], "no offset twice"
    [line] = followed.said
    assert "written again below offset 6" in line


def test_a_topic_that_was_created_anew_is_read_from_its_start(tmp_path: Path) -> None:
    append_bytes(create_log_file(tmp_path / "t-0"), batch(0) + batch(3))
    append_bytes(create_log_file(tmp_path / "t-0", 6), batch(6))
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == list(range(9))
    shutil.rmtree(tmp_path / "t-0")
    append_bytes(create_log_file(tmp_path / "t-0"), batch(0, size=11))
    assert offsets_of(followed.read()) == [0, 1, 2]
    append_bytes(create_log_file(tmp_path / "t-0", 3), batch(3))
    assert offsets_of(followed.read()) == [3, 4, 5]
    [line] = followed.said
    assert "replaced by another one" in line


def test_a_topic_with_another_id_is_read_from_its_start(tmp_path: Path) -> None:
    for topic_id in ("AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"):
        path = create_log_file(tmp_path / "t-0")
        (tmp_path / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
        append_bytes(path, batch(0) + batch(3))
        if topic_id.endswith("Q"):
            followed = FollowedDirectory(tmp_path)
            assert offsets_of(followed.read()) == list(range(6))
            shutil.rmtree(tmp_path / "t-0")
        else:
            append_bytes(path, batch(6))
            assert offsets_of(followed.read()) == list(range(9))


def test_a_log_that_moves_to_another_disk_is_not_read_again(tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    (tmp_path / "disk2").mkdir()
    (tmp_path / "t-0").rename(tmp_path / "disk2" / "t-0")
    append_bytes(create_log_file(tmp_path / "disk2" / "t-0"), batch(6))
    assert offsets_of(followed.read()) == [6, 7, 8]
    assert not followed.said


def test_filters_apply_to_old_and_new_records(tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3))
    followed = FollowedDirectory(tmp_path, {"keys": [b"k1"], "offsets": (-2, None)})
    assert offsets_of(followed.read()) == [4]
    append_bytes(path, batch(6))
    assert offsets_of(followed.read()) == [7]


def test_only_new_bytes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, b"".join(batch(3 * i, size=1000) for i in range(200)))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    starts: list[int] = []
    opened = PartitionFollower._make_reader

    def note(self: PartitionFollower, segment: Segment, start: int, *more: Any) -> Any:
        starts.append(start)
        return opened(self, segment, start, *more)

    monkeypatch.setattr(PartitionFollower, "_make_reader", note)
    size = path.stat().st_size
    followed.read()
    append_bytes(path, batch(600))
    assert offsets_of(followed.read()) == [600, 601, 602]
    assert starts == [size]


LARGEST = (1 << 63) - 1


def test_the_largest_offset(tmp_path: Path) -> None:
    """A log that has it has no end offset, and is read all the same."""
    path = create_log_file(tmp_path / "t-0", LARGEST - 1)
    append_bytes(path, entry(LARGEST - 1, None, b"a"))
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == [LARGEST - 1]
    append_bytes(path, entry(LARGEST, None, b"b"))
    assert offsets_of(followed.read()) == [LARGEST]
    assert followed.read() == [] and not followed.errors
    assert offsets_of(FollowedDirectory(tmp_path).read()) == [LARGEST - 1, LARGEST]
    assert offsets_of(FollowedDirectory(tmp_path, {"offsets": (LARGEST, None)}).read()) == [LARGEST]


@pytest.mark.parametrize("wrong", [LARGEST, 1 << 40])
def test_an_impossible_offset_hides_no_later_records(tmp_path: Path, wrong: int) -> None:
    """No checksum covers it: the log goes on where it should, also in the next segment."""
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, entry(0, None, b"a") + entry(wrong, None, b"b"))
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == [0, wrong]
    append_bytes(path, entry(2, None, b"c"))
    assert offsets_of(followed.read()) == [2]
    append_bytes(create_log_file(tmp_path / "t-0", 3), entry(3, None, b"d"))
    assert offsets_of(followed.read()) == [3]
    assert not followed.said


def test_a_log_that_was_truncated_into_a_segment_before_and_grew_again(tmp_path: Path) -> None:
    """What was read of the segment before is there; the one after it is gone."""
    first = create_log_file(tmp_path / "t-0")
    append_bytes(first, batch(0) + batch(3))
    second = create_log_file(tmp_path / "t-0", 6)
    append_bytes(second, batch(6))
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == list(range(9))
    second.unlink()
    append_bytes(first, batch(6, size=11) + batch(9))
    assert offsets_of(followed.read()) == [9, 10, 11]
    [line] = followed.said
    assert "written again below offset 9" in line and "are not printed" in line


@pytest.mark.parametrize("tells", ["batch", "file", "straddles"])
def test_a_log_that_was_truncated_grew_again_and_was_compacted(tells: str, tmp_path: Path) -> None:
    """The last batch that was read may have been compacted away, but for leader epochs: those of the batches before it,
    that in the file of epochs, or the batch that has its offset.
    """
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    kept = {
        "batch": batch(0) + batch(3, records=2, epoch=1),
        "file": batch(0),
        "straddles": batch(0) + batch(3, records=9),
    }
    path.unlink()
    append_bytes(path, kept[tells])
    append_bytes(create_log_file(tmp_path / "t-0", 12), batch(12, epoch=1))
    if tells == "file":
        (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 3\n")
    expected = [*range(6, 12), 12, 13, 14] if tells == "straddles" else [12, 13, 14]
    assert offsets_of(followed.read()) == expected
    [line] = followed.said
    assert "written again below offset 6" in line


def test_a_log_whose_leader_changed_and_that_was_compacted_is_not_truncated(tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3, epoch=1))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    path.unlink()
    append_bytes(path, batch(0))
    append_bytes(create_log_file(tmp_path / "t-0", 6), batch(6, epoch=2))
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n1 3\n2 6\n")
    assert offsets_of(followed.read()) == [6, 7, 8]
    assert not followed.said


def test_a_file_of_epochs_that_is_older_than_the_log_proves_no_truncation(tmp_path: Path) -> None:
    """Brokers truncate the file after the log."""
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3))
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 3\n")
    followed = FollowedDirectory(tmp_path)
    followed.read()
    path.unlink()
    append_bytes(path, batch(0))
    append_bytes(create_log_file(tmp_path / "t-0", 6), batch(6))
    assert offsets_of(followed.read()) == [6, 7, 8]
    assert not followed.said


def test_a_truncation_between_batches_hides_no_record(tmp_path: Path) -> None:
    """No record that was read is gone, but the log ends before the offset that comes next."""
    first = create_log_file(tmp_path / "t-0")
    append_bytes(first, batch(0))
    second = create_log_file(tmp_path / "t-0", 9)
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == [0, 1, 2]
    append_bytes(first, batch(5))
    assert offsets_of(followed.read()) == [5, 6, 7], "rolled at offset 9 again"
    second.unlink()
    append_bytes(first, batch(8))
    assert offsets_of(followed.read()) == [8, 9, 10]
    assert not followed.said


def test_messages_without_leader_epochs_may_have_been_written_again(tmp_path: Path) -> None:
    """Brokers before Kafka 0.11 write no epochs: nothing tells a compacted log from a truncated one."""
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, message(0) + message(1))
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == [0, 1]
    path.unlink()
    append_bytes(path, message(0))
    append_bytes(create_log_file(tmp_path / "t-0", 2), message(2))
    assert offsets_of(followed.read()) == [2]
    [line] = followed.said
    assert "the batch has no leader epoch" in line and "nothing tells which" in line
    append_bytes(create_log_file(tmp_path / "t-0", 2), message(3))
    assert offsets_of(followed.read()) == [3]
    assert len(followed.said) == 1, "once"


def test_messages_without_leader_epochs_that_are_there_are_not_doubted(tmp_path: Path) -> None:
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, message(0) + message(1))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    path.unlink()
    append_bytes(path, message(1))
    append_bytes(create_log_file(tmp_path / "t-0", 2), message(2))
    assert offsets_of(followed.read()) == [2]
    assert not followed.said


def test_a_topic_that_was_created_anew_and_grew_further(tmp_path: Path) -> None:
    append_bytes(create_log_file(tmp_path / "t-0"), batch(0))
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == [0, 1, 2]
    shutil.rmtree(tmp_path / "t-0")
    append_bytes(create_log_file(tmp_path / "t-0"), batch(0, size=11) + batch(3))
    assert offsets_of(followed.read()) == list(range(6))
    [line] = followed.said
    assert "replaced by another one" in line and "nothing tells which" in line


def test_a_topic_that_was_created_anew_and_is_empty(tmp_path: Path) -> None:
    append_bytes(create_log_file(tmp_path / "t-0"), batch(0))
    followed = FollowedDirectory(tmp_path, {"offsets": (0, None)}, offsets_are_start=True)
    followed.read()
    shutil.rmtree(tmp_path / "t-0")
    path = create_log_file(tmp_path / "t-0")
    assert followed.read() == []
    assert len(followed.said) == 1
    append_bytes(path, batch(0, size=11))
    assert offsets_of(followed.read()) == [0, 1, 2]


def test_a_rolled_segment_that_is_active_again_is_read_on(tmp_path: Path) -> None:
    """The truncation took no record that was read."""
    first = create_log_file(tmp_path / "t-0")
    append_bytes(first, batch(0))
    second = create_log_file(tmp_path / "t-0", 3)
    followed = FollowedDirectory(tmp_path)
    assert offsets_of(followed.read()) == [0, 1, 2]
    second.unlink()
    append_bytes(first, batch(3))
    assert offsets_of(followed.read()) == [3, 4, 5]
    assert not followed.said


def test_records_that_the_cleaner_holds_when_reading_begins_are_waited_for(tmp_path: Path) -> None:
    """Unless a killed broker has left its file."""
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0))
    append_bytes(create_log_file(tmp_path / "t-0", 3), batch(3))
    swap = path.rename(f"{path}.swap")
    followed = FollowedDirectory(tmp_path)
    assert followed.read() == []
    swap.rename(path)
    assert offsets_of(followed.read()) == list(range(6))


def test_a_file_that_a_killed_cleaner_left_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_log, "_SWAP_S", 0)
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0))
    append_bytes(create_log_file(tmp_path / "t-0", 3), batch(3))
    path.rename(f"{path}.swap")
    assert offsets_of(FollowedDirectory(tmp_path).read()) == [3, 4, 5]


@pytest.mark.parametrize("tells", ["open directory", "topic id", "nothing"])
def test_a_compacted_log_is_doubted_only_if_it_may_be_another_one(
    tells: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tells != "open directory":
        monkeypatch.setattr(followed_log, "_MAX_PINNED", 0)
    path = create_log_file(tmp_path / "t-0")
    append_bytes(path, batch(0) + batch(3))
    if tells == "topic id":
        (tmp_path / "t-0" / "partition.metadata").write_text(
            "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg\n"
        )
    followed = FollowedDirectory(tmp_path)
    followed.read()
    path.unlink()
    append_bytes(path, batch(0))
    append_bytes(create_log_file(tmp_path / "t-0", 6), batch(6))
    assert offsets_of(followed.read()) == [6, 7, 8]
    if tells == "nothing":
        [line] = followed.said
        assert "nothing tells which" in line and "the partition no topic id" in line
    else:
        assert not followed.said


def test_a_moved_log_that_was_compacted_meanwhile_is_printed_again(tmp_path: Path) -> None:
    """Without a topic id it may be another one."""
    append_bytes(create_log_file(tmp_path / "t-0"), batch(0) + batch(3))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    (tmp_path / "disk2").mkdir()
    append_bytes(create_log_file(tmp_path / "disk2" / "t-0"), batch(0))
    append_bytes(create_log_file(tmp_path / "disk2" / "t-0", 6), batch(6))
    shutil.rmtree(tmp_path / "t-0")
    assert offsets_of(followed.read()) == [0, 1, 2, 6, 7, 8]
    [line] = followed.said
    assert "replaced by another one, or was moved and changed" in line
