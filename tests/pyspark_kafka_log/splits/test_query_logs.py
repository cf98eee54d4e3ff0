"""All scans of a query read one log, however it grows between their plans."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log.segment.positioned_reads import UnreadableError
from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.reader import KafkaLogReader
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.splits.query_logs import QueryLogs
from tests.paths import SAMPLES
from tests.shares import later_seeds
from tests.support.growing_logs import Growing
from tests.support.query_logs import path as path
from tests.support.query_logs import rows
from tests.support.spark_logs import batch, build, numbered, write
from tests.support.stream_laws import expected

QUICK, MANY = 10, 200


def passed_on(seen: QueryLogs) -> QueryLogs:
    return QueryLogs.from_bytes(seen.to_bytes())


@pytest.mark.slow
def test_laws(tmp_path: Path) -> None:
    one_log(tmp_path, range(QUICK))


@pytest.mark.slow
def test_more_laws(tmp_path: Path) -> None:
    one_log(tmp_path, later_seeds(QUICK, MANY))


def grow(logs: list[Growing], r: random.Random, root: Path) -> None:
    """As brokers do it that are not killed: a batch that is being written is what it will be, and files may be longer in advance."""
    for _ in range(r.randrange(6)):
        log = r.choice(logs)
        r.choices([log.append, log.roll, log.tear], [12, 2, 2])[0]()
        if log.files[-1].rest and not log.files[-1].rest.endswith(bytes(24)):
            log.append()
    if r.random() < 0.1 and len(logs) < 4:
        logs.append(Growing(root / f"t-{len(logs)}", r))


def one_log(root: Path, seeds: range) -> None:
    grown = 0
    for seed in seeds:
        r = random.Random(seed)
        directory = root / str(seed)
        logs = [Growing(directory / "t-0", r), Growing(directory / "t-1", r)]
        for _ in range(8):
            grow(logs, r, directory)
        isolation = r.choice(["read_committed", "read_uncommitted"])
        there = {log.name for log in logs}
        wanted = expected(logs, isolation)
        if r.random() < 0.5:  # the plan of an earlier query is kept
            assert rows(QueryLogs(), directory, isolationLevel=isolation) == wanted
        seen = QueryLogs()
        assert rows(seen, directory, isolationLevel=isolation) == wanted, seed
        for _ in range(6):
            grow(logs, r, directory)
        for scan in range(3):
            seen = passed_on(seen)
            one = ("partition", "=", scan % 2)
            some = rows(seen, directory, one, isolationLevel=isolation)
            assert some == [row for row in wanted if row[0] == f"t-{scan % 2}"], (seed, scan)
            other = rows(seen, directory / "t-*", splitBytes="1", isolationLevel=isolation)
            assert [row for row in other if row[0] in there] == wanted, (seed, scan)
            grow(logs, r, directory)
        grown += expected(logs, isolation) != wanted
    assert grown > len(seeds) // 2


def offsets(seen: QueryLogs, path: Path | str, **options: str) -> list[int]:
    return [offset for name, offset, _ in rows(seen, path, **options) if name == "t-0"]


def test_scans_of_a_query_pass_on_what_they_know_of_transactions() -> None:
    """Also where the plan is one that was kept."""
    options = parse({"path": str(SAMPLES / "kafka-4.x"), "isolationLevel": "read_committed"})
    first, second = QueryLogs(), QueryLogs()
    plan(options, seen=first)
    plan(options, seen=second)
    assert first.transactions and second.transactions.keys() == first.transactions.keys()
    assert passed_on(second).transactions.keys() == first.transactions.keys()


def test_paths_of_each_kind_end_where_the_first_scan_found_the_end(
    path: Path, directory: Path
) -> None:
    places: list[Path | str] = [
        directory,
        path.parent,
        path,
        f"{directory}/t-*",
        f"{path.parent}/*0.log",
    ]
    for first in places:
        path.write_bytes(numbered(2, 3))
        seen = QueryLogs()
        assert offsets(seen, first) == list(range(6))
        path.write_bytes(numbered(2, 4))
        newer = write(directory, "t", 0, 8, build(batch(8, [b"8"])))
        for second in places:
            known = [*range(6)]
            whole = first in places[:2] or second in places[2::2]
            found = offsets(passed_on(seen), second)
            assert found == known if whole or first == second else found in (known, [*known, 8])
        assert offsets(QueryLogs(), directory) == list(range(9))
        newer.unlink()


def test_a_preallocated_file_keeps_the_end_that_the_first_scan_found(
    path: Path, directory: Path
) -> None:
    """Its size stays the same: another query has planned the longer log meanwhile."""
    whole, size = numbered(2, 4), 4096
    path.write_bytes(numbered(2, 3).ljust(size, b"\0"))
    seen = QueryLogs()
    assert offsets(seen, directory) == list(range(6))
    path.write_bytes(whole.ljust(size, b"\0"))
    assert offsets(QueryLogs(), directory) == list(range(8))
    assert offsets(passed_on(seen), directory) == list(range(6))


@pytest.mark.parametrize("other", [{"mode": "PERMISSIVE"}, {"policy": "strict"}], ids=str)
def test_a_scan_that_takes_other_damage_reads_its_own_end(
    other: dict[str, str], path: Path, directory: Path
) -> None:
    """In a preallocated file, a torn batch and zeros are no records, records, or damage, as a scan takes them."""
    whole = numbered(2, 4)
    path.write_bytes(whole[:-9].ljust(4096, b"\0"))

    def read(seen: QueryLogs, options: dict[str, str]) -> list[int] | str:
        given = {"path": str(directory), "subscribe": "t", "engine": "construct", **options}
        reader = KafkaLogReader(parse(given), ("partition", "offset"))
        try:
            batches = [
                b for task in reader.partitions(seen) for b in reader.read_rows(task, Losses())
            ]
        except CodecError as error:
            return str(error)
        return [row["offset"] for b in batches for row in b.to_pylist() if row["partition"] == 0]

    alone = [read(QueryLogs(), options) for options in ({}, other)]
    assert alone[0] == list(range(6)) != alone[1]
    for first, second in (({}, other), (other, {})):
        seen = QueryLogs()
        found = {str(options): read(seen, options) for options in (first, second)}
        assert [found[str({})], found[str(other)]] == alone


def test_partitions_of_a_path_are_those_that_there_were(path: Path, directory: Path) -> None:
    seen = QueryLogs()
    assert len(rows(seen, directory)) == 8
    write(directory, "t", 2, 0, numbered(2, 1))
    assert len(rows(passed_on(seen), directory)) == 8
    assert len(rows(QueryLogs(), directory)) == 10


def test_a_segment_that_retention_has_deleted_is_an_error(path: Path, directory: Path) -> None:
    """The other scan has its rows: none without them would be right."""
    write(directory, "t", 0, 6, build(batch(6, [b"6"])))
    seen = QueryLogs()
    assert offsets(seen, directory) == list(range(7))
    path.unlink()
    with pytest.raises(UnreadableError, match="No such file"):
        offsets(passed_on(seen), directory)


@pytest.mark.parametrize(
    "options", [{"include": "deleted"}, {"recursiveFileLookup": "true"}], ids=str
)
def test_a_scan_that_looks_for_other_files_finds_them(
    path: Path, directory: Path, options: dict[str, str]
) -> None:
    other = write(directory, "t", 0, 6, build(batch(6, [b"6"])))
    other.rename(other.with_name(f"{other.name}.deleted"))
    (directory / "deep").mkdir()
    (directory / "deep" / "u-0").mkdir()
    (directory / "deep" / "u-0" / path.name).write_bytes(numbered(2, 1))
    for first, second in (({}, options), (options, {})):
        seen = QueryLogs()
        assert rows(seen, directory, **first) == rows(QueryLogs(), directory, **first)
        assert rows(passed_on(seen), directory, **second) == rows(QueryLogs(), directory, **second)
    assert len(rows(QueryLogs(), directory, **options)) > len(rows(QueryLogs(), directory))


def test_where_a_log_starts_is_settled_too(path: Path, directory: Path) -> None:
    seen = QueryLogs()
    assert offsets(seen, directory) == list(range(6))
    (directory / "log-start-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    assert offsets(passed_on(seen), directory) == list(range(6))
    assert offsets(QueryLogs(), directory) == list(range(2, 6))


def test_a_file_that_was_named_says_nothing_of_its_directory(path: Path, directory: Path) -> None:
    write(directory, "t", 0, 6, build(batch(6, [b"6"])))
    seen = QueryLogs()
    assert offsets(seen, path) == list(range(6))
    assert offsets(passed_on(seen), directory) == list(range(7))
