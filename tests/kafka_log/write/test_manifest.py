"""What jobs say of what they have made: lines that are added, whatever cut them off."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.write.manifest import Manifest

NAMES = st.text(max_size=5)
SAID = st.fixed_dictionaries({"made_of": st.integers(), "rows": st.text(max_size=5)})


@given(things=st.lists(st.tuples(NAMES, SAID), max_size=8), cut=st.integers(0, 400))
def test_what_was_said_last_is_known_and_what_is_cut_off_is_not(
    tmp_path_factory: pytest.TempPathFactory, things: list[tuple[str, dict[str, object]]], cut: int
) -> None:
    path = tmp_path_factory.mktemp("m") / "made.jsonl"
    manifest = Manifest(path, ("made_of", "rows"))
    other = Manifest(path, ("made_of",))
    ends = [0]
    for name, said in things:
        manifest.add(name, said)
        ends.append(path.stat().st_size)
        assert manifest.get(name) == said
        assert other.get(name) == said
    assert {name: manifest.get(name) for name in manifest} == dict(things)
    assert not things or not path.read_bytes().count(b"\n\n")
    # A disk that is full, or a process that is killed, in the middle of a line: all before it is there, and what comes next is too.
    if not things:
        return
    cut = min(cut, ends[-1])
    with path.open("r+b") as file:
        file.truncate(cut)
    whole = sum(end <= cut for end in ends[1:])
    again = Manifest(path, ("made_of", "rows"))
    assert {name: again.get(name) for name in again} == dict(things[:whole])
    again.add("next", {"made_of": 1, "rows": "r"})
    last = Manifest(path, ("made_of", "rows"))
    whole = sum(end - 1 <= cut for end in ends[1:])  # one that lacks its end only is whole by then
    expected = {**dict(things[:whole]), "next": {"made_of": 1, "rows": "r"}}
    assert {name: last.get(name) for name in last} == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"null\n",
        b"{}\n",
        b'{"name": 3, "made_of": 1}\n',
        b"\xff\n",
        b"[" * 9_000 + b"\n",
    ],
)
def test_what_no_job_has_written(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    path.write_bytes(data)
    manifest = Manifest(path, ("made_of",))
    assert [*manifest] == []
    manifest.add("a", {"made_of": 1})
    assert [*Manifest(path, ("made_of",))] == ["a"]


def test_each_thing_costs_the_same(tmp_path: Path) -> None:
    """The file grows by a line for each, and what was there is not written again."""
    path = tmp_path / "made.jsonl"
    manifest = Manifest(path, ("made_of",))
    manifest.add("00", {"made_of": 1})
    first, inode = path.stat().st_size, path.stat().st_ino
    for i in range(1, 50):
        manifest.add(f"{i:02}", {"made_of": 1})
    assert path.stat().st_size == 50 * first
    assert path.stat().st_ino == inode
