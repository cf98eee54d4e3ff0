"""The law of `codecgen generate --watch`: a run in a process that has generated other states gives what a new process gives.

Compared are the exit code, the diagnostics and all files. ``python -m tests.laws.regeneration_laws --schemas N --seed S`` tries
random directories, with ``--edits N`` edits of each; with ``--schemas 0`` our own schemas.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hypothesis import Phase

from codecgen.cli import main as codecgen
from codecgen.schema import loader
from codecgen.targets.registry import ON_REQUEST, TARGETS
from tests.laws.runs import block_of
from tests.laws.world import World
from tests.paths import SCHEMAS

Texts = Mapping[str, str]
"""The files of a schema directory, by path."""

_FORK = multiprocessing.get_context("fork")
_WORD = re.compile(r"\b[a-z][a-z0-9_]{2,}\b")
_NUMBER = re.compile(r"\b[0-9]+\b")
_HERE = "codecgen.yaml"


# ---------------------------------------------------------------- states


def states_of(first: Texts, r: random.Random, edits: int) -> Iterator[Texts]:
    """Yield a directory and its edited states. Each third one is a state that was there before."""
    known = [first]
    yield first
    for i in range(edits):
        state = r.choice(known) if i % 3 == 2 else _edited(known[-1], r)
        known.append(state)
        yield state


def _edited(texts: Texts, r: random.Random) -> Texts:
    """Return the texts after one random edit: of a word in one file or in all, of a number, of lines, or of the files."""
    out = dict(texts)
    name = r.choice(sorted(out))
    lines = out[name].split("\n")
    at = r.randrange(len(lines))
    match r.randrange(8):
        case 0 | 1:  # a declaration, field, enum value or key gets another name
            word = r.choice(_WORD.findall(out[name]) or ["x"])
            files = sorted(out) if r.random() < 0.7 else [name]
            for file in files:
                out[file] = re.sub(rf"\b{word}\b", f"{word}_x", out[file])
        case 2 | 3:
            found = list(_NUMBER.finditer(out[name]))
            if found:
                number = r.choice(found)
                new = str(int(number.group()) + r.choice((-1, 1, 7)))
                out[name] = out[name][: number.start()] + new + out[name][number.end() :]
        case 4:
            out[name] = "\n".join(lines[:at] + lines[at + 1 :])
        case 5:
            out[name] = "\n".join([*lines[:at], "# A remark.", *lines[at:]])
        case 6:
            out[name.replace(".yaml", "_moved.yaml")] = out.pop(name)
        case 7 if name != _HERE and len(out) > 2:
            del out[name]
    return out


# ---------------------------------------------------------------- runs


def _generate(schemas: Path, out: Path) -> tuple[int, str]:
    """Return the exit code and standard error of `codecgen generate` with all targets that need no templates."""
    targets = ",".join(name for name in (*TARGETS, *ON_REQUEST) if name != "template")
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        code = codecgen(["generate", str(schemas), "--out", str(out), "--targets", targets])
    return code, printed.getvalue().replace(str(out), "OUT")


def _answer(pipe: Connection) -> None:
    """Run `_generate` for each pair of directories that comes, and send back its result."""
    while (arguments := pipe.recv()) is not None:
        try:
            pipe.send(_generate(*arguments))
        except Exception as error:
            pipe.send((-1, repr(error)))


class _Process:
    """A copy of this process, which has generated nothing yet."""

    def __init__(self) -> None:
        self._pipe, there = _FORK.Pipe()
        self._process = _FORK.Process(target=_answer, args=(there,), daemon=True)
        self._process.start()

    def generate(self, schemas: Path, out: Path) -> tuple[int, str]:
        self._pipe.send((schemas, out))
        answer: tuple[int, str] = self._pipe.recv()
        return answer

    def end(self) -> None:
        self._pipe.send(None)
        self._process.join()


def _files(root: Path) -> dict[str, bytes]:
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def _write(directory: Path, texts: Texts) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    for name, text in texts.items():
        path = Path(os.path.normpath(directory / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")


def try_states(states: Iterator[Texts], codes: Counter[int]) -> list[str]:
    """Generate each state in one process and in a new one, over the output of the state before. Return a line for each state
    where they differ, and count exit codes.
    """
    found = []
    warm = _Process()
    with tempfile.TemporaryDirectory() as scratch:
        schemas, kept, new = (Path(scratch) / name for name in ("a/schemas", "kept", "new"))
        kept.mkdir()
        for number, texts in enumerate(states):
            _write(schemas, texts)
            shutil.copytree(kept, new)
            cold = _Process()
            expected = cold.generate(schemas, new)
            cold.end()
            answer = warm.generate(schemas, kept)
            codes[answer[0]] += 1
            got, wanted = _files(kept), _files(new)
            if answer != expected:
                found.append(f"state {number}: {answer}, not {expected}")
            elif got != wanted:
                names = {*got, *wanted}
                differ = sorted(n for n in names if got.get(n) != wanted.get(n))
                found.append(f"state {number}: the files differ: {differ[:5]}")
            shutil.rmtree(new)
    warm.end()
    return found


def try_random(schemas: int, seed: int, edits: int, codes: Counter[int]) -> list[str]:
    """Try so many random directories. Return the findings."""
    worlds: list[World] = []
    block = seed * 1_000_000
    while len(worlds) < schemas:
        block_of(block, worlds.append, (Phase.generate,))
        block += 1
    r = random.Random(seed)
    return [
        finding
        for world in worlds[:schemas]
        for finding in try_states(states_of(world.texts(), r, edits), codes)
    ]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.laws.regeneration_laws")
    parser.add_argument("--schemas", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--edits", type=int, default=8, metavar="N", help="of each directory")
    arguments: Any = parser.parse_args(argv)
    codes: Counter[int] = Counter()
    if arguments.schemas:
        found = try_random(arguments.schemas, arguments.seed, arguments.edits, codes)
    else:
        r = random.Random(arguments.seed)
        found = try_states(states_of(loader.read_files(SCHEMAS), r, arguments.edits), codes)
    print(f"{codes.total()} states, {codes[0]} of them generated, {codes[1]} with findings")
    print("\n".join(found))
    return 1 if found or -1 in codes else 0


if __name__ == "__main__":
    sys.exit(main())
