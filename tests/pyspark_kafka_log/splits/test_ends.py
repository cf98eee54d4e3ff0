"""Where logs end now. No Java is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log import DirectoryError
from pyspark_kafka_log import OptionError, ending_offsets
from pyspark_kafka_log.splits.query_logs import QueryLogs
from tests.paths import SAMPLES
from tests.support.query_logs import rows
from tests.support.spark_logs import batch, build, flipped, numbered, write

LOGS = SAMPLES / "kafka-4.x"


def test_ends_are_the_option_of_a_query_that_reads_no_further(directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(2, 3))
    write(directory, "t", 1, 10, build(batch(10, [b"v"])))
    write(directory, "u", 0, 7, b"")
    torn = path.read_bytes()
    path.write_bytes(torn[:-1])
    assert json.loads(ending_offsets(directory)) == {"t": {"0": 4, "1": 11}, "u": {"0": 7}}
    path.write_bytes(torn)
    ends = ending_offsets(str(directory), {"subscribe": "t"})
    assert ends == '{"t":{"0":6,"1":11}}'
    assert ending_offsets([directory / "t-0", directory / "t-1"]) == ends
    wanted = rows(QueryLogs(), directory, subscribe="t", endingOffsets=ends)
    assert len(wanted) == 7
    path.write_bytes(torn + build(batch(6, [b"6"])))
    write(directory, "t", 1, 11, build(batch(11, [b"11"])))
    assert rows(QueryLogs(), directory, subscribe="t", endingOffsets=ends) == wanted
    write(directory, "t", 2, 0, numbered(1, 1))
    with pytest.raises(OptionError, match=r"endingOffsets: .* in one of the two only: t-2"):
        rows(QueryLogs(), directory, subscribe="t", endingOffsets=ends)


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_ends_of_a_broker_are_where_queries_end(isolation: str) -> None:
    told = {"isolationLevel": isolation}
    ends = ending_offsets(LOGS, told)
    before = rows(QueryLogs(), LOGS, **told)
    assert rows(QueryLogs(), LOGS, endingOffsets=ends, **told) == before
    found = json.loads(ends)["transactions"]
    assert (found["2"] == 5) is (isolation == "read_committed")


def test_what_has_no_ends(directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(2, 3))
    for option in ("endingOffsets", "endingOffsetsByTimestamp"):
        with pytest.raises(OptionError, match="leave out the options that say where queries end"):
            ending_offsets(directory, {option: '{"t":{"0":5}}'})
    with pytest.raises(OptionError, match="no topic u"):
        ending_offsets(directory, {"subscribe": "u"})
    path.write_bytes(flipped(path.read_bytes(), 8))
    with pytest.raises(CodecError, match="are not a complete batch, but one begins at byte 79"):
        ending_offsets(directory)
    with pytest.raises(DirectoryError):
        ending_offsets(directory / "nowhere")
