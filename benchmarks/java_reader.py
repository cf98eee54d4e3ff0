"""Apache Kafka's own Java reader as a peer: a process that reads segments in memory on demand, so that rounds can take turns."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.brokers.maven import Build, java_command

DECODE = Build("kafka-clients", "4.4.0", "2.21.7", "DecodeBench")
HEADERS = Build("kafka-clients", "4.4.0", "2.21.7", "HeaderBench")
FLAGS = ("-Xmx3g", "-XX:TieredStopAtLevel=4")


class JavaReader:
    """One JVM. ``read`` gives (records, seconds) for one pass over a segment, its checksums verified; with HEADERS (batches, seconds),
    no checksum verified."""

    def __init__(self, build: Build = DECODE) -> None:
        self.build = build

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            java_command(self.build, self.build.main, flags=FLAGS),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def read(self, path: Path) -> tuple[int, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{path.resolve()}\n")
        self.process.stdin.flush()
        records, nanoseconds = self.process.stdout.readline().split()
        return int(records), int(nanoseconds) / 1e9

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)
