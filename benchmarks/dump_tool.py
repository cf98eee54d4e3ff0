"""``kafka-log dump`` beside Kafka's own dump tool, as commands, on the same segments.

Each command is run in a process of its own, output to a file that is thrown away; ours and theirs take turns, and the best of the
runs counts. ``python -m benchmarks.dump_tool [MB] [RUNS]`` needs Java and Maven.
"""

from __future__ import annotations

import os
import platform
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.shapes import segment
from tests.brokers.maven import DUMP_TOOL, DUMP_TOOL_API, classpath

RESULTS = Path(__file__).parent / "results" / "dump_tool.md"
BATCH_BYTES = 64 << 10
PART = 6_000_000
CODECS = ("none", "lz4", "zstd")
OURS = (sys.executable, "-m", "kafka_log", "dump")
THEIRS = "org.apache.kafka.tools.DumpLogSegments"
ROWS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("batch headers", ("--batches",), ()),
    ("records as text", (), ("--print-data-log",)),
    ("records as JSON lines", ("--output", "jsonl"), ("--print-data-log",)),
    ("records as Parquet", ("--output", "parquet"), ("--print-data-log",)),
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
    batches = list(entries(segment("A", BATCH_BYTES, PART, codec)))
    offset = 0
    with path.open("wb") as file:
        for _ in range(max(1, total // PART)):
            for batch in batches:
                file.write(struct.pack(">q", offset) + batch[8:])
                offset += int(struct.unpack_from(">i", batch, 57)[0])
    return offset


def seconds(command: tuple[str, ...]) -> float:
    with tempfile.TemporaryFile() as out:
        begun = time.perf_counter()
        subprocess.run(command, stdout=out, stderr=subprocess.DEVNULL, check=True)
        return time.perf_counter() - begun


def table(megabytes: int, runs: int) -> Iterator[str]:
    yield "| codec | file | shown | ours | theirs | theirs / ours |"
    yield "| --- | ---: | --- | ---: | ---: | ---: |"
    path_of_classes = os.pathsep.join(map(classpath, (DUMP_TOOL, DUMP_TOOL_API)))
    java = ("java", "-Xmx512m", "-cp", path_of_classes, THEIRS, "--files")
    with tempfile.TemporaryDirectory() as made:
        for codec in CODECS:
            directory = Path(made) / f"{codec}-0"
            directory.mkdir()
            path = directory / f"{0:020d}.log"
            records = write(path, codec, megabytes * 1_000_000)
            for shown, our, their in ROWS:
                ours = (*OURS, str(path), *our)
                theirs = (*java, str(path), *their)
                seconds(ours)  # compiles what is not compiled yet
                times = [(seconds(ours), seconds(theirs)) for _ in range(runs)]
                best, peer = (min(column) for column in zip(*times, strict=True))
                size = f"{path.stat().st_size / 1e6:.0f} MB"
                per_second = f"{records / best / 1e6:.2f}"
                yield f"| {codec} | {size} | {shown} | {best:.2f} s ({per_second} M records/s) | {peer:.2f} s | {peer / best:.1f} |"


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    lines = list(table(megabytes, runs))
    text = f"""# Dumping a segment, beside Kafka's dump tool

`python -m benchmarks.dump_tool {megabytes} {runs}`: whole commands, from start to exit, output to a file, best of {runs} that take turns.
16-byte keys and 100-byte values in batches of {BATCH_BYTES >> 10} KiB, {megabytes} MB before compression. Ours: `kafka-log dump FILE`, with compiled code
that is kept on disk. Theirs: `{THEIRS}` of kafka-tools {DUMP_TOOL.version} (`kafka-dump-log.sh`), with `--print-data-log` for
records; it has no JSON and no Parquet, its text stands beside these. {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}.

"""
    RESULTS.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
