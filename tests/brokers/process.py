"""A Java process that never outlives this one, and the JSON lines spoken with our own Java programs."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from .maven import NO_JVM_LOG, BrokerError, Build, class_archive, java_command, tail

BROKER_MAIN = "kafka.Kafka"
STOP_LIMIT_S = 60.0
ANSWER_LIMIT_S = 150.0


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(done: Callable[[], bool], limit_s: float, what: Callable[[], str]) -> None:
    """Polls until done; after the limit the error says what was waited for."""
    end = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > end:
            raise BrokerError(f"after {limit_s:.0f} s: {what()}")
        time.sleep(0.1)


class Server:
    """A JVM that runs a server's main class under Guard, which ends it when our end of the pipe closes."""

    def __init__(
        self, name: str, build: Build, main: str, args: list[str], log: Path, flags: tuple[str, ...]
    ) -> None:
        self.name = name
        self.log = log
        archive = class_archive(build)
        self._archive = archive.with_name(f"{archive.name}.{os.getpid()}-{id(self)}")
        if main == BROKER_MAIN and not archive.is_file():
            flags = (*flags, f"-XX:ArchiveClassesAtExit={self._archive}", NO_JVM_LOG)
        command = java_command(build, "Guard", main, *args, flags=flags)
        self._seen = log.stat().st_size if log.is_file() else 0
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, cwd=log.parent
            )

    def log_text(self) -> str:
        """What this run of the server has logged."""
        with self.log.open("rb") as file:
            file.seek(self._seen)
            return file.read().decode("utf-8", errors="replace")

    def wait_for_log(self, text: str, limit_s: float) -> None:
        def started() -> bool:
            if text in self.log_text():
                return True
            code = self._process.poll()
            if code is not None:
                raise BrokerError(
                    f"{self.name} ended with code {code}; see {self.log}:\n{tail(self.log)}"
                )
            return False

        wait_until(started, limit_s, lambda: f"{self.name} has not started; see {self.log}")

    def stop(self) -> None:
        """Stops it cleanly, or kills it and says so."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            code = self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerError(f"{self.name} did not stop and was killed; see {self.log}") from None
        if code != 0:
            raise BrokerError(f"{self.name} stopped with code {code}; see {self.log}")
        if self._archive.is_file():
            self._archive.replace(self._archive.with_suffix(""))

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()


class LineClient:
    """One of our Java programs (Driver, OldProducer): a JSON line out, a JSON line back."""

    def __init__(self, build: Build, args: list[str], log: Path) -> None:
        self._log = log
        self._name = f"{build.main} ({build.version})"
        quiet = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",)
        with log.open("ab") as err:
            self._process = subprocess.Popen(
                java_command(build, build.main, *args, flags=quiet),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                encoding="utf-8",
            )
        # A thread reads, so that waiting for an answer has an end on every system.
        self._answers: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def ask(self, op: str, **request: Any) -> Mapping[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"op": op, **request}) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=ANSWER_LIMIT_S)
        except (OSError, queue.Empty) as error:
            raise BrokerError(f"{self._name} gave no answer to {op}; see {self._log}") from error
        if line is None:
            raise BrokerError(
                f"{self._name} ended during {op}; see {self._log}:\n{tail(self._log)}"
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BrokerError(f"{self._name}, {op}: {answer['error']}; see {self._log}")
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise BrokerError(f"{self._name} did not end and was killed; see {self._log}") from None

    def kill(self) -> None:
        """Ends it at once: who waits for an answer gets a BrokerError."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def properties(values: Mapping[str, object]) -> str:
    """A Java properties file; backslashes (paths on Windows) are escaped."""
    lines = (f"{name}={str(value).replace(chr(92), chr(92) * 2)}" for name, value in values.items())
    return os.linesep.join(lines) + os.linesep
