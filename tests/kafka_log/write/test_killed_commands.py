"""Commands that are killed at each of their steps: what has its final name is whole, no input changes, and the same command then ends the work."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_log import write_log
from kafka_log.cli import main
from kafka_log.write.output_lock import OUTPUT_LOCK, is_staged
from tests.support.killed_processes import KILLED, fork, killed_at
from tests.support.output_commands import COMMANDS, command_line, inputs_of
from tests.support.write_errors import content

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions of two segments. The log is small, so that each command reads it by the reference codecs."""
    root = tmp_path_factory.mktemp("source") / "logs"
    for topic in ("a", "b"):
        rows = pa.table({"value": [b"%d" % i for i in range(40)]})
        write_log(root, rows, topic=topic, batch_records=10, segment_bytes=500)
    return root


def digest(root: Path) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in content(root).items()}


def finals(found: dict[str, bytes]) -> dict[str, bytes]:
    """Files with their final names, but for the manifest, which says in which order they were written."""
    return {
        name: data
        for name, data in found.items()
        if not any(map(is_staged, Path(name).parts))
        and not name.startswith("kafka-log-")
        and name != OUTPUT_LOCK
    }


def try_each_step(words: Callable[[Path], list[str]], inputs: list[Path], tmp_path: Path) -> int:
    """Kill a command at each of its steps, and judge what it leaves. Return the number of steps."""
    whole = tmp_path / "whole"
    assert fork(lambda: main(words(whole))) == 0
    expected = finals(content(whole))
    before = [digest(one) for one in inputs]
    nth = 1
    while True:
        out = tmp_path / "out"

        def work(out: Path = out) -> int:
            return main(words(out))

        code = killed_at(nth, out, work)
        if code != KILLED:
            assert code == 0
            return nth
        found = finals(content(out)) if out.exists() else {}
        assert found.items() <= expected.items(), nth
        partitions = {Path(name).parts[0] for name in found}
        wanted = {name for name in expected if Path(name).parts[0] in partitions}
        assert found.keys() == wanted, nth
        assert fork(work) == 0, nth
        assert finals(content(out)) == expected, nth
        assert not [p for p in out.rglob("*") if is_staged(p.name) or p.name == OUTPUT_LOCK]
        assert [digest(one) for one in inputs] == before
        shutil.rmtree(out)
        nth += 1


@pytest.mark.share(ci=8)
@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"parquet", "arrow"}))
def test_a_command_that_is_killed(name: str, source: Path, tmp_path: Path) -> None:
    """Each but exports by PyArrow, whose threads a fork does not have; they are written as the other exports are."""
    inputs = inputs_of(name, source)
    assert try_each_step(lambda out: command_line(name, source, out), inputs, tmp_path) > 5
