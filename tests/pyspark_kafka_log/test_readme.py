"""The README's lines for Spark work as they stand there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.paths import SAMPLES
from tests.support.readme_blocks import blocks, section

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_spark_in_five_lines(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ((_, code),) = [block for block in blocks(section("As a table")) if "SparkSession" in block[1]]
    assert '"samples/kafka-4.x"' in code
    parquet = tmp_path / "records.parquet"
    code = code.replace('"samples/kafka-4.x"', repr(str(SAMPLES / "kafka-4.x")))
    code = code.replace('"records.parquet"', repr(str(parquet)))
    exec(compile(code, "README.md", "exec"), {})
    assert "partition|count" in capsys.readouterr().out
    written = session.read.parquet(str(parquet))
    assert written.columns[-1] == "headers"
    assert (
        written.count() == session.read.format("kafka-log").load(str(SAMPLES / "kafka-4.x")).count()
    )
