"""A follower in random histories of a log: it prints each record once, or says which it does not, and says that of no healthy log."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.shares import draw_seeds
from tests.support.broker_histories import BrokerHistory, Record
from tests.support.followed_directories import FollowedDirectory, interrupted

_SHORTER = re.compile(r"was truncated from offset \d+ to (\d+) or below: ")
_REWRITTEN = re.compile(r"was truncated and written again below offset (\d+): ")
_REPLACED = re.compile(r"was replaced by another one.* is printed from its first record on")
_DELETED = re.compile(r"offsets \d+ to \d+ were deleted before they were read")
STEPS = 20
HEALTHY = ("append", "append", "append", "roll", "roll", "elect", "compact", "retain")


class Judge:
    """A follower of a history, and what it printed and said.

    Args:
        root: The log directory.
        history: What happens there.
        last_0: Whether only records are printed that are appended after the first look.
    """

    def __init__(self, root: Path, history: BrokerHistory, *, last_0: bool = False) -> None:
        self.history = history
        filters = {"offsets": (history.end, None)} if last_0 else {}
        self.followed = FollowedDirectory(root, filters, offsets_are_start=last_0)
        self.excused: set[Record] = history.records() if last_0 else set()
        self.printed: set[Record] = set()
        self.seen = self.truncations = self.removals = 0

    def look(self) -> None:
        """Look once, while a broker may be busy."""
        if not any(self.history.directory.glob("*.log")):
            return
        found = self.followed.read()
        assert self.history.written.issuperset(found), "records that were never written"
        assert len(set(found)) == len(found), "twice in a look"
        lines = self.followed.said[self.seen :]
        if not any(map(_REPLACED.search, lines)):
            assert self.printed.isdisjoint(found), ("printed again", lines)
        self.printed.update(found)

    def judge(self) -> None:
        """Look at a log that is not changing, and compare what was printed and said since the last time with what happened."""
        for _ in range(2):
            self.look()
        there = self.history.records()
        lines = self.followed.said[self.seen :]
        self.seen += len(lines)
        for line in lines:
            if _REPLACED.search(line) or _DELETED.search(line):
                continue
            found = _SHORTER.search(line) or _REWRITTEN.search(line)
            assert found, line
            self.excused |= {record for record in there if record[0] < int(found[1])}
        if self.removals == self.history.removals:
            assert not lines, "said of a healthy log"
        if self.truncations == self.history.truncations:
            assert all(map(_DELETED.search, lines)), "said of a log that was not truncated"
        self.truncations, self.removals = self.history.truncations, self.history.removals
        assert there - self.printed <= self.excused, ("lost in silence", lines)
        assert not self.followed.errors


def follow(seed: int, root: Path, rare: tuple[str, ...], *, interrupts: bool) -> None:
    """Follow the history ``seed``, in which ``rare`` steps happen beside those of a healthy log: with a look between
    some changes of files; with ``interrupts`` also a step within some looks.
    """
    r = random.Random(seed)
    root.mkdir()
    history = BrokerHistory(
        root,
        r,
        has_topic_id=r.random() < 0.3,
        has_epochs=r.random() < 0.8,
        deletes_at_once=r.random() < 0.3,
    )
    for _ in range(r.randrange(4)):
        run(history, [r.choice(HEALTHY)], lambda: None)
    judge = Judge(root, history, last_0=r.random() < 0.2)
    judge.judge()
    busy = r.choice([0.0, 0.1, 0.5])
    quiet = r.choice([0.2, 0.5, 0.8])
    for _ in range(STEPS):
        steps = [r.choice([*HEALTHY, *rare])]
        if r.random() < 0.3:
            steps += ["append"] * r.randrange(6) + ["roll", "append", "compact"] * r.randrange(3)
        if interrupts and r.random() < 0.3:
            look_interrupted(judge, steps, r.randrange(r.choice([10, 60])))
        else:
            run(history, steps, lambda: judge.look() if r.random() < busy else None)
        if r.random() < quiet:
            judge.judge()
    judge.judge()


def look_interrupted(judge: Judge, steps: list[str], at: int) -> None:
    """Look once, and do the steps before the call ``at`` of the system, or after the look."""
    done = [False]

    def act() -> None:
        done[0] = True
        run(judge.history, steps, lambda: None)

    with interrupted(at, act):
        judge.look()
    if not done[0]:
        act()


def run(history: BrokerHistory, steps: list[str], between: Callable[[], None]) -> None:
    """Do steps, and call ``between`` after each change of a file."""
    for step in steps:
        for _ in history.steps[step]():
            between()


RARE = (("truncate",), ("recreate",), ("truncate", "recreate"), ())


def try_histories(seeds: Iterable[int], root: Path) -> None:
    """Follow a history for each seed. Fail with all that are wrong."""
    wrong = []
    seeds = list(seeds)
    for seed in seeds:
        try:
            follow(seed, root / f"{seed}", RARE[seed % len(RARE)], interrupts=seed % 3 == 0)
        except AssertionError as error:
            wrong.append((seed, str(error).splitlines()[0]))
    assert not wrong, f"{len(wrong)} of {len(seeds)}"


def test_a_new_file_with_the_number_of_a_deleted_one(tmp_path: Path) -> None:
    """In one history a compacted segment is longer than what was read of the old one. In the other a segment without records comes
    again after a report of deleted offsets.
    """
    try_histories([12156677852, 12156677723], tmp_path)


def test_no_record_is_lost_or_repeated_in_silence(tmp_path: Path) -> None:
    try_histories(draw_seeds(2, first=9), tmp_path)


@pytest.mark.slow
def test_no_record_is_lost_or_repeated_in_silence_in_many_histories(tmp_path: Path) -> None:
    try_histories(draw_seeds(16, first=25), tmp_path)


@pytest.mark.soak
def test_no_record_is_lost_or_repeated_in_silence_at_length(tmp_path: Path) -> None:
    try_histories(draw_seeds(600, first=41), tmp_path)
