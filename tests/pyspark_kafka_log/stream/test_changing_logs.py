"""Logs that change between two questions of a stream: what is gone is told once and exactly, and what is left comes once. No Java is needed."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_log.logs import discovery
from kafka_log.logs.names import LOG_START
from kafka_log.logs.partitions import DirectoryError
from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.options import OptionError
from pyspark_kafka_log.splits.logs import find_logs
from pyspark_kafka_log.stream import polling
from pyspark_kafka_log.stream.polling import LogStream
from tests.paths import SAMPLES
from tests.support.check_plants_of_segments import control
from tests.support.segment_files import put
from tests.support.spark_logs import TIME, batch, build, numbered, write
from tests.support.stream_laws import rows, stream
from tests.support.tiers import TIER, local, remote
from tests.support.torn_logs import torn_log

IGNORED = {"failOnDataLoss": "false"}


def at(**offsets: int) -> dict[str, Any]:
    """Offsets of partition 0 of topics, as a checkpoint has them, without leader epochs."""
    return {topic: {"0": offset} for topic, offset in offsets.items()}


def offsets_of(of: LogStream, start: Any, end: Any) -> list[int]:
    return [offset for _, offset, _ in rows(of, start, end)]


@contextmanager
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def delete_records(root: Path, before: int) -> None:
    """Write the log start offset of t-0 as a broker does after DeleteRecords."""
    (root / LOG_START).write_text(f"0\n1\nt 0 {before}\n")


def append(path: Path, *batches: dict[str, Any]) -> None:
    with path.open("ab") as file:
        file.write(build(*batches))


# ---------------------------------------------------------------- log start


def test_records_that_are_deleted_between_two_polls(directory: Path) -> None:
    """The log start offset lies inside a batch."""
    write(directory, "t", 0, 0, numbered(2, 5))
    now, ignoring = stream(directory), stream(directory, **IGNORED)
    everything = stream(directory, includeDeletedRecords="true")
    for one in (now, ignoring, everything):
        assert one.initial() == at(t=0)
        assert one.latest(at(t=0), limited=True)["t"] == {"0": 10}
    delete_records(directory, 3)
    said = "partition t-0: the log begins at offset 3, offsets 0 to 2 are gone"
    for asked in (
        lambda: now.latest(at(t=0), limited=True),
        lambda: now.tasks(at(t=0), at(t=10)),
    ):
        with pytest.raises(DataLossError, match=said):
            asked()
    with pytest.warns(UserWarning, match=said):
        end = ignoring.latest(at(t=0), limited=True)
        assert offsets_of(ignoring, at(t=0), end) == [*range(3, 10)]
    with no_warning():
        assert now.latest(at(t=3), limited=True)["t"] == {"0": 10}
        assert offsets_of(everything, at(t=0), everything.latest(at(t=0), limited=True)) == [
            *range(10)
        ]
    assert now.initial() == at(t=3)
    assert everything.initial() == at(t=0)
    by_time = {"startingTimestamp": TIME, "startingOffsetsByTimestampStrategy": "error"}
    assert stream(directory, **by_time).initial() == at(t=3)


def test_a_query_that_is_asked_twice_where_it_begins(directory: Path) -> None:
    """Spark asks once more before the first micro-batch."""
    write(directory, "t", 0, 0, numbered(2, 5))
    now = stream(directory)
    assert now.initial() == at(t=0)
    delete_records(directory, 4)
    assert now.initial() == at(t=4)


def test_a_micro_batch_whose_records_are_all_deleted(directory: Path) -> None:
    """The message names the offsets of the micro-batch, no later ones."""
    write(directory, "t", 0, 0, numbered(2, 5))
    delete_records(directory, 6)
    with pytest.raises(DataLossError, match="begins at offset 6, offsets 0 to 3 are gone"):
        stream(directory).tasks(at(t=0), at(t=4))
    with pytest.warns(UserWarning, match="offsets 0 to 3 are gone"):
        assert stream(directory, **IGNORED).tasks(at(t=0), at(t=4)) == []


# ---------------------------------------------------------------- truncated logs


def test_a_log_that_is_written_again_before_its_micro_batch_is_planned(directory: Path) -> None:
    """It is longer than before. All that is new is read."""
    first = {"partition_leader_epoch": 1}
    path = write(
        directory, "t", 0, 0, build(*(batch(i, [b"old", b"old"], **first) for i in (0, 2, 4)))
    )
    now = stream(directory)
    end = now.latest(at(t=0), limited=True)
    path.write_bytes(
        build(
            batch(0, [b"old", b"old"], **first),
            *(batch(i, [b"new", b"new"], partition_leader_epoch=2) for i in (2, 4, 6)),
        )
    )
    said = "the log is a different one from offset 2 on"
    for asked in (
        lambda: stream(directory).tasks(at(t=0), end),
        lambda: stream(directory).latest(end, limited=True),
    ):
        with pytest.raises(DataLossError, match=said):
            asked()
    goes_on = stream(directory, **IGNORED)
    with pytest.warns(UserWarning, match=said):
        found = rows(goes_on, at(t=0), end)
        back = goes_on.latest(end, limited=True)
    assert back == {"t": {"0": 2}, "@leaderEpochs t 0:1": {}}
    after = goes_on.latest(back, limited=True)
    found += rows(goes_on, back, after)
    assert [(offset, value) for _, offset, value in found] == [
        *((offset, "old") for offset in range(2)),
        *((offset, "new") for offset in range(2, 8)),
    ]


def test_a_log_of_which_damage_hides_where_it_was_truncated_goes_on(directory: Path) -> None:
    """The position stays, and its leader epoch is that of the log as it is now."""
    write(directory, "t", 0, 0, b"\xff" * 100)
    path = write(directory, "t", 0, 4, build(batch(4, [b"new", b"new"], partition_leader_epoch=3)))
    start = {"t": {"0": 6}, "@leaderEpochs t 0:1": {}}
    with pytest.raises(DataLossError, match="its log was truncated"):
        stream(directory).latest(start, limited=True)
    now = stream(directory, **IGNORED)
    with pytest.warns(UserWarning, match="its log was truncated"):
        end = now.latest(start, limited=True)
    append(path, batch(6, [b"6"], partition_leader_epoch=3))
    with no_warning():
        after = now.latest(end, limited=True)
        assert offsets_of(now, end, after) == [6]


def test_limited_micro_batches_end_with_the_leader_epoch_of_their_last_batch(
    directory: Path,
) -> None:
    """A later epoch would hide that another leader writes their records again."""
    batches = (batch(i, [b"0", b"1"], partition_leader_epoch=i) for i in (0, 2, 4))
    write(directory, "t", 0, 0, build(*batches))
    now = stream(directory, maxOffsetsPerTrigger=4)
    end = now.latest(at(t=0), limited=True)
    assert end == {"t": {"0": 4}, "@leaderEpochs t 0:2": {}}
    assert now.report() == {"t": {"0": 6}, "@leaderEpochs t 0:4": {}}


def test_a_fixed_end_lies_at_the_end_of_a_log_that_was_truncated(directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(2, 3))
    now = stream(directory)
    assert now.prepare()["t"] == {"0": 6}
    path.write_bytes(numbered(2, 2))
    assert now.latest(at(t=0), limited=True)["t"] == {"0": 4}


def test_a_fixed_end_before_the_start_takes_nothing_back(directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(2, 3))
    now = stream(directory)
    now.end_at(at(t=2))
    assert now.latest(at(t=4), limited=True) == at(t=4)


# ---------------------------------------------------------------- partitions that come and go


def test_a_partition_without_new_offsets_may_vanish(directory: Path) -> None:
    """A micro-batch that is planned again needs nothing of it."""
    for topic in ("t", "u"):
        write(directory, topic, 0, 0, numbered(2, 2))
    shutil.rmtree(directory / "t-0")
    with no_warning():
        found = rows(stream(directory), at(t=4, u=1), at(t=4, u=4))
    assert found == [("u-0", offset, str(offset)) for offset in range(1, 4)]


def test_a_partition_that_vanishes_right_after_it_was_listed(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("t", "u"):
        write(directory, topic, 0, 0, numbered(2, 2))

    def then_deleted(options: Any) -> Any:
        found = find_logs(options)
        shutil.rmtree(directory / "t-0")
        return found

    now = stream(directory)
    monkeypatch.setattr(polling, "find_logs", then_deleted)
    with pytest.raises(DataLossError, match="partition t-0 is gone: it was read up to offset 4"):
        now.tasks(at(t=0, u=0), at(t=4, u=4))


def test_an_end_that_lacks_a_partition_of_its_start_is_a_loss(directory: Path) -> None:
    for topic in ("t", "u"):
        write(directory, topic, 0, 0, numbered(2, 2))
    with pytest.raises(DataLossError, match="partition u-0, which was read up to offset 1"):
        stream(directory).tasks(at(t=0, u=1), at(t=4))


def test_a_partition_that_comes_after_the_end_was_fixed(directory: Path) -> None:
    """What is wrong with it is no matter of this query."""
    root = directory
    put(root / "u-0", (0, numbered(2, 2)))
    now = stream(root)
    now.prepare()
    torn_log(root, "clean shutdown")
    with no_warning():
        assert now.latest(at(u=0), limited=True)["u"] == {"0": 4}


def test_paths_without_logs_end_no_query_in_silence(tmp_path: Path) -> None:
    """Without a checkpoint nobody can tell whether there were logs."""
    now = stream(tmp_path / "missing")
    for asked in (now.prepare, lambda: now.latest(None, limited=False), now.initial):
        with pytest.raises((OptionError, DirectoryError), match="missing"):
            asked()


def test_a_directory_that_changes_during_each_listing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(directory, "t", 0, 0, numbered(2, 2))

    def vanished(_: object) -> Any:
        raise FileNotFoundError(2, "No such file or directory", "t-0")

    now = stream(directory)
    monkeypatch.setattr(polling, "find_logs", vanished)
    with pytest.raises(DirectoryError, match="deleted during each attempt"):
        now.latest(at(t=0), limited=True)


# ---------------------------------------------------------------- tiers


def test_a_segment_that_moves_to_the_tier_while_a_micro_batch_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tier was listed before the copy came, and the live log after the segment had gone."""
    remote(tmp_path, 0, 0, 30)
    local(tmp_path, 50, 60)
    found = discovery.survey

    def surveyed(*given: Any, **options: Any) -> Any:
        there = found(*given, **options)
        if not list((tmp_path / TIER).rglob(f"{30:020}*.log")):
            remote(tmp_path, 1, 30, 50)
        return there

    monkeypatch.setattr("pyspark_kafka_log.splits.logs.survey", surveyed)
    now = stream(tmp_path, include="remote")
    assert offsets_of(now, at(t=0), at(t=60)) == [*range(60)]


