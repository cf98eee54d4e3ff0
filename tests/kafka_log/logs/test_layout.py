"""Log directories by what they hold: names like topic-N, directories above log directories, and segments that nothing reads."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_log import DirectoryError, LogDirectory, discover, make_path, read_table, scan_batches
from kafka_log.cli import main
from kafka_log.logs import discovery
from kafka_log.logs.discovery import survey
from tests.paths import SAMPLES
from tests.support.batches import batch
from tests.support.permissions import bound_by_modes

FIRST = f"{0:020d}.log"
SAMPLE = SAMPLES / "kafka-4.x"
READING = [
    *("ls", "stat", "check", "dump", "txn", "producers", "keys", "groups", "metadata"),
    *("dump --batches", "dump --format vectors", "keys --key k0", "stat --largest 3"),
]
WRITING = ["export", "salvage", "cut --offsets 0:2", "reindex", "convert --codec zstd"]


def make(root: Path, *names: str) -> None:
    """Make files: segments of three records, or empty ones; what ends in a slash is a directory."""
    for name in names:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(batch(0) if name.endswith(".log") else b"")


LAYOUTS = {
    "Strimzi": [
        ("data-0/kafka-log0", ["orders-0", "orders-1"]),
        ("data-1/kafka-log0", ["orders-2"]),
    ],
    "brokers of the quick start": [("kafka-logs-1", ["orders-0"]), ("kafka-logs-2", ["orders-1"])],
    "StatefulSet": [("data-kafka-0/data", ["orders-0"]), ("data-kafka-1/data", ["orders-1"])],
    "disks": [("disk0", ["orders-0"]), ("disk1", ["orders-1"])],
    "the deepest that is found": [("a/b/c/d", ["orders-0"]), ("a-1/b-1/c-1/d-1", ["orders-1"])],
}


def made(root: Path, name: str, *, marked: bool) -> list[Path]:
    """Make a layout, with or without meta.properties. Return its log directories."""
    for directory, partitions in LAYOUTS[name]:
        make(root, f"{directory}/lost+found/", *(f"{directory}/{p}/{FIRST}" for p in partitions))
        if marked:
            make(root, f"{directory}/meta.properties")
    return [root / directory for directory, _ in LAYOUTS[name]]


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("marked", [True, False], ids=["marked", "unmarked"])
def test_a_directory_above_log_directories_means_all_of_them(
    tmp_path: Path, name: str, marked: bool
) -> None:
    """Each level of it says the same, and each path in between has its own part."""
    directories = made(tmp_path, name, marked=marked)
    expected = discover(directories)
    assert sum(len(p.segments) for p in expected) == len(list(tmp_path.rglob("*.log")))
    found = survey(tmp_path)
    assert (found.partitions, found.skipped_paths) == (expected, [])
    assert sorted(found.directories) == sorted(directories)
    for directory in directories:
        between = [p for p in directory.parents if p.is_relative_to(tmp_path) and p != tmp_path]
        own = discover(directory)
        assert own and all(discover(path) == own for path in between)


def test_stores_have_the_same_layout(tmp_path: Path) -> None:
    made(tmp_path, "Strimzi", marked=True)
    fsspec.filesystem("memory").put(f"{tmp_path}/", "/layout", recursive=True)
    there = make_path("memory://layout", {"use_listings_cache": False})
    found = survey(there)
    rows = read_table(there, ["topic", "partition", "offset"])
    assert rows.equals(read_table(tmp_path, ["topic", "partition", "offset"]))
    assert [str(path) for path in found.directories] == [
        "memory://layout/data-0/kafka-log0",
        "memory://layout/data-1/kafka-log0",
    ]


def test_a_new_log_directory_beside_others_is_none_of_a_topic(tmp_path: Path) -> None:
    """A broker of which no partition is there yet has meta.properties only."""
    make(tmp_path, f"kafka-logs-1/orders-0/{FIRST}", "kafka-logs-2/meta.properties")
    assert [(p.topic, p.partition) for p in discover(tmp_path)] == [("orders", 0)]
    both = [tmp_path / "kafka-logs-2", tmp_path / "kafka-logs-1"]
    assert discover(both) == discover(tmp_path)
    with pytest.raises(DirectoryError, match="no segments"):
        discover(tmp_path / "kafka-logs-2")


def test_an_empty_partition_stays_one(tmp_path: Path) -> None:
    make(tmp_path, "orders-0/partition.metadata", "orders-1/", f"orders-2/{FIRST}")
    for path in (tmp_path, [tmp_path / f"orders-{n}" for n in range(3)]):
        found = [(p.topic, p.partition, len(p.segments)) for p in discover(path)]
        assert found == [("orders", 0, 0), ("orders", 1, 0), ("orders", 2, 1)]
    assert len(discover(tmp_path / "orders-1")) == 1


def test_a_log_directory_inside_of_another_is_named(tmp_path: Path) -> None:
    """No broker reads it there."""
    make(tmp_path, f"orders-0/{FIRST}", f"kafka-logs-1/orders-1/{FIRST}", f"x/orders-2/{FIRST}")
    found = survey(tmp_path)
    assert [(p.topic, p.partition) for p in found.partitions] == [("orders", 0)]
    assert [(one.path.name, one.reason) for one in found.skipped_paths] == [
        ("kafka-logs-1", "it is a log directory inside another one"),
        ("x", "it has partitions, but its name is not topic-partition"),
    ]
    whole = survey([tmp_path, tmp_path / "kafka-logs-1", tmp_path / "x"])
    assert (len(whole.partitions), whole.skipped_paths) == (3, [])


@pytest.mark.parametrize("path", ["", "orders-0"], ids=["log directory", "partition"])
def test_a_copy_inside_of_a_partition_is_named(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second ``cp -r orders-0 backup/orders-0`` makes one. No broker reads it."""
    copy = tmp_path / "orders-0" / "orders-0"
    make(tmp_path, f"orders-0/{FIRST}", f"orders-0/orders-0/{FIRST}", f"orders-0/.old/{FIRST}")
    make(tmp_path, "orders-0/notes/readme")
    reason = "it has segments, but lies inside a partition directory"
    found = survey(tmp_path / path)
    assert [one.directory for one in found.partitions] == [copy.parent]
    assert [(one.path, one.reason) for one in found.skipped_paths] == [(copy, reason)]
    assert main(["dump", str(tmp_path / path)]) == 0
    assert f"{copy} ({reason})" in capsys.readouterr().err
    assert survey([copy, tmp_path / path]).skipped_paths == []


