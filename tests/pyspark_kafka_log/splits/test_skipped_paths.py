"""What is no segment or no partition, in a path that Spark reads."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pyspark_kafka_log.options import parse
from pyspark_kafka_log.splits.logs import find_logs
from tests.support.batches import batch


@pytest.mark.skipif(sys.platform == "win32", reason="kinds of files of POSIX")
def test_it_is_warned_of_and_all_else_is_read(tmp_path: Path) -> None:
    for name in ("t-0", "d-99999999999"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020d}.log").write_bytes(batch(0))
    os.mkfifo(tmp_path / "t-0" / f"{10:020d}.log")
    (tmp_path / "t-0" / f"{20:020d}.log").symlink_to("/nowhere/at/all")
    with pytest.warns(UserWarning, match="skipped") as warned:
        (log,) = find_logs(parse({"path": str(tmp_path)}))
    assert (log.topic, log.partition, len(log.segments)) == ("t", 0, 1)
    (said,) = [str(one.message) for one in warned]
    for text in (
        "a FIFO",
        "a dangling link",
        "d-99999999999 (it has segments, but its name is not",
    ):
        assert text in said
