"""A question about the past says that the log cleaner may have removed what it asks for."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log import LogDirectory
from kafka_log.cli import main
from tests.shares import examples
from tests.support.made_topics import TIME, commit, log

COMMITS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 9) | st.none()), min_size=1, max_size=8
)
SAID = "may be missing, because log compaction removed records: __consumer_offsets partition 3"


def write(root: Path, commits: list[tuple[int, str, int | None]]) -> LogDirectory:
    """A log in which the commit at each offset was written that many seconds after the first."""
    batches = [commit(n, group, value, time=TIME + n * 1000) for n, group, value in commits]
    log(root, "__consumer_offsets-3", *batches)
    return LogDirectory(root)


def answer(directory: LogDirectory, at: int | None) -> tuple[list[tuple[str, int]], bool]:
    """The commits as of a time, and whether some may be missing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = directory.groups(at=at).to_pylist()
    assert all(SAID in str(one.message) for one in caught)
    return [(row["group"], row["committed_offset"]) for row in rows], bool(caught)


@examples(10)
@given(COMMITS, st.data())
def test_an_answer_without_a_warning_is_that_of_the_whole_log(
    tmp_path_factory: pytest.TempPathFactory,
    commits: list[tuple[str, int | None]],
    data: st.DataObject,
) -> None:
    """The cleaner removes commits that later ones replace, up to some offset."""
    whole = [(n, group, value) for n, (group, value) in enumerate(commits)]
    dirty = data.draw(st.integers(0, len(whole)))
    last = {group: n for n, group, _ in whole}
    cleaned = [one for one in whole if one[0] >= dirty or one[0] == last[one[1]]]
    at = TIME + 1000 * data.draw(st.integers(-1, len(whole))) + 500
    before = write(tmp_path_factory.mktemp("whole"), whole)
    after = write(tmp_path_factory.mktemp("cleaned"), cleaned)
    expected, is_incomplete = answer(before, at)
    assert not is_incomplete
    found, is_incomplete = answer(after, at)
    assert found == expected or is_incomplete
    assert not (is_incomplete and cleaned == whole)
    assert answer(after, None) == (answer(before, None)[0], False)


def test_records_that_a_batch_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = commit(0, "a", 1, last_offset_delta=4)
    log(tmp_path, "__consumer_offsets-3", first, commit(5, "a", 2, time=TIME + 9))
    assert main(["groups", str(tmp_path), "--as-of", str(TIME + 5)]) == 0
    assert f"commits up to 2023-11-14T22:13:20.005Z that were replaced or deleted later {SAID}" in (
        capsys.readouterr().err
    )
    assert main(["groups", str(tmp_path), "--as-of", str(TIME + 9)]) == 0
    assert capsys.readouterr().err == ""
