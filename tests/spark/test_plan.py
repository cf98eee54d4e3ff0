"""From options to splits of segments. No Java is needed."""

from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import OFFSET_INDEX_ENTRY
from kafka_log import DirectoryError, Policy, discover
from kafka_log.disk.transactions import Transaction, transactions
from kafka_log.segment.row_selection import Aborted, RowSelection
from kafka_log.tables.splits import Scan, Split, read_split
from pyspark_kafka_log.cuts import boundaries, split
from pyspark_kafka_log.logs import expand
from pyspark_kafka_log.options import OptionError, parse
from pyspark_kafka_log.plan import plan

from .logs import batch, build, numbered, vector, write


def slices(**options: Any) -> list[Split]:
    return [part for task in plan(parse(options)) for part in task]


def names(**options: Any) -> list[str]:
    return [part.segment.path.parent.name for part in slices(**options)]


def offsets(parts: list[Split]) -> list[int]:
    scan = Scan(columns=("offset",))
    return [o for part in parts for b in read_split(part, scan) for o in b.column(0).to_pylist()]


@pytest.fixture
def broker(directory: Path) -> Path:
    """Two topics; one partition has three segments with ten records each."""
    for base in (0, 10, 20):
        write(directory, "a", 0, base, build(batch(base, [b"v"] * 4), batch(base + 4, [b"v"] * 6)))
    write(directory, "a", 1, 0, numbered(2, 1))
    write(directory, "b.c", 0, 0, numbered(2, 1))
    return directory


# ---------------------------------------------------------------- paths


def test_paths_of_each_kind(broker: Path) -> None:
    everything = ["a-0"] * 3 + ["a-1", "b.c-0"]
    assert names(path=str(broker)) == everything
    assert names(path=str(broker / "a-0")) == ["a-0"] * 3
    assert names(path=str(broker / "a-0" / f"{10:020}.log")) == ["a-0"]
    assert names(path=broker.as_uri()) == everything
    assert names(path=str(broker / "a-*")) == everything[:-1]
    assert names(paths=f'["{(broker / "b.c-0").as_posix()}", "{(broker / "a-1").as_posix()}"]') == [
        "a-1",
        "b.c-0",
    ]


def test_a_uri_with_blanks(tmp_path: Path) -> None:
    directory = tmp_path / "kafka logs"
    directory.mkdir()
    assert expand(directory.as_uri(), {}) == [directory]


def test_a_name_with_a_star_is_a_name(tmp_path: Path) -> None:
    rejected = tmp_path / "lo[g]s"
    rejected.mkdir()
    assert expand(str(rejected), {}) == [rejected]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("hdfs:/logs", "a URL begins with hdfs://"),
        ("/nowhere/at/all-*", "nothing matches"),
    ],
)
def test_paths_that_cannot_be(path: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        slices(path=path)


def test_no_path() -> None:
    with pytest.raises(OptionError, match="say what to read"):
        slices()


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DirectoryError, match="no such file or directory"):
        slices(path=str(tmp_path / "nowhere"))
    (tmp_path / "notes.txt").write_text("not a log")
    with pytest.raises(DirectoryError, match="no segments"):
        slices(path=str(tmp_path))


