"""`codecgen generate --watch`: a process that generates after each change, until Ctrl-C."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from codecgen.cli import main
from tests.codecgen.goldens import MANIFEST

PACKET = "layout: packet\nfields: {size: {type: u16, measures: rest}, body: {bytes: rest}}\n"
POINT = "layout: point\nfields: {x: i8, y: i8}\n"
TOOK = 120
"""Seconds after which a run counts as missing, on a machine that has other things to do."""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sends the signal of Ctrl-C")


class Watching:
    """A process of `codecgen generate --watch`, and the lines that it prints."""

    def __init__(self, root: Path, *options: str) -> None:
        self.root = root
        command = [sys.executable, "-m", "codecgen", "generate", "schemas", "--out", "out"]
        self.process = subprocess.Popen(
            [*command, "--watch", *options],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def wait_for(self, *words: str) -> str:
        """Return the lines up to one that has one of the words."""
        seen = ""
        while not any(word in seen for word in words):
            seen += self.lines.get(timeout=TOOK)
        return seen

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(TOOK)


def write(path: Path, text: str) -> None:
    """Replace a file in one step, as careful editors do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "schemas" / "codecgen.yaml", MANIFEST)
    write(tmp_path / "schemas" / "packet.yaml", PACKET)
    return tmp_path


@pytest.fixture
def watching(root: Path) -> Iterator[Watching]:
    found = Watching(root)
    yield found
    found.process.kill()
    found.process.wait()


def is_current(root: Path) -> bool:
    """Whether the output is what a new run gives."""
    command = ["generate", str(root / "schemas"), "--out", str(root / "out"), "--check"]
    return main(command) == 0


@pytest.mark.slow
def test_each_change_is_generated(root: Path, watching: Watching) -> None:
    assert "watching schemas; Ctrl-C ends it" in watching.wait_for("Ctrl-C")
    assert is_current(root)
    packet = root / "schemas" / "packet.yaml"

    write(packet, PACKET.replace("u16", "u32"))
    assert " written, " in watching.wait_for(" written")
    assert is_current(root)

    before = {path: path.read_bytes() for path in (root / "out").rglob("*") if path.is_file()}
    write(packet, PACKET.replace("measures: rest", "measures: tail"))
    seen = watching.wait_for("nothing was written")
    assert "error[C" in seen and "packet.yaml:2" in seen
    for path, data in before.items():
        assert path.read_bytes() == data

    write(packet, PACKET)
    watching.wait_for(" written")
    assert is_current(root)

    write(root / "schemas" / "more" / "point.yaml", POINT)
    assert "0 removed" in watching.wait_for(" written")
    assert (root / "out" / "example_codecs" / "more" / "point.py").is_file()
    (root / "schemas" / "more" / "point.yaml").rename(root / "schemas" / "point.yaml")
    assert "0 removed" not in watching.wait_for(" written")
    assert not (root / "out" / "example_codecs" / "more").exists()
    assert is_current(root)

    shutil.move(root / "schemas", root / "away")
    assert "schemas does not exist" in watching.wait_for("nothing was written")
    shutil.move(root / "away", root / "schemas")
    watching.wait_for(" written")
    assert watching.end() == 0
    assert is_current(root)


@pytest.mark.slow
def test_used_directories_and_templates_are_watched(root: Path) -> None:
    write(root / "points" / "codecgen.yaml", MANIFEST.replace("example", "points"))
    write(root / "points" / "point.yaml", POINT)
    write(root / "schemas" / "codecgen.yaml", MANIFEST + "uses: {p: ../points}\n")
    write(root / "schemas" / "packet.yaml", "layout: packet\nfields: {at: {layout: p.point}}\n")
    write(root / "templates" / "page.txt.j2", "{{ mark }}\n")
    watching = Watching(root, "--targets", "construct,template", "--templates", "templates")
    try:
        seen = watching.wait_for("Ctrl-C", "codecgen:")
        assert "watching schemas" in seen, seen
        write(root / "points" / "point.yaml", POINT.replace("i8", "i99"))
        assert "points has" in watching.wait_for("nothing was written")
        write(root / "points" / "point.yaml", POINT.replace("i8", "i16"))
        watching.wait_for(" written")
        write(root / "templates" / "page.txt.j2", "{{ mark }}!\n")
        assert "1 written" in watching.wait_for(" written")
        assert watching.end() == 0
    finally:
        watching.process.kill()


def test_what_can_never_run_ends_at_once(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert main(["generate", "schema", "--out", "out", "--watch"]) == 2
    assert "schema does not exist" in capsys.readouterr().err
    assert main(["generate", "schemas", "--out", "out", "--watch", "--check"]) == 2
    assert "not allowed with argument" in capsys.readouterr().err
