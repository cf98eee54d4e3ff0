"""What tasks leave to Python's garbage collector."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.reader import KafkaLogReader, Task
from pyspark_kafka_log.splits.filters import parse_filters
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.totals import OFFSET, totals_of
from tests.paths import SAMPLES
from tests.support.garbage import damaged_partition, garbage

SCRIPT = """
import gc, weakref
from pyspark_kafka_log import worker_memory

class Ring:
    def __init__(self):
        self.me = self

gc.disable()
with worker_memory.freeze_loaded_objects():
    pass
first = gc.get_freeze_count()
assert first > worker_memory.MIN_OBJECTS, "pyspark alone is much"
with worker_memory.freeze_loaded_objects():
    pass
assert gc.get_freeze_count() <= first, "a task that has loaded little leaves all as it is"

ring = Ring()
gone = weakref.ref(ring)
with worker_memory.freeze_loaded_objects():
    kept = [[] for _ in range(worker_memory.MIN_OBJECTS)]
    del ring
assert gone() is None, "what is garbage by then is collected"
assert gc.get_freeze_count() >= first + worker_memory.MIN_OBJECTS
assert len(gc.get_objects()) < worker_memory.MIN_OBJECTS, "what is left is looked through no more"
before = gc.get_freeze_count()

ring = Ring()
gone = weakref.ref(ring)
try:
    with worker_memory.freeze_loaded_objects():
        del ring
        raise OSError("a task that fails")
except OSError:
    pass
assert gc.get_freeze_count() <= before, "later tasks leave nothing where they have loaded little"
gc.collect()
assert gone() is None, "what they make is collected as ever"
print("good")
"""


@pytest.mark.slow
def test_what_is_loaded_stands_aside_and_garbage_does_not() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.stdout == "good\n", done.stderr


@pytest.mark.share(ci=4)
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"isolationLevel": "read_committed", "includeMetadata": "true"},
        {"mode": "PERMISSIVE"},
        {"mode": "DROPMALFORMED", "engine": "construct"},
    ],
    ids=str,
)
def test_a_task_leaves_none(options: Mapping[str, str]) -> None:
    """A worker that answers many queries takes no more memory than for the first."""
    assert left_by({"path": str(SAMPLES / "kafka-4.x"), **options}) == []


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("engine", ["auto", "construct"])
def test_a_task_over_damage_leaves_none(mode: str, engine: str, tmp_path: Path) -> None:
    path = str(damaged_partition(tmp_path))
    assert left_by({"path": path, "mode": mode, "engine": engine}) == []


def left_by(options: Mapping[str, str]) -> list[str]:
    asked = parse(options)
    reader = KafkaLogReader(asked, ("key", "value", "topic", "offset", "timestamp"))

    def work() -> None:
        for query in ([], [("offset", "<", 9)]):
            for task in plan(asked, parse_filters(query)):
                list(reader.read_rows(Task(task), Losses()))
                if asked.selection.raises:
                    totals_of(task, reader.scan, [OFFSET])

    return garbage(work)
