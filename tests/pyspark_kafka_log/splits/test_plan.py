"""From options to splits of segments. No Java is needed."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_log import DirectoryError, Policy, discover
from kafka_log.logs.transactions import AbortedTransaction, read_transactions
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.row_selection import Aborted
from pyspark_kafka_log.options import OptionError, parse
from pyspark_kafka_log.reader import KafkaLogReader
from pyspark_kafka_log.splits.cuts import find_boundaries
from pyspark_kafka_log.splits.filters import parse_filters
from pyspark_kafka_log.splits.logs import expand_path
from pyspark_kafka_log.splits.plan import plan
from tests.paths import SAMPLES
from tests.support.growing_logs import Growing
from tests.support.spark_logs import TIME, batch, build, flipped, numbered, vector, write
from tests.support.spark_plans import broker as broker
from tests.support.spark_plans import offsets, slices


def names(**options: Any) -> list[str]:
    return [part.segment.path.parent.name for part in slices(**options)]


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
    assert expand_path(directory.as_uri(), {}) == [directory]


def test_a_name_with_a_star_is_a_name(tmp_path: Path) -> None:
    rejected = tmp_path / "lo[g]s"
    rejected.mkdir()
    assert expand_path(str(rejected), {}) == [rejected]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "hdfs:/logs",
            "option path: hdfs:/logs is neither an existing path nor a URL: a URL begins with hdfs://",
        ),
        ("file://host/x", "option path: file://host/x: it is not a URL of a path on this machine"),
        ("/nowhere/at/all-*", "no file or directory matches"),
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


# ---------------------------------------------------------------- files


def test_files_by_their_names(broker: Path) -> None:
    path = str(broker)
    assert names(path=path, pathGlobFilter="*10.log") == ["a-0"]
    assert names(path=path, pathGlobFilter="0*0.log") == ["a-0"] * 3 + ["a-1", "b.c-0"]
    assert names(path=path, pathGlobFilter="*.parquet") == []


def test_files_by_when_they_were_written(broker: Path) -> None:
    path = str(broker / "a-0")
    for second, file in enumerate(sorted((broker / "a-0").glob("*.log"))):
        os.utime(file, (second, second))
    assert offsets(slices(path=path, modifiedAfter="1970-01-01T00:00:00Z")) == list(range(10, 30))
    assert offsets(slices(path=path, modifiedBefore="1970-01-01T00:00:02Z")) == list(range(20))
    between = {"modifiedAfter": "1970-01-01T00:00:00Z", "modifiedBefore": "1970-01-01T00:00:02Z"}
    assert offsets(slices(path=path, **between)) == list(range(10, 20))
    assert len(slices(path=path, modifiedAfter="1970-01-01T01:00:00+01:00")) == 2
    with pytest.raises(OptionError, match=r"modifiedAfter: a time such as .*, not 'yesterday'"):
        slices(path=path, modifiedAfter="yesterday")


def test_directories_below_directories(broker: Path, tmp_path: Path) -> None:
    deep = tmp_path / "deep" / "disk" / "data"
    shutil.copytree(broker / "a-1", deep / "a-1")
    shutil.copytree(broker / "b.c-0", tmp_path / "deep" / "b.c-0")
    (deep / "link").symlink_to(tmp_path / "deep")
    shutil.copytree(broker / "a-0", deep / ".kafka-log-0.writing" / "x-0")
    assert names(path=str(tmp_path / "deep" / "disk")) == ["a-1"]  # above a log directory
    path = str(tmp_path / "deep")
    assert names(path=path, recursiveFileLookup="true") == ["a-1", "b.c-0"]
    assert names(path=path) == ["b.c-0"]


@pytest.mark.parametrize("state", ["deleted", "cleaned", "swap"])
def test_directories_with_other_segments_alone(state: str, broker: Path) -> None:
    (file,) = (broker / "a-1").glob("*.log")
    file.rename(file.with_name(f"{file.name}.{state}"))
    for recursive in ("true", "false"):
        options = {"path": str(broker), "recursiveFileLookup": recursive}
        assert names(**options, include=state) == ["a-0"] * 3 + ["a-1", "b.c-0"]


@pytest.mark.parametrize("ignored", [True, False])
def test_files_that_are_gone(broker: Path, ignored: bool) -> None:
    options = parse({"path": str(broker / "a-0"), "ignoreMissingFiles": str(ignored).lower()})
    reader = KafkaLogReader(options, ("offset",))
    tasks = reader.partitions()
    (broker / "a-0" / f"{10:020}.log").unlink()
    if ignored:
        with pytest.warns(UserWarning, match=r"10\.log is gone"):
            rows = [o for task in tasks for b in reader.read(task) for o in b[0].to_pylist()]
        assert rows == [*range(10), *range(20, 30)]
    else:
        with pytest.raises(OSError, match="No such file"):
            [list(reader.read(task)) for task in tasks]


def test_a_deleted_segment_does_not_say_where_the_one_before_it_ends(directory: Path) -> None:
    """It may be older than that one, and begin within it: a live file that became shorter lacks rows."""
    path = write(directory, "t", 0, 0, numbered(2, 4))
    other = write(directory, "t", 0, 5, build(batch(5, [b"v"])))
    other.rename(other.with_name(f"{other.name}.deleted"))
    found = slices(path=str(directory), include="deleted")
    assert offsets(found) == [*range(8), 5]
    path.write_bytes(numbered(2, 3))
    with pytest.raises(UnreadableError, match="when it was found"):
        offsets(found)


# ---------------------------------------------------------------- topics


def test_topics(broker: Path) -> None:
    path = str(broker)
    assert names(path=path, subscribe="b.c") == ["b.c-0"]
    assert names(path=path, subscribePattern="[ab].c") == ["b.c-0"]
    assert names(path=path, subscribePattern="c$") == ["b.c-0"]
    assert names(path=path, subscribePattern="^c") == []
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
        (99, -1, 0, range(0)),
        (5, 5, 1, range(0)),
    ],
)
def test_offsets(broker: Path, first: int, end: int, segments: int, wanted: range) -> None:
    found = slices(
        path=str(broker / "a-0"),
        startingOffsets=f'{{"a":{{"0":{first}}}}}',
        endingOffsets=f'{{"a":{{"0":{end}}}}}',
        failOnDataLoss="false",
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
        lost = {"startingOffsets": start, "failOnDataLoss": "false"}
        assert offsets(slices(path=path, **lost, **options))[0] == 13


def test_offsets_that_are_gone(broker: Path) -> None:
    (broker / "log-start-offset-checkpoint").write_text("0\n1\na 0 13\n")

    def read(first: int, end: int = -1, **options: str) -> list[int]:
        bounds = {"startingOffsets": f'{{"a":{{"0":{first}}}}}', "path": str(broker / "a-0")}
        return offsets(slices(**bounds, endingOffsets=f'{{"a":{{"0":{end}}}}}', **options))

    assert read(-2) == read(13) == read(13, 30) == list(range(13, 30))
    assert read(30) == read(30, 30) == read(20, 20) == []
    assert read(5, 31, failOnDataLoss="false") == list(range(13, 30))
    assert read(5, includeDeletedRecords="true") == list(range(5, 30))
    for first, end, message in (
        (5, -1, "startingOffsets: partition 0 of topic a begins at offset 13: 5 to 12 are gone"),
        (-2, 12, "endingOffsets: partition 0 of topic a begins at offset 13: 12 to 12 are gone"),
        (31, -1, "startingOffsets: partition 0 of topic a ends at offset 30, not 31"),
        (-2, 31, "endingOffsets: partition 0 of topic a ends at offset 30, not 31"),
        (
            20,
            19,
            "startingOffsets: partition 0 of topic a: it is 20, after the end of the query, 19",
        ),
    ):
        with pytest.raises(OptionError, match=message):
            read(first, end)
        read(first, end, failOnDataLoss="false")


def test_damage_after_the_offsets_that_are_read(broker: Path) -> None:
    """Nobody knows how far the log goes, and nobody needs to."""
    path = broker / "a-0" / f"{20:020}.log"
    path.write_bytes(flipped(path.read_bytes(), 8))
    assert offsets(slices(path=str(path.parent), endingOffsets='{"a":{"0":20}}')) == list(range(20))


def test_patterns_leave_out_the_topics_of_brokers(broker: Path) -> None:
    for name in ("__consumer_offsets", "__cluster_metadata"):
        write(broker, name, 0, 0, numbered(1, 1))
    path = str(broker)
    assert not [n for n in names(path=path, subscribePattern=".") if n.startswith("__")]
    with pytest.raises(OptionError, match="it matches __consumer_offsets only, which patterns"):
        names(path=path, subscribePattern="offsets")
    assert names(path=path, subscribePattern="offsets", view="offsets") == ["__consumer_offsets-0"]
    assert names(path=path, subscribe="__consumer_offsets") == ["__consumer_offsets-0"]


def test_timestamps_in_the_place_of_offsets(broker: Path) -> None:
    """Records of a batch are one millisecond apart, from the same time on."""
    path = str(broker / "a-0")
    for base in (0, 10, 20):
        some = [batch(base, [b"v"] * 4, max_timestamp=TIME + 3)]
        some += [batch(base + 4, [b"v"] * 6, max_timestamp=TIME + 5)]
        write(broker, "a", 0, base, build(*some))

    def read(**options: str) -> list[int]:
        return offsets(slices(path=path, **options))

    assert read(startingTimestamp=str(TIME)) == list(range(30))
    assert read(startingTimestamp=str(TIME + 5)) == list(range(9, 30))
    assert read(endingTimestamp=str(TIME + 5)) == list(range(9))
    assert read(endingTimestamp=str(TIME + 6)) == list(range(30))
    each = f'{{"a":{{"0":{TIME + 1}}}}}'
    assert read(startingOffsetsByTimestamp=each) == list(range(1, 30))
    assert read(endingOffsetsByTimestamp=each) == [0]
    assert read(startingTimestamp=str(TIME + 5), startingOffsetsByTimestamp=each)[0] == 9
    (broker / "log-start-offset-checkpoint").write_text("0\n1\na 0 12\n")
    assert read(startingTimestamp=str(TIME + 1)) == list(range(13 - 1, 30))
    late = str(TIME + 6)
    with pytest.raises(
        OptionError, match="partition 0 of topic a has no record with this timestamp"
    ):
        read(startingTimestamp=late)
    assert read(startingTimestamp=late, startingOffsetsByTimestampStrategy="latest") == []
    with pytest.raises(OptionError, match="ByTimestamp: it must have a timestamp for each"):
        read(startingOffsetsByTimestamp='{"a":{"7":1}}')


# ---------------------------------------------------------------- transactions


def test_transactions_of_the_reference(directory: Path) -> None:
    path = vector(directory, "t", "control/txn-flow")
    (segment,) = discover(path)[0].segments
    found = read_transactions([segment])
    assert found.aborted == (AbortedTransaction(producer_id=2, first_offset=3, last_offset=10),)
    assert found.last_stable_offset == 11


def test_a_transaction_over_two_segments(directory: Path) -> None:
    data = vector(directory, "t", "control/txn-flow").read_bytes()
    (segment,) = discover(directory / "t-0")[0].segments
    whole = read_transactions([segment])
    for cut in find_boundaries(segment, 1):
        write(directory, "u", 0, 0, data[: cut.position])
        write(directory, "u", 0, cut.offset or 0, data[cut.position :])
        assert read_transactions(discover(directory / "u-0")[0].segments) == whole
        (directory / "u-0" / f"{cut.offset or 0:020}.log").unlink()


def test_tasks_carry_the_transactions_of_their_segment(directory: Path) -> None:
    data = vector(directory, "t", "control/txn-flow").read_bytes()
    write(directory, "t", 0, 100, build(batch(100, [b"v"] * 2)))
    found = slices(path=str(directory), isolationLevel="read_committed")
    assert [part.rows.aborted for part in found] == [Aborted([(2, 3, 10)])]
    cut = find_boundaries(discover(directory)[0].segments[0], 1)[-1]
    write(directory, "t", 0, 0, data[: cut.position])
    both = slices(path=str(directory), isolationLevel="read_committed")
    assert [part.rows.aborted for part in both] == [Aborted([(2, 3, 10)]), Aborted()]
    assert [part.rows.offsets for part in both] == [(None, None)] * 2


def test_a_marker_behind_damage(directory: Path) -> None:
    path = vector(directory, "t", "control/txn-flow")
    cuts = [cut.position for cut in find_boundaries(discover(path)[0].segments[0], 1)]
    data = path.read_bytes()
    whole = read_transactions(discover(path)[0].segments)
    path.write_bytes(data[: cuts[1]] + b"\xff" * 50 + data[cuts[1] :])
    (segment,) = discover(path)[0].segments
    with pytest.raises(Exception, match=f"byte {cuts[1] + 8} of"):
        read_transactions([segment])
    for policy in (Policy.KAFKA, Policy.SALVAGE):
        assert read_transactions([segment], policy, damage_raises=False) == whole


def test_filters_on_columns_of_a_view_leave_its_topic_in() -> None:
    """What offsets are of is a topic too."""
    options = parse({"path": str(SAMPLES / "kafka-4.x"), "view": "offsets"})
    query = parse_filters([("topic", "=", "codecs"), ("partition", "=", 0)])
    assert plan(options, query) == plan(options) != []


def test_a_plan_of_committed_records_asks_a_store_once_for_each_segment(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    from tests.support.stores import counted, put

    for i in range(2):
        growing = Growing(tmp_path / f"t-{i}", random.Random(i))
        for _ in range(6):
            for _ in range(10):
                growing.append()
            growing.roll()
        growing.delete()
    here = slices(path=str(tmp_path), isolationLevel="read_committed")
    with counted() as store:
        put(tmp_path, "counted://b")
        store.no_requests()
        there = slices(path="counted://b", isolationLevel="read_committed")
        segments = sum(len(partition.segments) for partition in discover(tmp_path))
        assert len(store.read) <= segments + 2
        assert [part.rows for part in there] == [part.rows for part in here]
