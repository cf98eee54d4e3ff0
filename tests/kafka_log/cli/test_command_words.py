"""What the command line says without a command, with a path in its place, and to typing errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.runtime.version import RELEASE
from kafka_log.cli import COMMANDS, TASKS, main
from tests.paths import SAMPLES
from tests.support.batches import batch

BROKER = str(SAMPLES / "kafka-4.x")


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The last line of what is said to arguments that are refused."""
    with pytest.raises(SystemExit) as caught:
        main(list(argv))
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()[-1]


def test_every_command_has_a_task() -> None:
    names = [name for names in TASKS.values() for name in names]
    assert sorted(names) == sorted(COMMANDS)


def test_without_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert [line.split()[0] for line in out.splitlines()[2:] if line.startswith("  ")] == [n for names in TASKS.values() for n in names]  # fmt: skip
    assert all(len(line) <= 100 for line in out.splitlines())
    assert main(["help"]) == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize("command", [*COMMANDS, "completion"])
def test_help_of_a_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for argv in (["help", command], [command, "--help"]):
        with pytest.raises(SystemExit) as caught:
            main(argv)
        assert caught.value.code == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert said[0].startswith(f"usage: kafka-log {command} ")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["-V"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"kafka-log {RELEASE}\n"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["dmup", BROKER], "'dmup' is neither a command nor a file or directory; kafka-log help lists the commands; did you mean dump?"),
        (["list"], "'list' is neither a command nor a file or directory; kafka-log help lists the commands; did you mean ls?"),
        (["xyzzy"], "'xyzzy' is neither a command nor a file or directory; kafka-log help lists the commands"),
        (["\0"], "'\\x00' is neither a command nor a file or directory; kafka-log help lists the commands"),
        ([""], "'' is neither a command nor a file or directory; kafka-log help lists the commands"),
        (["help", "dmup"], "did you mean dump?"),
        (["ls", BROKER, "--format", "jsnl"], "argument --format: invalid choice: 'jsnl'; known: text, jsonl, csv, parquet, arrow; did you mean jsonl?"),
        (["dump", BROKER, "--policy", "salvge"], "known: strict, kafka, salvage; did you mean salvage?"),
        (["dump", BROKER, "--policy", "x"], "known: strict, kafka, salvage"),
        (["ls", BROKER, "--toppic", "x"], "unrecognized arguments: --toppic x; did you mean --topic?"),
        (["ls", BROKER, "--include", "dleted"], "did you mean deleted?"),
        (["stat", BROKER, "--bye", "hour"], "did you mean --by?"),
        (["completion", "bsh"], "did you mean bash?"),
        (["--topic", "x", BROKER], "'x' is neither a command nor a file or directory"),
    ],
)  # fmt: skip
def test_typing_errors(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    if argv[0] == "--topic":
        refused(capsys, *argv)
        return
    assert refused(capsys, *argv).endswith(said)


def test_values_that_commands_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stat", BROKER, "--by", "hours"]) == 2
    assert capsys.readouterr().err.endswith("day, hour, minute; did you mean hour?\n")
    assert main(["dump", BROKER, "--decode", "value=__consumer_offsets"]) == 2
    said = capsys.readouterr().err
    assert "'__consumer_offsets' is a format of keys and values together: write it alone" in said


def test_a_path_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no/such"]) == 2
    assert "no/such: there is no such file or directory" in capsys.readouterr().err


def test_a_command_wins_over_a_file_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "ls" / "t-0"
    log.mkdir(parents=True)
    (log / f"{0:020}.log").write_bytes(batch(0))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["ls"])
    assert "the following arguments are required: PATH" in capsys.readouterr().err
    assert main(["./ls"]) == 0
    assert capsys.readouterr().out.startswith("topics      1\n")
    assert main(["ls", "ls"]) == 0
