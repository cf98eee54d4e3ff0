"""Commands that write, and what they leave after an error."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_log import write_log
from kafka_log.cli import main
from kafka_log.write.output_lock import OUTPUT_LOCK, is_staged
from tests.support.output_commands import command_line


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions, of which no codec makes less than 100 KiB."""
    root = tmp_path_factory.mktemp("source") / "logs"
    noise = random.Random(1)
    for topic in ("a", "b"):
        rows = pa.table({"value": [noise.randbytes(1000) for _ in range(60)]})
        write_log(root, rows, topic=topic, batch_bytes=20_000, segment_bytes=40_000)
    return root


def content(out: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()
    }


ERROR = re.compile(r"kafka-log: \[Errno (\d+)\] [\w /]+: '([^']+)'\n(?:kafka-log: (.*)\n)?")


LEFT = re.compile(
    r"(\d) of 2 (files are complete, with [\d,]+ rows|partitions are complete in \S+(; run the same command again to continue)?)"
)


PARTITION = re.compile(r"[ab]-0(\.\w+)?")


def run(name: str, source: Path, out: Path) -> int:
    return main(command_line(name, source, out))


def judge(said: str, out: Path, code: int) -> None:
    """Check what was told of a failure against what lies there."""
    found = ERROR.search(said)
    assert found is not None, said
    assert int(found[1]) == code
    named = Path(found[2])
    assert named == out or out in named.parents or named == out.parent
    assert not any(map(is_staged, named.parts))
    if out.exists():
        left = LEFT.match(found[3])
        assert left is not None, said
        assert int(left[1]) == sum(bool(PARTITION.fullmatch(p.name)) for p in out.iterdir())
        assert any(out.iterdir())
    else:
        assert found[3] is None
    assert "Traceback" not in said and "closed file" not in said
    assert not [p for p in out.rglob("*") if is_staged(p.name) or p.name == OUTPUT_LOCK]
