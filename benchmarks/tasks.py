"""How long the everyday commands of docs/tasks.md take, beside Kafka's own dump tool.

    python -m benchmarks.tasks [--rounds 3] [--without-java] [--output benchmarks/results/tasks.md]

The commands are those of the page, on the samples, as processes; ours and theirs take turns. Java and Maven are needed unless
``--without-java``.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import measure
from benchmarks.dump_tool import java_command, seconds
from benchmarks.measure import Report, ratio
from tests.brokers.maven import DUMP_TOOL
from tests.paths import ROOT

PAGE = ROOT / "docs" / "tasks.md"
TASK = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.M | re.S)
COMMAND = re.compile(r"""^\$ kafka-log ((?:'[^']*'|"[^"]*"|[^|;'"\n])*)""", re.M)
"""A command of ours, without what the shell does with its output."""
PRINT = "--print-data-log"

NOTES = """
Whole commands of [the page of everyday tasks](../../docs/tasks.md), from start to exit, on the samples, output to a file; seconds of the
processors (user and system) and by the clock, medians. The samples are small, so that both columns are mostly the start of Python and of the
Java VM: [a segment of 100 MB](dump_tool.md) shows the rest. Ours reads the directories that the command of the page names; theirs
(`kafka-dump-log.sh` of kafka-tools {version}) only the segments that have the answer, which one has to know.
""".strip()


@dataclass(frozen=True, slots=True)
class Theirs:
    """What Kafka's dump tool does about a task.

    Attributes:
        answer: What it prints, or why it cannot answer.
        segments: Globs of the segments with the answer; ``()`` if it cannot answer.
        options: Its options.
    """

    answer: str
    segments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


SAMPLE = "samples/kafka-4.x"
COUNTS = "no: it prints records, and counts nothing"
READS_ONE = "no: it prints one replica, and compares or writes nothing"
THEIRS: Mapping[str, Theirs] = {
    "What are the last 5 records?": Theirs(
        "all records of the file; the last ones have to be cut off",
        (f"{SAMPLE}/codecs-0/*.log",),
        (PRINT,),
    ),
    "What is the history of key K?": Theirs(
        "all records; the key has to be searched in the text",
        (f"{SAMPLE}/compacted-?/*.log",),
        (PRINT,),
    ),
    "How many records per hour?": Theirs(COUNTS),
    "Which producer writes most?": Theirs(COUNTS),
    "Which headers has a record?": Theirs("no: it prints the keys of headers without their values"),
    "How do I get one day as Parquet?": Theirs("no: it prints text, and selects no time"),
    "Which keys are the most frequent?": Theirs(COUNTS),
    "Which transaction hangs?": Theirs("no: it prints batches and markers, and pairs none of them"),
    "Where was a group yesterday?": Theirs(
        "all commits; the last one before the time has to be searched, and the ends of logs are missing",
        (f"{SAMPLE}/__consumer_offsets-0/*.log",),
        ("--offsets-decoder",),
    ),
    "Is a file corrupt, and where?": Theirs(
        "`isvalid: false` at the batch; the lost offsets and what to do are missing",
        ("bad/orders-0/*.log",),
    ),
    "How do I recover a cut or damaged segment?": Theirs("no: it writes nothing"),
    "Do two replicas have the same records?": Theirs(READS_ONE),
    "How do I make one log of damaged replicas?": Theirs(READS_ONE),
    "Which topic takes the disk space?": Theirs("no: it reads files, not directories"),
    "What is in these Avro values?": Theirs("no: it prints the bytes of values as text"),
}
"""What the tool does about the tasks of the page, by heading."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the page.

    Attributes:
        title: Its heading.
        before: Shell commands that prepare it.
        command: Arguments of ``kafka-log``.
    """

    title: str
    before: tuple[str, ...]
    command: tuple[str, ...]


def read_tasks() -> Iterator[Task]:
    """Yield the tasks of the page in order, each with its first command of ``kafka-log``."""
    for title, text in TASK.findall(PAGE.read_text(encoding="utf-8")):
        command = COMMAND.search(text)
        if command is not None:
            before = re.findall(r"^\$ (.*)$", text[: command.start()], re.M)
            yield Task(title, tuple(before), tuple(shlex.split(command[1])))


def run_round(
    tasks: Sequence[Task], java: Sequence[str] | None
) -> Iterator[tuple[str, str, tuple[float, float]]]:
    """Yield title, side (``ours`` or ``theirs``) and seconds (of processors, of the clock) of each command, in a directory of its own."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "samples").symlink_to(ROOT / "samples")
        for task in tasks:
            for line in task.before:
                subprocess.run(["bash", "-c", line], cwd=root, check=True)
            ours = (sys.executable, "-m", "kafka_log", *task.command)
            yield task.title, "ours", seconds(ours, root, codes=(0, 1))
            theirs = THEIRS[task.title]
            if java is not None and theirs.segments:
                files = [path for glob in theirs.segments for path in sorted(root.glob(glob))]
                names = ",".join(os.fspath(path) for path in files)
                yield task.title, "theirs", seconds((*java, names, *theirs.options), root)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="how many (3)")
    parser.add_argument("--output", type=Path, help="write the page here too")
    parser.add_argument("--without-java", action="store_true", help="time only kafka-log")
    options = parser.parse_args()
    report = Report("Everyday tasks", measure.command("benchmarks.tasks", options))
    report.add(NOTES.format(version=DUMP_TOOL.version))
    report.table(
        "task",
        "ours",
        "by the clock",
        "theirs",
        "by the clock",
        "theirs / ours",
        "what theirs answers",
    )
    tasks = list(read_tasks())
    java = None if options.without_java else java_command()
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for turn in range(options.rounds + 1):
        for title, side, taken in run_round(tasks, java):
            if turn:  # the first one compiles what is not compiled yet
                found[title, side].append(taken)
    for task in tasks:
        sides = [found[task.title, side] for side in ("ours", "theirs")]
        medians = [
            [statistics.median(column) for column in zip(*taken, strict=True)] for taken in sides
        ]
        cells = [f"{value:.2f} s" for side in medians for value in side]
        cells += [ratio(medians[1][0], medians[0][0])] if medians[1] else [""] * 3
        report.row(task.title, *cells, THEIRS[task.title].answer)
    report.write(options.output)


if __name__ == "__main__":
    main()
