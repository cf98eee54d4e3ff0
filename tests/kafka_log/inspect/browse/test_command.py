"""``kafka-log browse`` as a command: the URL, the end by Ctrl-C, and what it refuses."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest

from kafka_log.cli import main
from kafka_log.cli.interruption import StopOnSignal
from tests.paths import SAMPLES

BROKER = SAMPLES / "kafka-4.x"


def snapshot(root: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_and_changes_nothing(number: signal.Signals) -> None:
    before = snapshot(BROKER)
    process = subprocess.Popen(
        [sys.executable, "-m", "kafka_log", "browse", str(BROKER), "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(
        r"Open this URL in a browser on this machine: (http://127\.0\.0\.1:(\d+))(/\?token=\S+)\n",
        line,
    )
    assert found, line
    assert process.stdout.readline() == "Ctrl-C ends the server.\n"
    connection = http.client.HTTPConnection("127.0.0.1", int(found[2]), timeout=60)
    connection.request("GET", found[3])
    answer = connection.getresponse()
    answer.read()
    cookie = str(answer.getheader("Set-Cookie")).partition(";")[0]
    todo, seen = ["/"], set()
    while todo and len(seen) < 40:
        url = todo.pop()
        seen.add(url)
        connection = http.client.HTTPConnection("127.0.0.1", int(found[2]), timeout=60)
        connection.request("GET", url, headers={"Cookie": cookie})
        answer = connection.getresponse()
        assert answer.status == 200
        page = answer.read().decode()
        todo += [u.replace("&amp;", "&") for u in re.findall(r'href="(/[^"#]*)', page)]
        todo = [u for u in todo if u not in seen]
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    said = f"kafka-log: listing partitions below {BROKER}\n"
    assert (process.returncode, out, err) == (0, "The server has ended.\n", said)
    assert snapshot(BROKER) == before


@pytest.mark.parametrize(
    "words, said",
    [
        (["--host", "0.0.0.0"], "no loopback address"),
        (["--host", "example.org"], "no loopback address"),
        (["--decode", "nonsense"], "not a format"),
        (["--topic", "nothing"], "there is no topic"),
        (["--now", "never"], "never"),
        (["--port", "99999"], "port"),
    ],
)
def test_impossible_options_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["browse", str(BROKER), "--no-open", *words])
    except SystemExit as end:
        code = int(str(end.code))
    assert code == 2
    assert said in capsys.readouterr().err


def test_other_paths_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["browse", "s3://bucket/logs"]) == 2
    assert "does not read URLs" in capsys.readouterr().err
    assert main(["browse", str(tmp_path / "nothing")]) == 2
    assert "there is no such file" in capsys.readouterr().err


def test_a_port_that_is_taken_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["browse", str(BROKER), "--port", str(taken.getsockname()[1])]) == 2
    assert "Address already in use" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "display, is_terminal, no_open, opened",
    [
        ("x", True, False, True),
        ("", True, False, False),
        ("x", False, False, False),
        ("x", True, True, False),
    ],
)
def test_a_browser_is_opened_only_where_there_is_one(
    display: str,
    is_terminal: bool,
    no_open: bool,
    opened: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    urls: list[str] = []
    monkeypatch.setattr(webbrowser, "open", urls.append)

    def interrupt(stop: StopOnSignal, seconds: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise KeyboardInterrupt

    monkeypatch.setattr(StopOnSignal, "wait", interrupt)
    assert main(["browse", str(BROKER), *(["--no-open"] if no_open else [])]) == 0
    assert bool(urls) is opened


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["browse", "--help"])
    out = capsys.readouterr().out
    assert "kafka-log browse samples/kafka-4.x" in out
    for flag in ("--host", "--port", "--no-open", "--decode", "--show-secrets", "--now"):
        assert flag in out
