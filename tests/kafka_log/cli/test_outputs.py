"""Where the output of a command goes: streams of text in the place of the standard output, and pipes whose reader has seen enough."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.commands import LOG_COMMANDS

BROKER = SAMPLES / "kafka-4.x"
PARTITION = BROKER / "codecs-1"
PLACES = {
    "hexdump": [PARTITION / f"{0:020d}.log"],
    "diff": [PARTITION, PARTITION],
    "merge": [PARTITION, PARTITION],
    "schemas": [SAMPLES / "schema-registry"],
    **{name: [BROKER] for name in ("groups", "metadata", "txn", "producers")},
}
MORE = {
    "cut": ["--offsets", "0:10"],
    "coordinator": [str(BROKER)],
    "txn": ["--now", "2026-11-22"],
    "sql": ["select offset, timestamp, key from records"],
}
WRITING = ("export", "salvage", "merge", "cut", "reindex", "convert", "report")
OUTPUTS = ["text", "jsonl"]
WITHOUT_FORMAT = ("export", "overview", "report")


def words_of(command: str, out: Path) -> list[str]:
    places = ["group"] if command == "coordinator" else PLACES.get(command, [PARTITION])
    more = ["--out", str(out)] if command in WRITING else []
    return [command, *map(str, places), *more, *MORE.get(command, [])]


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("command", LOG_COMMANDS)
def test_a_stream_of_text_gets_what_the_standard_output_gets(
    command: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for output in OUTPUTS if command not in WITHOUT_FORMAT else [None]:
        more = [] if output is None else ["--format", output]
        code = main([*words_of(command, tmp_path / f"a-{output}"), *more])
        expected = capfdbinary.readouterr().out.decode("utf-8")
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            assert main([*words_of(command, tmp_path / f"b-{output}"), *more]) == code
        assert capfdbinary.readouterr().out == b""
        found = text.getvalue().replace(str(tmp_path / "b-"), str(tmp_path / "a-"))
        assert found == expected
        assert command in ("export", "check") or found


@pytest.mark.parametrize("output", ["parquet", "arrow"])
def test_bytes_do_not_go_into_a_stream_of_text(
    output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as text, pytest.raises(SystemExit) as raised:
        main(["stat", str(PARTITION), "--format", output])
    assert raised.value.code == 2 and text.getvalue() == ""
    assert (
        f"--format {output} writes binary data, but sys.stdout accepts only text: choose --format jsonl, or give sys.stdout a buffer"
        in capsys.readouterr().err
    )


PIPED = [
    *(["dump", "BROKER", "--format", o] for o in ("text", "jsonl", "csv", "parquet", "arrow", "vectors")),
    *(["dump", "BROKER", "--batches", "--format", o] for o in ("text", "jsonl", "csv", "parquet", "arrow")),
    *(["stat", "BROKER", "--format", o] for o in ("text", "parquet", "arrow")),
    *(["hexdump", "FILE", "--format", o] for o in ("text", "parquet", "arrow")),
]  # fmt: skip
RUN = """
import sys
from kafka_log.__main__ import main
sys.stdin.read()  # until the reader of our output has gone
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.share(ci=6)
@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
@pytest.mark.parametrize("words", PIPED, ids=" ".join)
def test_a_reader_that_has_gone(words: list[str]) -> None:
    places = {"BROKER": str(BROKER), "FILE": str(PARTITION / f"{0:020d}.log")}
    command = [sys.executable, "-c", RUN, *(places.get(word, word) for word in words)]
    reader, writer = os.pipe()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE
    ) as process:
        os.close(writer)
        os.close(reader)
        _, errors = process.communicate()
    assert process.returncode == 0
    assert all(line.startswith(b"kafka-log: ") for line in errors.splitlines()), errors.decode()


@pytest.mark.slow
@pytest.mark.share(ci=6)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", PIPED, ids=" ".join)
def test_an_output_that_is_full(words: list[str]) -> None:
    places = {"BROKER": str(BROKER), "FILE": str(PARTITION / f"{0:020d}.log")}
    command = [sys.executable, "-m", "kafka_log", *(places.get(word, word) for word in words)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    *_, last = done.stderr.decode().splitlines()
    assert last == "kafka-log: standard output: [Errno 28] No space left on device"
    assert "Traceback" not in done.stderr.decode()


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(
    "words", [[], ["help"], ["--help"], ["--version"], ["ls", "--help"], ["ls", str(PARTITION)]]
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_help_on_a_full_output(words: list[str], buffered: bool) -> None:
    """Also if the text waits in a buffer until the command ends."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["PYTHONUNBUFFERED"] = "" if buffered else "1"
    command = [sys.executable, "-m", "kafka_log", *words]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env=environment, check=False
        )
    assert done.stderr == b"kafka-log: standard output: [Errno 28] No space left on device\n"
    assert done.returncode == 2
