"""``kafka-log dump`` beside Kafka's own dump tool, as commands, on the same segments.

Each command is run in a process of its own, output to a file that is thrown away; ours and theirs take turns, and the best of the
runs counts. ``python -m benchmarks.dump_tool [MB] [RUNS]`` needs Java and Maven.
"""

from __future__ import annotations

import os
import platform
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import write_result_page
from benchmarks.result_page import RESULTS
from benchmarks.shapes import segment
from tests.brokers.maven import DUMP_TOOL, DUMP_TOOL_API, classpath

PAGE = RESULTS / "dump_tool.md"
BATCH_BYTES = 64 << 10
PART = 6_000_000
CODECS = ("none", "lz4", "zstd")
OURS = (sys.executable, "-m", "kafka_log", "dump")
THEIRS = "org.apache.kafka.tools.DumpLogSegments"
ROWS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("batch headers", ("--batches",), ()),
    ("records as text", (), ("--print-data-log",)),
    ("records as JSON lines", ("--format", "jsonl"), ("--print-data-log",)),
    ("records as Parquet", ("--format", "parquet"), ("--print-data-log",)),
)
"""What is shown, our options, theirs."""


def entries(data: bytes) -> Iterator[bytes]:
    """The batches of a segment."""
    at = 0
    while at < len(data):
        size = int(struct.unpack_from(">i", data, at + 8)[0]) + 12
        yield data[at : at + size]
        at += size


def write(path: Path, codec: str, total: int) -> int:
    """A segment of about ``total`` bytes of records: some batches, again and again at offsets that rise. Returns its records."""
    batches = list(entries(segment("A", BATCH_BYTES, PART, codec)))[: None if total else 1]
    offset = 0
    with path.open("wb") as file:
        for _ in range(max(1, total // PART)):
            for batch in batches:
                file.write(struct.pack(">q", offset) + batch[8:])
                offset += int(struct.unpack_from(">i", batch, 57)[0])
    return offset


def seconds(
    command: Sequence[str], directory: Path | None = None, codes: Sequence[int] = (0,)
) -> tuple[float, float]:
    """Return the seconds of the processors, and of the clock, that a command takes in a directory.
    Raise CalledProcessError if its exit code is not one of ``codes``.
    """
    # Nothing that keeps Python from writing its bytecode, which an installation has.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as out:
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            command,
            stdout=out,
            stderr=subprocess.DEVNULL,
            check=False,
            env=environment,
            cwd=directory,
        )
        after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    if done.returncode not in codes:
        raise subprocess.CalledProcessError(done.returncode, list(command))
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, end - begun


def java_command() -> tuple[str, ...]:
    """Return the command of Kafka's dump tool, to which names of files are added."""
    path_of_classes = os.pathsep.join(map(classpath, (DUMP_TOOL, DUMP_TOOL_API)))
    return "java", "-Xmx512m", "-cp", path_of_classes, THEIRS, "--files"


def table(megabytes: int, runs: int) -> Iterator[str]:
    yield "| codec | file | shown | ours | of it start | M records/s after it | theirs | theirs / ours | by the clock |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    java = java_command()
    with tempfile.TemporaryDirectory() as made:
        small = Path(made) / "small-0" / f"{0:020d}.log"
        small.parent.mkdir()
        write(small, "none", 0)
        for codec in CODECS:
            directory = Path(made) / f"{codec}-0"
            directory.mkdir()
            path = directory / f"{0:020d}.log"
            records = write(path, codec, megabytes * 1_000_000)
            for shown, our, their in ROWS:
                ours = (*OURS, str(path), *our)
                theirs = (*java, str(path), *their)
                tiny = (
                    *OURS,
                    str(small),
                    *our,
                    "--engine",
                    "construct" if "--batches" in our else "arrow",
                )
                seconds(ours)  # compiles what is not compiled yet
                start = min(seconds(tiny)[0] for _ in range(runs))
                times = [(*seconds(ours), *seconds(theirs)) for _ in range(runs)]
                best, clock, peer, their_clock = (min(c) for c in zip(*times, strict=True))
                size = f"{path.stat().st_size / 1e6:.0f} MB"
                rate = f"{records / max(best - start, 0.01) / 1e6:.1f}"
                line = f"| {codec} | {size} | {shown} | {best:.2f} s | {start:.2f} s | {rate} | {peer:.2f} s | {peer / best:.1f} | {their_clock / clock:.1f} |"
                print(line, flush=True)
                yield line


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    lines = list(table(megabytes, runs))
    text = f"""# Dumping a segment, beside Kafka's dump tool

`python -m benchmarks.dump_tool {megabytes} {runs}`: whole commands, from start to exit, output to a file, best of {runs} that take turns; seconds of the
processors (user and system), and in the last column how the clock has it. *Start* is what a file with one batch takes: Python, Arrow and compiled code are loaded.
16-byte keys and 100-byte values in batches of {BATCH_BYTES >> 10} KiB, {megabytes} MB before compression. Ours: `kafka-log dump FILE`, with compiled code
that is kept on disk. Theirs: `{THEIRS}` of kafka-tools {DUMP_TOOL.version} (`kafka-dump-log.sh`), with `--print-data-log` for
records; it has no JSON and no Parquet, its text stands beside these. {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}.

"""
    write_result_page(PAGE, text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
