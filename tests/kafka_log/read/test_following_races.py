"""A follower of a partition whose files a broker changes between any two of its calls of the system."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_log.logs.discovery import survey
from tests.support.followed_directories import (
    FollowedDirectory,
    append_bytes,
    create_log_file,
    interrupted,
    offsets_of,
)
from tests.support.followed_directories import (
    batch_of_epoch_0 as batch,
)

_UNREAD = re.compile(r"t-0: offsets (\d+) to (\d+) were deleted before they were read")


def segment(directory: Path, base: int) -> Path:
    return directory / f"{base:020d}.log"


def retain(directory: Path) -> None:
    """Retention: the first segment is marked for deletion."""
    first = segment(directory, 0)
    first.rename(f"{first}.deleted")


def retain_at_once(directory: Path) -> None:
    """Retention with ``file.delete.delay.ms=0``."""
    segment(directory, 0).unlink()


def roll(directory: Path) -> None:
    """A new segment follows."""
    append_bytes(create_log_file(directory, 30), batch(30))


def roll_and_retain(directory: Path) -> None:
    roll(directory)
    retain(directory)


def roll_and_retain_at_once(directory: Path) -> None:
    roll(directory)
    retain_at_once(directory)


def begin_to_compact(directory: Path) -> None:
    """A cleaner replaces the first segment by one without offsets 12 to 14, whose batches lie elsewhere. It has one file to rename left."""
    first = segment(directory, 0)
    swap = first.with_name(f"{first.name}.swap")
    swap.write_bytes(b"".join(batch(o, size=7) for o in (0, 3, 6, 9, 15, 18, 21, 24, 27)))
    first.rename(f"{first}.deleted")


def compact(directory: Path) -> None:
    begin_to_compact(directory)
    end_action(directory)


def end_action(directory: Path) -> None:
    """Rename the file that a cleaner has left."""
    for swap in directory.glob("*.swap"):
        swap.rename(swap.with_suffix(""))


def roll_and_compact(directory: Path) -> None:
    roll(directory)
    compact(directory)


ACTIONS: dict[Callable[[Path], None], bool] = {
    retain: True,
    retain_at_once: True,
    roll: False,
    roll_and_retain: False,
    roll_and_retain_at_once: False,
    begin_to_compact: True,
    compact: True,
    roll_and_compact: False,
}
"""What a broker does, and whether a second segment is there before."""


def follow_interrupted(directory: Path, action: Callable[[Path], None], at: int) -> bool:
    """Follow a partition whose files ``action`` changes before call ``at`` of a look. Return whether there were so many calls.
    Fail if an offset is printed twice, or one that is not printed is not reported either.
    """
    has_second = ACTIONS[action]
    first = create_log_file(directory)
    append_bytes(first, batch(0))
    followed = FollowedDirectory(directory.parent)
    printed = offsets_of(followed.read())
    append_bytes(first, b"".join(map(batch, range(3, 30, 3))))
    if has_second:
        roll(directory)
    with interrupted(at, lambda: action(directory)) as count:
        printed += offsets_of(followed.read())
    if count[0] <= at:
        return False
    printed += offsets_of(followed.read())
    end_action(directory)
    printed += offsets_of(followed.read())
    append_bytes(segment(directory, 30), batch(33))
    printed += offsets_of(followed.read())
    assert sorted(set(printed)) == printed, "each once, in order"
    reported = {
        offset
        for line in followed.said
        for begin, end in _UNREAD.findall(line)
        for offset in range(int(begin), int(end) + 1)
    }
    removed = {12, 13, 14} if "compact" in action.__name__ else set()
    assert reported.isdisjoint(printed)
    assert "retain" in action.__name__ or not followed.said
    assert {*printed, *reported, *removed} == set(range(36)), "each is printed or reported"
    assert not followed.ends and not followed.damaged
    return True


@pytest.mark.slow
@pytest.mark.share(8)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.filterwarnings("ignore:kafka-log")
def test_no_record_is_lost_in_silence_or_read_twice(
    action: Callable[[Path], None], tmp_path: Path
) -> None:
    failures = []
    at = 0
    while True:
        directory = tmp_path / f"{at}" / "t-0"
        directory.parent.mkdir()
        try:
            if not follow_interrupted(directory, action, at):
                break
        except AssertionError as error:
            failures.append((at, str(error).splitlines()[0]))
        shutil.rmtree(directory.parent)
        at += 1
    assert at > 10, "it calls the system"
    assert not failures


def test_records_that_were_deleted_before_any_was_printed_are_reported(tmp_path: Path) -> None:
    """No record was selected yet: ``--last 0``."""
    first = create_log_file(tmp_path / "t-0")
    append_bytes(first, batch(0))
    followed = FollowedDirectory(tmp_path, {"offsets": (3, None)})
    assert followed.read() == []
    append_bytes(first, batch(3))
    roll(tmp_path / "t-0")
    retain(tmp_path / "t-0")
    assert offsets_of(followed.read()) == [30, 31, 32]
    assert followed.said == ["t-0: offsets 3 to 29 were deleted before they were read"]


def test_an_empty_log_whose_first_records_are_deleted_unread_is_reported(tmp_path: Path) -> None:
    create_log_file(tmp_path / "t-0")
    followed = FollowedDirectory(tmp_path)
    assert followed.read() == []
    roll(tmp_path / "t-0")
    retain_at_once(tmp_path / "t-0")
    assert offsets_of(followed.read()) == [30, 31, 32]
    assert followed.said == ["t-0: offsets 0 to 29 were deleted before they were read"]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
def test_a_dangling_link_is_unreadable(tmp_path: Path) -> None:
    append_bytes(create_log_file(tmp_path / "t-0"), batch(0))
    segment(tmp_path / "t-0", 3).symlink_to(tmp_path / "elsewhere")
    append_bytes(create_log_file(tmp_path / "t-0", 30), batch(30))
    followed = FollowedDirectory(tmp_path)
    for _ in range(2):
        followed.read()
    [error] = followed.errors
    assert "dangling link" in str(error)
    assert not followed.said


def test_a_new_topic_is_noticed_if_a_file_vanishes_meanwhile(tmp_path: Path) -> None:
    """The id of the new topic is there before it is known whether the log is another one."""
    append_bytes(create_log_file(tmp_path / "t-0"), batch(0) + batch(3))
    followed = FollowedDirectory(tmp_path)
    followed.read()
    first = segment(tmp_path / "t-0", 0)
    first.unlink()
    append_bytes(first, batch(0, size=20))
    (tmp_path / "t-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg\n"
    )
    away = first.with_name("away")
    [partition] = survey([tmp_path], ()).partitions
    first.rename(away)
    assert followed.follower is not None
    assert list(followed.follower.read_new(partition)) == []
    away.rename(first)
    assert offsets_of(followed.read()) == [0, 1, 2]
    [line] = followed.said
    assert "replaced by another one" in line
