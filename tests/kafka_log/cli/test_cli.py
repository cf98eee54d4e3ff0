"""The command kafka-log: what it prints, and what it exits with."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from importlib import import_module
from pathlib import Path

import pytest

from codecgen.runtime.version import RELEASE
from kafka_log import cli
from kafka_log.cli import COMMANDS, common, main
from kafka_log.cli.interruption import StopOnSignal
from tests.paths import SAMPLES, VECTORS
from tests.support.commands import LOG_COMMANDS

WRITE = ("export", "salvage", "merge", "cut", "reindex", "convert", "report")

GOOD = VECTORS / "control" / "txn-flow.log"
BAD = VECTORS / "malformed" / "v2-bad-crc.log"


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A log directory with two partitions of a topic, and what brokers leave beside them."""
    for partition, names in (
        (0, ["control/txn-flow", "features/v2-gzip-offset-gaps"]),
        (1, ["matrix/v1-gzip-create"]),
    ):
        directory = tmp_path / f"orders-{partition}"
        directory.mkdir()
        for i, name in enumerate(names):
            shutil.copy(VECTORS / f"{name}.log", directory / f"{i * 100:020}.log")
    (tmp_path / "orders-0" / "00000000000000000900.log.deleted").write_bytes(b"gone")
    (tmp_path / "old-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    (tmp_path / "meta.properties").write_text("version=1\n")
    return tmp_path


def test_good_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(GOOD), "--control-records"]) == 0
    assert '{"control":"COMMIT"}  {"version":0,"coordinatorEpoch":1}' in capsys.readouterr().out
    assert main(["dump", str(GOOD), "--batches"]) == 0
    assert "baseOffset: 9 lastOffset: 9 count: 1" in capsys.readouterr().out


def test_problems_are_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(BAD)]) == 1
    assert "  ! stored checksum" in capsys.readouterr().out
    assert main(["dump", str(BAD), "--batches"]) == 1
    assert "isvalid: false" in capsys.readouterr().out
    assert main(["stat", str(BAD)]) == 1
    assert "stored checksum" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["dump", "stat"])
def test_could_not_run_is_2(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(tmp_path / "nothing")]) == 2
    assert "there is no such file or directory" in capsys.readouterr().err
    assert main([command, str(tmp_path)]) == 2
    assert "no segments" in capsys.readouterr().err


def test_strict_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(BAD), "--policy", "strict"]) == 1
    out = capsys.readouterr().out
    assert "stopped at byte 100" in out
    assert "crc, byte 117 of" in out


def test_salvage_lists_what_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    path = BAD.with_name("v2-length-13.log")
    assert main(["dump", str(path), "--policy", "salvage", "--format", "vectors"]) == 1
    end = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [(x["start"], x["end"], x["beforeOffset"]) for x in end["lost"]] == [(100, 179, 900)]


def test_null_and_empty_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    main(["dump", str(VECTORS / "features" / "v2-zstd-headers.log")])
    lines = capsys.readouterr().out.splitlines()
    assert any(line.endswith('null  null  [""=null]') for line in lines)
    assert any(line.endswith('[""=""]') for line in lines)


def test_a_log_directory(broker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stat", str(broker), "--format", "jsonl"]) == 0
    found = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert [(row["topic"], row["partition"]) for row in found] == [("orders", 0), ("orders", 1)]
    assert found[0]["segments"] == 2
    assert found[1]["records"] == 65
    assert (found[1]["magics"], found[1]["batches"]) == ("v1", 3)


@pytest.mark.parametrize("deep", [[], ["--deep"]])
def test_stat_as_text(broker: Path, deep: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stat", str(broker), *deep]) == 0
    out = capsys.readouterr().out
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        ["orders", "0"],
        ["orders", "1"],
        ["total", "-"],
    ]


def test_only_deep_stat_finds_damage_inside_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(VECTORS / "malformed" / "v2-gzip-truncated.log")
    assert main(["stat", path]) == 0
    assert main(["stat", path, "--deep"]) == 1
    assert "gzip" in capsys.readouterr().err


def test_files_are_not_changed(broker: Path) -> None:
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in broker.rglob("*") if p.is_file()}
    for policy in ("strict", "kafka", "salvage"):
        main(["dump", str(broker), "--policy", policy])
    after = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in broker.rglob("*") if p.is_file()}
    assert before == after


def test_help_has_examples() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kafka_log", "dump", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(),
    )
    assert "examples:" in done.stdout
    assert "exit codes: 0 no problem; 1 damage" in done.stdout


