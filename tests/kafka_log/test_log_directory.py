"""A LogDirectory says in a notebook what it is of, by names and sizes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory, scan
from kafka_log.logs.partitions import DirectoryError, NotFoundError
from tests.paths import SAMPLES

FOUR = SAMPLES / "kafka-4.x"


def test_it_says_what_there_is() -> None:
    log = LogDirectory(FOUR)
    rows = log.ls().to_pylist()
    size = sum(row["bytes"] for row in rows)
    topics = len({row["topic"] for row in rows})
    assert repr(LogDirectory(FOUR)) == (
        f"LogDirectory({FOUR}; topics: {topics}; partitions: {len(rows)}; bytes: {size:,}; excluded: 2 snapshot)"
    )
    html = LogDirectory(FOUR, topics="codecs")._repr_html_()
    assert "<tr><th>topics</th><td>1</td></tr>" in html
    assert "<tr><th>partitions</th><td>5</td></tr>" in html
    assert "excluded" not in html


def test_no_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a question would look for the newest replica."""
    for name in ("a", "b"):
        shutil.copytree(FOUR / "codecs-0", tmp_path / name / "codecs-0")
    log = LogDirectory([tmp_path / "a", tmp_path / "b"], replicas="newest")

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a file was opened")

    with monkeypatch.context() as patched:
        patched.setattr("builtins.open", refused)
        patched.setattr("io.open", refused)
        patched.setattr("os.open", refused)
        said = repr(log)
    assert "partitions: 1;" in said and f"{tmp_path / 'a'}, {tmp_path / 'b'};" in said


def test_what_cannot_be_listed(tmp_path: Path) -> None:
    said = repr(LogDirectory(tmp_path / "none<b>"))
    assert said.startswith(f"LogDirectory({tmp_path / 'none<b>'}; problem: ") and "no such" in said
    html = LogDirectory(tmp_path / "none<b>")._repr_html_()
    assert "none&lt;b&gt;" in html and "<b>" not in html
    assert "problem: there is no topic x" in repr(LogDirectory(FOUR, topics="x"))


def test_a_question_after_it_sees_what_is_there_then(tmp_path: Path) -> None:
    shutil.copytree(FOUR / "codecs-0", tmp_path / "codecs-0")
    log = LogDirectory(tmp_path)
    assert "partitions: 1;" in repr(log)
    shutil.copytree(FOUR / "codecs-1", tmp_path / "codecs-1")
    assert log.ls().num_rows == 2
    assert "partitions: 2;" in repr(log)


def test_topics_are_those_of_the_selection() -> None:
    rows = LogDirectory(FOUR).ls().to_pylist()
    assert LogDirectory(FOUR).topics == sorted({row["topic"] for row in rows})
    assert LogDirectory(FOUR, topics="codecs,__consumer*", partitions=0).topics == [
        "__consumer_offsets",
        "codecs",
    ]
    with pytest.raises(NotFoundError, match="there is no topic x"):
        _ = LogDirectory(FOUR, topics="x").topics


@pytest.mark.parametrize(
    "selection",
    [{"topics": "codecs"}, {"partitions": "0-1"}, {"include": "snapshot", "topics": "__cluster*"}],
)
def test_a_scan_reads_the_selection(selection: dict[str, Any]) -> None:
    log = LogDirectory(FOUR, **selection)
    columns = ["topic", "partition", "state", "offset", "value"]
    found = log.scan(columns).read_all()
    assert found.num_rows
    assert found == scan(FOUR, columns, **selection).read_all()
    some = log.scan(columns, offsets=(1, 9)).read_all()
    assert 0 < some.num_rows < found.num_rows
    assert some == scan(FOUR, columns, offsets=(1, 9), **selection).read_all()
    assert log.scan().schema == scan(FOUR, **selection).schema


def test_filters_of_a_scan_replace_those_of_the_selection() -> None:
    log = LogDirectory(FOUR, topics="codecs", partitions=0)
    found = log.scan(["partition"], partitions=1).read_all()
    assert set(found.column("partition").to_pylist()) == {1}


def test_a_scan_counts_no_record_of_two_replicas_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(FOUR / "codecs-0", tmp_path / name / "codecs-0")
    paths = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(DirectoryError, match="replicas"):
        LogDirectory(paths).scan()
    once = LogDirectory(paths, replicas="newest").scan(["offset"]).read_all()
    assert once == scan(tmp_path / "a", ["offset"]).read_all()