@pytest.mark.slow
def test_segments_that_leave_the_disk_at_each_listing_are_read_from_the_tier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream does not run after a broker that deletes one after the other."""
    for i in range(polling.TRIES + 2):
        local(tmp_path, 10 * i, 10 * i + 10)
        remote(tmp_path, i, 10 * i, 10 * i + 10)

    def then_deleted(options: Any) -> Any:
        found = find_logs(options)
        first, *others = sorted((tmp_path / "t-0").glob("*.log"))
        if others:
            first.unlink()
        return found

    monkeypatch.setattr(polling, "find_logs", then_deleted)
    now = stream(tmp_path, include="remote", isolationLevel="read_committed")
    end = 10 * polling.TRIES + 20
    assert offsets_of(now, at(t=0), at(t=end)) == [*range(end)]


def test_files_that_options_leave_out_are_no_gap(tmp_path: Path) -> None:
    remote(tmp_path, 0, 0, 30)
    remote(tmp_path, 1, 30, 40)
    local(tmp_path, 40, 50)
    now = stream(tmp_path, include="remote", pathGlobFilter=f"{'0' * 18}[04]0*")
    with no_warning():
        assert offsets_of(now, at(t=0), at(t=50)) == [*range(30), *range(40, 50)]


# ---------------------------------------------------------------- transactions


def test_a_query_begins_at_the_end_before_an_open_transaction(directory: Path) -> None:
    """Its records are read when it is committed."""
    of_producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    data = {"is_transactional": True, "is_control": False}
    marker = {"is_transactional": True, "is_control": True}
    path = write(directory, "t", 0, 0, build(batch(0, [b"0"])))
    append(path, batch(1, [b"1", b"2"], attributes=data, **of_producer), batch(3, [b"3"]))
    options = {"startingOffsets": "latest", "isolationLevel": "read_committed"}
    start = stream(directory, **options).initial()
    assert start["t"] == {"0": 1}
    commit = batch(4, [b"\0\0\0\0\0\1"], attributes=marker, **of_producer)
    commit["records"][0]["key"] = b"\0\0\0\1"
    append(path, commit)
    now = stream(directory, **options)
    assert offsets_of(now, start, now.latest(start, limited=True)) == [1, 2, 3]


def test_a_marker_that_cannot_be_decoded_is_told(tmp_path: Path) -> None:
    """Records may be hidden because of it."""
    topic = shutil.copytree(SAMPLES / "kafka-4.x" / "transactions-2", tmp_path / "transactions-2")
    control(f"transactions-2/{0:020d}.log", 300, b"\x08\xff\xff")(tmp_path)
    options = {"isolationLevel": "read_committed", "mode": "PERMISSIVE"}
    start, end = ({topic.name[:-2]: {"2": offset}} for offset in (0, 4))
    said = "partition transactions-2: .*control record at offset 4 cannot be decoded"
    with pytest.raises(DataLossError, match=said):
        stream(tmp_path, **options).tasks(start, end)
    with pytest.warns(UserWarning, match=said):
        stream(tmp_path, **options, **IGNORED).tasks(start, end)


# ---------------------------------------------------------------- where and when micro-batches begin


def test_the_starting_time_zero_is_a_time(directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(2, 2))
    now = stream(directory, startingOffsets="latest", startingTimestamp=0)
    assert now.initial() == at(t=0)


@pytest.mark.parametrize("given", ['{"t":{"0":0}}', '{"t":{"0":0},"u":{"0":0},"v":{"0":0}}'])
def test_starting_offsets_name_each_partition(directory: Path, given: str) -> None:
    for topic in ("t", "u"):
        write(directory, topic, 0, 0, numbered(2, 2))
    for option in ("startingOffsets", "startingOffsetsByTimestamp"):
        with pytest.raises(OptionError, match=rf"{option}.* in one of the two only: [uv]-0$"):
            stream(directory, **{option: given}).initial()


def test_a_delay_is_counted_in_milliseconds(directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(2, 2))
    now = stream(directory, minOffsetsPerTrigger=10, maxTriggerDelay="50ms")
    start = now.latest(at(t=0), limited=True)
    append(path, batch(4, [b"4"]))
    for _ in range(100):
        end = now.latest(start, limited=True)
        if end != start:
            break
        time.sleep(0.02)
    assert end["t"] == {"0": 5}


def test_offsets_of_the_kafka_source_without_new_records_stay(directory: Path) -> None:
    """They lack leader epochs. Others would be a micro-batch without rows."""
    write(directory, "t", 0, 0, build(batch(0, [b"0"], partition_leader_epoch=3)))
    now = stream(directory)
    assert now.latest(at(t=1), limited=True) == at(t=1)


def test_metrics_before_the_first_poll_and_the_first_micro_batch(directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(2, 2))
    now = stream(directory)
    assert (now.report(), now.lag_metrics(at(t=0))) == (None, {})
    assert now.latest(None, limited=False)["t"] == {"0": 4}
    assert now.report() == {"t": {"0": 4}}
    assert now.lag_metrics(None) == {}
    assert now.lag_metrics(at(t=1))["maxOffsetsBehindLatest"] == "3"