EXAMPLES = [
    line
    for text in (cli.EXAMPLES, *(import_module(module).EXAMPLES for module in COMMANDS.values()))
    for line in text.splitlines()
    if "--spark" not in line
]
PROBLEMS = (
    "kafka-log diff samples",
    "kafka-log txn samples/kafka-4.x --state open",
    "kafka-log report samples/kafka-4.x --now",
)
"""Examples whose answer is a problem, with exit code 1."""


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("example", EXAMPLES, ids=str.strip)
def test_examples_of_the_help_run_on_the_samples(
    example: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    (tmp_path / "samples").symlink_to(SAMPLES)
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(example)
    assert program == "kafka-log"
    if arguments[0] == "browse":  # it waits for Ctrl-C

        def press(stop: StopOnSignal, seconds: float) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(StopOnSignal, "wait", press)
    assert main(arguments) == (1 if example.strip().startswith(PROBLEMS) else 0)
    assert b"nothing matches" not in capfdbinary.readouterr().err


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    command = [
        sys.executable,
        "-m",
        "kafka_log",
        "dump",
        str(VECTORS / "matrix" / "v0-none.log"),
    ]
    with subprocess.Popen(
        [*command, *[str(GOOD)] * 200],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    assert errors == b""
    assert process.returncode == 0


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"kafka-log {RELEASE}\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_is_one_line(tmp_path: Path) -> None:
    log = tmp_path / "long.log"  # longer than what a pipe holds
    data = GOOD.read_bytes()
    log.write_bytes(data * (1_000_000 // len(data)))
    command = [sys.executable, "-m", "kafka_log", "dump", str(log), "--engine", "construct"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    said = r"kafka-log: interrupted: at least [\d,]+ records are printed; read 0 bytes of [\d.]+ kB of the segments\n"
    assert re.fullmatch(said, errors.decode())
    assert process.returncode == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="descriptors")
def test_without_an_output() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kafka_log", "stat", str(GOOD)],
        env=_environment(),
        stderr=subprocess.PIPE,
        preexec_fn=lambda: os.close(1),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


INTERRUPTED = {
    "while text is executed": """
        import kafka_log.cli
        from kafka_log.__main__ import main

        def interrupted():
            try:
                exec("import os, signal; os.kill(os.getpid(), signal.SIGINT); [0 for _ in range(1000)]")
            except KeyboardInterrupt:
                return 2

        kafka_log.cli.main = interrupted
        sys.exit(main())
    """,
    "while it is loaded": """
        from kafka_log.__main__ import main

        class Loader:
            def find_spec(self, name, path=None, target=None):
                if name == "kafka_log.cli":
                    os.kill(os.getpid(), signal.SIGINT)

        sys.meta_path.insert(0, Loader())
        sys.exit(main())
    """,
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("when", INTERRUPTED)
def test_ctrl_c_ends_with_our_exit_code(tmp_path: Path, when: str) -> None:
    """Python ends a module by the signal if it comes at a wrong moment."""
    program = "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += textwrap.dedent(INTERRUPTED[when])
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    environment = _environment()
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "program"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_says_what_is_written(
    broker: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The signal comes when the first partition has its name."""
    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        renamed = rename(path, target)
        signal.raise_signal(signal.SIGINT)
        return renamed

    monkeypatch.setattr(Path, "rename", interrupted)
    out = broker.parent / "out"
    assert main(["salvage", str(broker), "--out", str(out)]) == 2
    said = f"interrupted: 1 of 2 partitions are complete in {out}"
    assert said in capsys.readouterr().err
    assert len([path for path in out.iterdir() if path.is_dir()]) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_while_it_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("kafka_log.cli.import_module", interrupted)
    assert main(["stat", str(GOOD)]) == 2
    assert capsys.readouterr().err == "kafka-log: interrupted: the output above is incomplete\n"


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_the_screen(
    command: str,
    width: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """But for the examples, which are to be copied, and words that are longer."""
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit):
        main([command, "--help"])
    for line in capsys.readouterr().out.splitlines():
        one_word = len(line.removeprefix("usage: ").split()) == 1 or line.lstrip().startswith("[--")
        assert len(line) <= width or line.startswith("  kafka-log ") or one_word


@pytest.mark.parametrize("command", LOG_COMMANDS)
def test_a_path_that_is_not_there(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--out", "somewhere"] if command in WRITE else []
    more += {
        "cut": ["--offsets", "0:1"],
        "diff": ["nor-this"],
        "merge": ["nor-this"],
        "sql": ["select 1"],
    }.get(command, [])
    name = ["group"] if command == "coordinator" else []
    assert main([command, *name, "nothing-of-this-name", *more]) == 2
    assert "nothing-of-this-name: there is no such file" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="terminals")
def test_a_bar_after_a_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also when nothing is told to be done, and never for less."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(common, "QUIET_SECONDS", 0.05)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with common.progress_of("reading", None):
        pass
    assert "reading" not in capsys.readouterr().err
    with common.progress_of("reading", None):
        time.sleep(0.3)
    assert "reading" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_is_full_is_named() -> None:
    command = [sys.executable, "-m", "kafka_log", "ls", str(SAMPLES / "kafka-4.x" / "codecs-1")]
    path = os.pathsep.join(p for p in sys.path if p)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path}
        )
    assert done.returncode == 2
    assert b"kafka-log: standard output: [Errno 28]" in done.stderr