def test_empty_directories(tmp_path: Path) -> None:
    """An empty directory, an empty partition, a broker without topics."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "t-0").mkdir()
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "meta.properties").write_text("version=1\n")
    for name in ("empty", "t-0", "broker"):
        assert slices(path=str(tmp_path / name)) == []


def test_files_that_are_no_segments_by_name_are_logs_of_their_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.log").write_bytes(numbered(2, 1))
    found = slices(paths=f'["{tmp_path.as_posix()}/one.log", "{tmp_path.as_posix()}/two.log"]')
    assert [(part.segment.topic, part.segment.partition) for part in found] == [
        ("one", 0),
        ("two", 0),
    ]


# ---------------------------------------------------------------- topics


def test_topics(broker: Path) -> None:
    path = str(broker)
    assert names(path=path, subscribe="b.c") == ["b.c-0"]
    assert names(path=path, subscribePattern="[ab].c") == ["b.c-0"]
    assert names(path=path, subscribePattern="b") == []
    assert names(path=path, assign='{"a":[1],"b.c":[0]}') == ["a-1", "b.c-0"]


def test_topics_that_are_not_there(broker: Path) -> None:
    path = str(broker)
    with pytest.raises(OptionError, match=r"subscribe: no topic x in the path; there are: a, b\.c"):
        slices(path=path, subscribe="a,x")
    with pytest.raises(OptionError, match="assign: no partition a-7 in the path"):
        slices(path=path, assign='{"a":[0,7]}')


def test_replicas(broker: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(other, "a", 1, 0, numbered(2, 1))
    paths = f'["{broker.as_posix()}", "{other.as_posix()}"]'
    with pytest.raises(OptionError, match=r"replicas: partition 1 of topic a lies in .* and in .*"):
        slices(paths=paths)
    assert len(names(paths=paths, replicas="keep")) == 6
    assert len(names(paths=paths, subscribe="b.c")) == 1
    twice = f'["{broker.as_posix()}", "{broker.as_posix()}"]'
    assert len(names(paths=twice)) == 5


# ---------------------------------------------------------------- offsets


@pytest.mark.parametrize(
    ("first", "end", "segments", "wanted"),
    [
        (-2, -1, 3, range(30)),
        (0, 30, 3, range(30)),
        (9, -1, 3, range(9, 30)),
        (10, -1, 2, range(10, 30)),
        (-2, 20, 2, range(20)),
        (-2, 21, 3, range(21)),
        (12, 13, 1, range(12, 13)),
        (29, 99, 1, range(29, 30)),
        (99, -1, 1, range(0)),
        (5, 5, 1, range(0)),
    ],
)
def test_offsets(broker: Path, first: int, end: int, segments: int, wanted: range) -> None:
    found = slices(
        path=str(broker / "a-0"),
        startingOffsets=f'{{"a":{{"0":{first}}}}}',
        endingOffsets=f'{{"a":{{"0":{end}}}}}',
    )
    assert offsets(found) == list(wanted)
    assert len(found) == segments


@pytest.mark.parametrize(
    "value", ['{"a":{"0":1}}', '{"a":{"0":1,"1":1},"b.c":{"0":1},"d":{"0":1}}', "{}"]
)
@pytest.mark.parametrize("name", ["startingOffsets", "endingOffsets"])
def test_offsets_for_all_partitions_and_no_others(broker: Path, name: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"{name}: it must have an offset for each partition"):
        slices(path=str(broker), **{name: value})


@pytest.mark.parametrize("options", [{}, {"isolationLevel": "read_committed"}])
def test_earliest_is_the_log_start_offset(broker: Path, options: dict[str, str]) -> None:
    (broker / "log-start-offset-checkpoint").write_text("0\n1\na 0 13\n")
    path = str(broker / "a-0")
    assert offsets(slices(path=path, **options)) == list(range(13, 30))
    assert len(slices(path=path, **options)) == 2
    everything = slices(path=path, includeDeletedRecords="true", **options)
    assert offsets(everything) == list(range(30))
    for first in (-2, 0, 12, 13):
        start = f'{{"a":{{"0":{first}}}}}'
        assert offsets(slices(path=path, startingOffsets=start, **options))[0] == 13


# ---------------------------------------------------------------- splitting


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    split_bytes=st.integers(1, 2000),
    first=st.none() | st.integers(0, 100),
    end=st.none() | st.integers(0, 100),
    tail=st.binary(max_size=40),
)
def test_slices_together_are_the_segment(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    split_bytes: int,
    first: int | None,
    end: int | None,
    tail: bytes,
) -> None:
    path = tmp_path_factory.mktemp("split") / f"{0:020}.log"
    batches, base = [], 0
    for i, size in enumerate(sizes):
        if i % 3 == 2:
            batches += [
                {
                    "magic": 1,
                    "offset": base,
                    "attributes": {},
                    "timestamp": 1,
                    "key": None,
                    "value": b"v" * size,
                }
            ]
            base += 1
        else:
            batches.append(batch(base, [b"v"] * size))
            base += size
    data = build(*batches)
    path.write_bytes(data + tail)
    (segment,) = discover(path)[0].segments
    whole = split(segment, split_bytes)
    assert [part.start for part in whole[1:]] == [part.stop for part in whole[:-1]]
    assert (whole[0].start, whole[-1].stop) == (0, segment.size)
    assert all(
        part.stop - part.start >= split_bytes for part in whole[:-1] if part.stop is not None
    )
    body = [Split(p.segment, p.start, min(p.stop or len(data), len(data))) for p in whole]
    assert offsets(body) == list(range(base))
    some = split(segment, split_bytes, first, end)
    rows = RowSelection((first, end), control_records=False)
    body = [Split(p.segment, p.start, min(p.stop or len(data), len(data)), rows) for p in some]
    wanted = range(max(first or 0, 0), base if end is None else min(end, base))
    assert offsets(body) == list(wanted)


def test_damage_ends_the_search_for_boundaries(directory: Path) -> None:
    good = numbered(2, 4)
    path = write(directory, "t", 0, 0, good + b"\xff" * 500)
    (segment,) = discover(path)[0].segments
    cuts = boundaries(segment, 10)
    assert [cut.position for cut in cuts] == [len(good) * i // 4 for i in (1, 2, 3)]
    assert [cut.offset for cut in cuts] == [2, 4, 6]


@given(
    count=st.integers(1, 30),
    split_bytes=st.integers(1, 1500),
    lies=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3000)), max_size=3),
    kept=st.lists(st.booleans(), min_size=30, max_size=30),
)
def test_an_index_gives_places_where_batches_begin(
    tmp_path_factory: pytest.TempPathFactory,
    count: int,
    split_bytes: int,
    lies: list[tuple[int, int]],
    kept: list[bool],
) -> None:
    """Whatever stands in it."""
    parts = [numbered_from(i) for i in range(count)]
    starts = [0, *accumulate(map(len, parts))][:-1]
    path = write(tmp_path_factory.mktemp("log"), "t", 0, 0, b"".join(parts))
    index = sorted({(i, at) for i, at in enumerate(starts) if kept[i]} | set(lies))
    data = b"".join(
        OFFSET_INDEX_ENTRY.build({"relative_offset": i, "position": at}) for i, at in index
    )
    path.with_suffix(".index").write_bytes(data)
    (segment,) = discover(path.parent)[0].segments
    places = [0, *(cut.position for cut in boundaries(segment, split_bytes, by_index=True))]
    assert set(places) <= set(starts)
    assert all(b - a >= split_bytes for a, b in pairwise(places))
    assert [c.offset for c in boundaries(segment, split_bytes, by_index=True)] == [
        starts.index(at) for at in places[1:]
    ]
    # No stretch is left whole in which a cut is due, but for what the index passes over.
    if not index:
        assert places[1:] == [c.position for c in boundaries(segment, split_bytes)]


def numbered_from(offset: int) -> bytes:
    """A batch of one record."""
    return build(batch(offset, [b"v"], pad=offset))


def test_large_segments_are_planned_by_their_indexes(directory: Path) -> None:
    """Files with holes: what is read of them to plan lies where their indexes say, so that a terabyte costs no more than this."""
    size, step = 1 << 30, 128 << 20
    base = 0
    for _ in range(20):
        path = write(directory, "t", 0, base, b"")
        index = []
        with path.open("r+b") as file:
            file.truncate(size)
            for n, at in enumerate(range(0, size, step)):
                two = [build(batch(base + 2 * n + i, [b"v"])) for i in range(2)]
                places = [max(at - len(two[0]), 0), at or len(two[0])]
                for data, place in zip(two, places, strict=True):
                    file.seek(place)
                    file.write(data)
                index += [(2 * n + i, place) for i, place in enumerate(places)]
        path.with_suffix(".index").write_bytes(
            b"".join(
                OFFSET_INDEX_ENTRY.build({"relative_offset": o, "position": at})
                for o, at in index[1:]
            )
        )
        base += len(index)
    tasks = plan(parse({"path": str(directory), "splitBytes": str(step)}), parallelism=2)
    assert [part.size for task in tasks for part in task] == [step] * (20 * size // step)
    assert all(len(task) == 1 for task in tasks)


def test_small_slices_share_a_task(broker: Path) -> None:
    assert [len(task) for task in plan(parse({"path": str(broker)}))] == [5]
    assert len(plan(parse({"path": str(broker), "splitBytes": "8"}))) > 5


# ---------------------------------------------------------------- transactions


def test_transactions_of_the_reference(directory: Path) -> None:
    path = vector(directory, "t", "control/txn-flow")
    (segment,) = discover(path)[0].segments
    found = transactions([segment])
    assert found.aborted == (Transaction(producer_id=2, first_offset=3, last_offset=10),)
    assert found.last_stable_offset == 11


def test_a_transaction_over_two_segments(directory: Path) -> None:
    data = vector(directory, "t", "control/txn-flow").read_bytes()
    (segment,) = discover(directory / "t-0")[0].segments
    whole = transactions([segment])
    for cut in boundaries(segment, 1):
        write(directory, "u", 0, 0, data[: cut.position])
        write(directory, "u", 0, cut.offset or 0, data[cut.position :])
        assert transactions(discover(directory / "u-0")[0].segments) == whole
        (directory / "u-0" / f"{cut.offset or 0:020}.log").unlink()


def test_tasks_carry_the_transactions_of_their_segment(directory: Path) -> None:
    data = vector(directory, "t", "control/txn-flow").read_bytes()
    write(directory, "t", 0, 100, numbered(2, 1))
    found = slices(path=str(directory), isolationLevel="read_committed")
    assert [part.rows.aborted for part in found] == [Aborted([(2, 3, 10)])]
    cut = boundaries(discover(directory)[0].segments[0], 1)[-1]
    write(directory, "t", 0, 0, data[: cut.position])
    both = slices(path=str(directory), isolationLevel="read_committed")
    assert [part.rows.aborted for part in both] == [Aborted([(2, 3, 10)]), Aborted()]
    assert [part.rows.offsets for part in both] == [(None, None)] * 2


def test_a_marker_behind_damage(directory: Path) -> None:
    path = vector(directory, "t", "control/txn-flow")
    cuts = [cut.position for cut in boundaries(discover(path)[0].segments[0], 1)]
    data = path.read_bytes()
    whole = transactions(discover(path)[0].segments)
    path.write_bytes(data[: cuts[1]] + b"\xff" * 50 + data[cuts[1] :])
    (segment,) = discover(path)[0].segments
    with pytest.raises(Exception, match=f"byte {cuts[1] + 8} of"):
        transactions([segment])
    for policy in (Policy.KAFKA, Policy.SALVAGE):
        assert transactions([segment], policy, damage_raises=False) == whole