def test_files_of_a_tier_by_other_names_are_named(tmp_path: Path) -> None:
    """Of a tier that is a path of its own, too."""
    ids = "A" * 22
    name = f"kafka-tiered-storage/orders-0-{ids}/{0:020d}-{ids[1:]}B.log"
    make(tmp_path, f"data/orders-0/{FIRST}", name)
    tier = tmp_path / "kafka-tiered-storage"
    for paths in (tmp_path, [tmp_path / "data", tier], tier):
        assert [one.path for one in survey(paths, "remote").skipped_paths] == [tmp_path / name]


UNREAD = {
    "a copy by date": ([f"monday/{FIRST}"], ["monday"]),
    "a copy of one partition": ([f"orders-0/monday/{FIRST}"], ["orders-0/monday"]),
    "a mark at the wrong level": (
        ["meta.properties", f"kafka-log0/orders-0/{FIRST}", f"x/y/orders-1/{FIRST}"],
        ["kafka-log0", "x/y"],
    ),
    "a log directory below the limit": ([f"a/b/c/d/e/orders-0/{FIRST}"], ["a/b/c/d/e"]),
    "a volume at the limit": (
        [f"a/b/c/data-0/kafka-log0/{name}" for name in (f"orders-0/{FIRST}", "meta.properties")],
        ["a/b/c/data-0/kafka-log0"],
    ),
    "a volume below the limit": (
        [f"a/b/c/d/data-0/kafka-log0/orders-0/{FIRST}", f"a/b/c/d/data-0/e/f/{FIRST}"],
        ["a/b/c/d/data-0/kafka-log0", "a/b/c/d/data-0/e/f"],
    ),
    "a mark at the limit": (
        ["a/b/c/d/meta.properties", f"a/b/c/d/e/f/orders-0/{FIRST}"],
        ["a/b/c/d/e/f"],
    ),
}


@pytest.mark.parametrize("case", UNREAD)
def test_nothing_read_and_segments_below_is_an_error(tmp_path: Path, case: str) -> None:
    names, paths = UNREAD[case]
    make(tmp_path, *names)
    top = tmp_path / "orders-0" if case == "a copy of one partition" else tmp_path
    with pytest.raises(DirectoryError) as caught:
        survey(top)
    assert caught.value.path == top
    for name in paths:
        assert str(tmp_path / name) in caught.value.reason
    # What it names can be passed.
    assert sum(p.size for p in discover([tmp_path / name for name in paths])) > 0


