"""What tasks leave to Python's garbage collector."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc, weakref
from pyspark_kafka_log import collecting

class Ring:
    def __init__(self):
        self.me = self

gc.disable()
with collecting.quick_collections():
    pass
first = gc.get_freeze_count()
assert first > collecting.MANY, "pyspark alone is much"
with collecting.quick_collections():
    pass
assert gc.get_freeze_count() <= first, "a task that has loaded little leaves all as it is"

ring = Ring()
gone = weakref.ref(ring)
with collecting.quick_collections():
    kept = [[] for _ in range(collecting.MANY)]
    del ring
assert gone() is None, "what is garbage by then is collected"
assert gc.get_freeze_count() >= first + collecting.MANY
assert len(gc.get_objects()) < collecting.MANY, "what is left is looked through no more"
before = gc.get_freeze_count()

ring = Ring()
gone = weakref.ref(ring)
try:
    with collecting.quick_collections():
        del ring
        raise OSError("a task that fails")
except OSError:
    pass
assert gc.get_freeze_count() <= before, "later tasks leave nothing where they have loaded little"
gc.collect()
assert gone() is None, "what they make is collected as ever"
print("good")
"""


def test_what_is_loaded_stands_aside_and_garbage_does_not() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.stdout == "good\n", done.stderr
