"""Losses that no row of a report tells: reports fail as batch queries do, unless ``failOnDataLoss`` is false."""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from codecgen.runtime.errors import CodecError
from kafka_log.logs import discovery
from kafka_log.logs.names import LOG_START
from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.options.reports import REPORTS
from pyspark_kafka_log.splits.filters import EVERY_ROW
from tests.paths import SAMPLES
from tests.support.check_plants_of_segments import control
from tests.support.spark_queries import load
from tests.support.spark_reports import read_here
from tests.support.tiers import TIER, local, remote
from tests.support.torn_logs import torn_log

pytestmark = pytest.mark.spark

IGNORED = {"failOnDataLoss": "false"}
TORN = "are lost: of a batch that was not written to its end; "
OF_HEADERS = ("batches", "log_transactions", "producers")
"""Reports without rows about an incomplete batch."""
OF_GAPS = (*OF_HEADERS, "stat", "keys")
"""Reports without rows about offsets that no segment has."""
ALL_FILES = {"recursiveFileLookup": "true"}
"""Reads copies in tiered storage with each view."""


def read_rows(path: Path, view: str, **options: str) -> list[dict[str, Any]]:
    return [
        row for batch in read_here(path, view, EVERY_ROW, **options) for row in batch.to_pylist()
    ]


@contextmanager
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# ---------------------------------------------------------------- incomplete batches


@pytest.mark.parametrize("proof", ["clean shutdown", "high watermark"])
@pytest.mark.parametrize("view", OF_HEADERS)
def test_a_report_fails_at_an_incomplete_batch_that_was_written(
    view: str, proof: str, tmp_path: Path
) -> None:
    root = torn_log(tmp_path, proof)
    with pytest.raises(DataLossError, match=TORN):
        read_rows(root, view)
    with pytest.warns(UserWarning, match=f"data is lost: .*{TORN}"):
        found = read_rows(root, view, **IGNORED)
    assert len(found) == (2 if view == "batches" else 0)


@pytest.mark.parametrize("view", ["log_transactions", "producers"])
def test_a_report_that_accepts_damage_fails_too(view: str, tmp_path: Path) -> None:
    """Its tasks skip the end of a log in any mode. Those of ``batches`` warn of it."""
    root = torn_log(tmp_path, "clean shutdown")
    with pytest.raises(DataLossError, match=TORN):
        read_rows(root, view, mode="DROPMALFORMED")
    with pytest.warns(UserWarning, match="115 bytes in 1 place could not be read"):
        assert len(read_rows(root, "batches", mode="DROPMALFORMED")) == 2


@pytest.mark.parametrize("view", REPORTS)
@pytest.mark.parametrize("proof", ["", "lower high watermark"])
def test_a_batch_that_a_broker_may_be_writing_is_no_loss(
    view: str, proof: str, tmp_path: Path
) -> None:
    root = torn_log(tmp_path, proof)
    with no_warning():
        found = read_rows(root, view)
        if view in ("stat", "keys"):
            assert not found[0]["problems" if view == "stat" else "problem"]


@pytest.mark.parametrize("view", ["stat", "keys", "findings"])
def test_a_report_with_a_row_about_it_does_not_fail(view: str, tmp_path: Path) -> None:
    root = torn_log(tmp_path, "clean shutdown")
    with no_warning():
        found = read_rows(root, view)
    if view == "findings":
        assert "torn_tail" in [row["code"] for row in found]
    else:
        assert re.search(TORN, found[0]["first_problem" if view == "stat" else "problem"])


def test_offsets_before_an_incomplete_batch_lose_nothing(tmp_path: Path) -> None:
    """But a lost marker may have ended a transaction that began before."""
    root = torn_log(tmp_path, "clean shutdown")
    ends = {"endingOffsets": '{"t": {"0": 13}}'}
    with no_warning():
        assert not read_rows(root, "producers", **ends)
        assert len(read_rows(root, "batches", **ends)) == 2
    with pytest.raises(DataLossError, match=TORN):
        read_rows(root, "log_transactions", **ends)


def test_the_end_of_the_coordinators_log_is_told(tmp_path: Path) -> None:
    """The states of transactions come from there, whatever topics are selected."""
    for name in ("transactions-0", "__transaction_state-0"):
        shutil.copytree(SAMPLES / "kafka-4.x" / name, tmp_path / name)
    (tmp_path / ".kafka_cleanshutdown").touch()
    whole = read_rows(tmp_path, "log_transactions", subscribe="transactions")
    path = tmp_path / "__transaction_state-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes()[:-3])
    for topics in ({}, {"subscribe": "transactions"}):
        with pytest.raises(DataLossError, match=TORN) as caught:
            read_rows(tmp_path, "log_transactions", **topics)
        assert len(caught.value.losses) == 1
        with pytest.warns(UserWarning, match=f"__transaction_state-0.*{TORN}"):
            found = read_rows(tmp_path, "log_transactions", **topics, **IGNORED)
        assert len(found) == len(whole)
    with no_warning():
        read_rows(tmp_path, "producers", subscribe="transactions")