@pytest.mark.share(4)
@pytest.mark.parametrize("verb", [*READING, *WRITING])
def test_every_verb_refuses_it(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "logs", f"orders-0/monday/{FIRST}")
    command, *more = verb.split()
    if verb in WRITING:
        more += ["--out", str(tmp_path / "out")]
    assert main([command, str(tmp_path / "logs" / "orders-0"), *more]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"segments lie in {tmp_path}/logs/orders-0/monday (" in shown.err
    assert "pass these paths" in shown.err


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """The sample with its partitions on two disks, as Strimzi lays them out."""
    for number, child in enumerate(sorted(SAMPLE.iterdir())):
        if child.is_dir():
            disk = tmp_path / "kafka" / f"data-{number % 2}" / "kafka-log0"
            shutil.copytree(child, disk / child.name)
    return tmp_path / "kafka"


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("verb", [*READING, *WRITING])
def test_every_verb_reads_all_of_it(
    broker: Path, tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same as of the two log directories."""
    command, *more = verb.split()
    shown = []
    for paths in ([broker], [broker / f"data-{n}" / "kafka-log0" for n in (0, 1)]):
        if verb in WRITING:
            more = [*verb.split()[1:], "--out", str(tmp_path / f"out-{len(paths)}")]
        code = main([command, *map(str, paths), *more])
        said = capsys.readouterr()
        shown.append((code, said.out.replace(f"out-{len(paths)}", "out"), said.err))
    assert shown[0][:2] == shown[1][:2]
    assert "data-0  " not in shown[0][1] and shown[0][0] != 2


def test_check_looks_at_the_files_of_each_log_directory(tmp_path: Path) -> None:
    for number in (0, 1):
        directory = tmp_path / f"data-{number}" / "kafka-log0"
        make(directory, f"orders-{number}/{FIRST}")
        (directory / "meta.properties").write_bytes(b"version=x\n")
    rows = LogDirectory(tmp_path).check().to_pylist()
    assert [r["file"] for r in rows if r["code"] == "meta_properties"] == [
        str(tmp_path / f"data-{number}" / "kafka-log0" / "meta.properties") for number in (0, 1)
    ]


@pytest.mark.parametrize("verb", ["stat", "dump", "check"])
def test_a_volume_far_above_its_log_directory_is_no_empty_partition(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, f"data-0/a/b/c/d/e/orders-0/{FIRST}", "data-0/a/b/c/d/e/meta.properties")
    assert main([verb, str(tmp_path / "data-0")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"segments lie in {tmp_path}/data-0/a/b/c/d/e (" in shown.err


@pytest.mark.parametrize("top", ["data-0", "data"])
def test_what_is_not_searched_is_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, top: str
) -> None:
    make(tmp_path / top, "a/b/c/d/e/f/g/readme")
    with pytest.raises(DirectoryError, match=r"not searched more than 4 levels below: .*/d/e$"):
        discover(tmp_path / top)
    make(tmp_path / top, f"a/b/c/d/e/f/g/h/orders-0/{FIRST}")
    with pytest.raises(DirectoryError, match=r"segments lie in \S+/g/h "):
        discover(tmp_path / top)
    monkeypatch.setattr(discovery, "MAX_DIRECTORIES", 4)
    with pytest.raises(DirectoryError, match="not searched more than 4 levels below"):
        discover(tmp_path / top)


def test_an_empty_log_directory_above_other_files_stays_one(tmp_path: Path) -> None:
    make(tmp_path, "a/b/c/d/meta.properties", "a/b/c/d/orders-0/e/readme", "a/b/c/d/e/readme")
    assert [p.directory for p in discover(tmp_path)] == [tmp_path / "a/b/c/d/orders-0"]


def test_the_search_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, f"a/b/c/d/e/orders-0/{FIRST}")
    with pytest.raises(DirectoryError, match=r"e: it lies more than 4 levels below"):
        discover(tmp_path)
    assert len(discover(tmp_path / "a")) == 1
    monkeypatch.setattr(discovery, "MAX_DIRECTORIES", 2)
    with pytest.raises(DirectoryError, match="more than 2 directories lie below it: pass the log"):
        discover(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_link_to_a_directory_above_ends(tmp_path: Path) -> None:
    make(tmp_path, f"logs/orders-0/{FIRST}")
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "data-0").symlink_to(tmp_path / "logs")
    assert [(p.topic, p.partition, len(p.segments)) for p in discover(tmp_path)] == [
        ("orders", 0, 1)
    ]


def test_the_api_reads_all_of_it(tmp_path: Path) -> None:
    made(tmp_path, "Strimzi", marked=True)
    assert read_table(tmp_path, ["offset"]).num_rows == 9
    assert scan_batches(tmp_path, ["record_count"]).read_all().num_rows == 3
    assert sum(LogDirectory(tmp_path).keys()["records"].to_pylist()) == 9


NAMES = ["data-0", "orders-0", "orders-1", "kafka", "data"]


@st.composite
def trees(draw: st.DrawFn, level: int = 0) -> list[str]:
    """Files of a tree of directories, some named like partitions: segments, and marks of log directories."""
    files = [name for name in (FIRST, "meta.properties") if not draw(st.integers(0, 3))]
    if level < discovery.MAX_LEVELS + 2:
        for name in draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True)):
            files += [f"{name}/{below}" for below in draw(trees(level + 1))]
    return files


@pytest.mark.slow
@given(trees())
@settings(max_examples=30, deadline=None)
def test_no_segment_is_left_out_in_silence(names: list[str]) -> None:
    """Each is read, or lies in a directory that is named. Not looked into are partitions, and in a log directory what lies deeper than the
    partitions in a directory that is none."""
    with TemporaryDirectory() as made_here:
        root = Path(made_here, "top")
        root.mkdir()
        make(root, *names)
        every = set(root.rglob("*.log"))
        try:
            found = survey(root)
        except DirectoryError as error:
            is_named = "segments lie in" in error.reason or "was not searched" in error.reason
            assert not every or is_named, names
            return
        read = {s.path for p in found.partitions for s in p.segments}
        assert read or not every, names
        partitions = {path.parent for path in read} - {root}
        logs = {path.parent for path in partitions} | {root} & {path.parent for path in read}
        named = {one.path for one in found.skipped_paths}
        for path in every - read:
            below = [path.relative_to(log).parts for log in logs & set(path.parents)]
            is_deep = any(len(p) > 3 or (len(p) == 3 and "-" not in p[1]) for p in below)
            assert is_deep or (named | partitions) & set(path.parents), (path, names)


def test_a_copy_that_is_named_by_its_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`2026-11-22` has the form of a partition's name, but below `orders-0` it is a day."""
    copy = tmp_path / "orders-0" / "2026-11-22"
    make(copy, FIRST)
    for path in (tmp_path, tmp_path / "orders-0"):
        with pytest.raises(DirectoryError, match=f"segments lie in {copy}.*its name is a date"):
            discover(path)
    make(tmp_path, f"orders-1/{FIRST}")
    assert [(p.key, len(p.segments)) for p in discover(tmp_path)] == [
        (("orders", 0), 0),
        (("orders", 1), 1),
    ]
    assert main(["stat", str(tmp_path)]) == 0
    assert f"{copy} (its name is a date" in capsys.readouterr().err
    assert [p.directory for p in discover(copy)] == [copy]


@pytest.mark.parametrize("sign", ["-", ".", "_"])
def test_a_copy_beside_its_partition(
    tmp_path: Path, sign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`orders-0-2026-11-22` has the form of a partition's name, but beside `orders-0` it ends with a day."""
    copy = tmp_path / f"orders-0{sign}2026-11-22"
    make(tmp_path, f"orders-0/{FIRST}", f"{copy.name}/{FIRST}", f"events-2026-11-22/{FIRST}")
    assert [p.key for p in discover(tmp_path)] == [("events-2026-11", 22), ("orders", 0)]
    assert main(["stat", str(tmp_path)]) == 0
    assert f"{copy} (its name is that of a partition beside it" in capsys.readouterr().err
    assert [p.directory for p in discover(copy)] == [copy]
    copy.chmod(0)
    with bound_by_modes():
        there = survey([tmp_path], unreadable_raises=False)
    copy.chmod(0o700)
    assert [one.path for one in there.skipped_paths] == [copy]
    make(tmp_path, "meta.properties")  # its broker reads it as a partition
    assert len(discover(tmp_path)) == 3


@pytest.mark.parametrize("above", ["kafka-logs", "kafka-logs-1"])
def test_a_topic_may_have_the_name_of_a_month(tmp_path: Path, above: str) -> None:
    make(tmp_path, f"{above}/2026-11-22/{FIRST}", f"{above}/meta.properties")
    assert [p.key for p in discover(tmp_path)] == [("2026-11", 22)]
