"""The benchmark of everyday tasks takes its commands from the page, and knows each of them."""

from __future__ import annotations

from benchmarks.tasks import PAGE, THEIRS, read_tasks
from tests.paths import ROOT


def test_the_benchmark_has_each_task_of_the_page() -> None:
    tasks = list(read_tasks())
    assert [task.title for task in tasks] == list(THEIRS)
    assert PAGE.read_text(encoding="utf-8").count("\n## ") == len(tasks)
    assert tasks[0].command[:2] == ("dump", "samples/kafka-4.x")
    assert all("|" not in word and ";" not in word for task in tasks for word in task.command)


def test_their_segments_exist() -> None:
    globs = [one for theirs in THEIRS.values() for one in theirs.segments]
    made = [one for one in globs if one.startswith("bad/")]
    assert len(made) == 1 and all(list(ROOT.glob(one)) for one in globs if one not in made)