# ---------------------------------------------------------------- offsets that no segment has


def make_gap(root: Path) -> None:
    """Make two copies and a live segment, with a gap after the second copy."""
    remote(root, 0, 0, 30)
    remote(root, 1, 30, 60)
    local(root, 70, 80)


@pytest.mark.parametrize("view", OF_GAPS)
def test_a_report_fails_at_a_gap(view: str, tmp_path: Path) -> None:
    make_gap(tmp_path)
    lost = "offsets 60 to 69 are lost: no copy"
    with pytest.raises(DataLossError, match=lost):
        read_rows(tmp_path, view, **ALL_FILES)
    with pytest.warns(UserWarning, match=f"data is lost: .*{lost}"):
        read_rows(tmp_path, view, **ALL_FILES, **IGNORED)
    if "include" in REPORTS[view]:
        with pytest.raises(DataLossError, match=lost):
            read_rows(tmp_path, view, include="remote")
        with no_warning():
            read_rows(tmp_path, view, include="remote", pathGlobFilter="*[07]0[.-]*")  # a part
    (tmp_path / LOG_START).write_text("0\n1\nt 0 70\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_rows(tmp_path, view, **ALL_FILES)
    assert not [str(one.message) for one in caught if "lost" in str(one.message)]


@pytest.mark.parametrize("view", ["batches", "producers", "stat", "keys"])
def test_offsets_beside_a_gap_lose_nothing(view: str, tmp_path: Path) -> None:
    make_gap(tmp_path)
    with no_warning():
        for option, offset in (("endingOffsets", 60), ("startingOffsets", 70)):
            read_rows(tmp_path, view, **ALL_FILES, **{option: f'{{"t": {{"0": {offset}}}}}'})


def test_a_gap_is_a_finding(tmp_path: Path) -> None:
    make_gap(tmp_path)
    with no_warning():
        found = read_rows(tmp_path, "findings", **ALL_FILES)
    rows = [row for row in found if row["code"] == "segment_missing"]
    assert [(row["first_offset"], row["last_offset"]) for row in rows] == [(60, 69)]


def test_a_segment_that_moves_while_directories_are_listed_is_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tier was listed before the copy came, and the live log after the segment had gone: another look finds it."""
    remote(tmp_path, 0, 0, 30)
    local(tmp_path, 50, 60)
    found = discovery.survey

    def surveyed(*given: Any, **options: Any) -> Any:
        there = found(*given, **options)
        if not list((tmp_path / TIER).rglob(f"{30:020}*.log")):
            remote(tmp_path, 1, 30, 50)
        return there

    monkeypatch.setattr("pyspark_kafka_log.splits.logs.survey", surveyed)
    with no_warning():
        batches = read_here(tmp_path, "batches", include="remote")
    rows = pa.Table.from_batches(batches)
    assert sum(rows["record_count"].to_pylist()) == 60


# ---------------------------------------------------------------- markers


def test_a_marker_that_cannot_be_decoded(tmp_path: Path) -> None:
    """Its transaction may have ended: that is damage, which the mode accepts or not."""
    shutil.copytree(SAMPLES / "kafka-4.x" / "transactions-2", tmp_path / "transactions-2")
    control(f"transactions-2/{0:020d}.log", 300, b"\x08\xff\xff")(tmp_path)
    said = "the control record at offset 4 cannot be decoded: "
    with pytest.raises(CodecError, match=said):
        read_rows(tmp_path, "log_transactions", **IGNORED)
    with pytest.warns(UserWarning, match=said):
        found = read_rows(tmp_path, "log_transactions", mode="DROPMALFORMED")
    assert None in [row["hanging"] for row in found if row["state"] == "open"]


# ---------------------------------------------------------------- in Spark


def test_spark_tells_the_loss(spark: SparkSession, tmp_path: Path) -> None:
    root = torn_log(tmp_path / "logs", "clean shutdown")
    for view in OF_HEADERS:
        with pytest.raises(PySparkException, match=TORN):
            load(spark, root, view=view).collect()
    assert load(spark, root, view="batches", **IGNORED).count() == 2
