"""What ``kafka-log dump`` says of damage: the same in every output, under every policy and by each engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log import Policy, SegmentReader
from kafka_log.cli import main
from kafka_log.segment.reader import damage
from tests.paths import ROOT, VECTORS

MALFORMED = sorted((VECTORS / "malformed").glob("*.log"))
ENGINES = ("construct", "arrow")
POLICIES = [policy.value for policy in Policy]


def printed(
    capfd: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, list[str], list[str]]:
    code = main(["dump", *map(str, arguments)])
    said = capfd.readouterr()
    return code, said.out.splitlines(), said.err.splitlines()


def read(path: Path, policy: str) -> tuple[list[Any], Any]:
    """The batches that the reference codecs give, and how the file ends."""
    reader = SegmentReader(path, policy=policy)
    found = []
    try:
        for batch in reader:
            found.append(batch)
    except CodecError:
        pass
    return found, reader.end


def cases() -> Iterator[Any]:
    """Each file under each policy; the quick run reads each file under one, and each policy has its third of them."""
    for i, path in enumerate(MALFORMED):
        for j, policy in enumerate(POLICIES):
            marks = [pytest.mark.slow] * ((i + j) % len(POLICIES) > 0)
            yield pytest.param(path, policy, marks=marks, id=f"{path.stem}-{policy}")


@pytest.mark.share(12)
@pytest.mark.parametrize(("path", "policy"), list(cases()))
def test_all_that_is_wrong_is_said(
    path: Path, policy: str, capfd: pytest.CaptureFixture[str]
) -> None:
    batches, end = read(path, policy)
    wrong = [str(finding) for batch in batches for finding in batch.findings]
    wrong += [str(problem.error) for batch in batches for problem in batch.problems]
    wrong += [lost.reason for lost in end.lost] + ([str(end.error)] if end.error else [])
    is_bad = not end.is_normal or any(damage(b) or not b.is_valid for b in batches)
    offsets = [r.offset for b in batches if not b.is_control for r in b.records]
    for engine in ENGINES:
        options = (path, "--policy", policy, "--engine", engine)
        code, lines, _ = printed(capfd, *options, "--columns", "offset")
        rows = [line for line in lines[1:] if line.strip().lstrip("-").isdecimal()]
        told = [line for line in lines if line.lstrip().startswith(("!", "--"))]
        assert list(map(int, rows)) == offsets
        assert code == int(is_bad)
        for reason in wrong:
            assert sum(reason in line for line in told) >= 1, reason
        for output in ("jsonl", "csv"):
            code, rows, errors = printed(capfd, *options, "--format", output, "--columns", "offset")
            assert code == int(is_bad)
            assert len(rows) - (output == "csv") == len(offsets)
            assert errors == [f"kafka-log: {line.strip()}" for line in told]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_say_what_is_wrong_with_them(engine: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = VECTORS / "malformed" / "v2-bad-crc.log"
    _, lines, _ = printed(capfd, path, "--format", "jsonl", "--engine", engine)
    rows = list(map(json.loads, lines))
    hurt = [row for row in rows if "damage" in row]
    assert [row["offset"] for row in hurt] == [0, 1]
    assert all(row["crc_ok"] is False and "stored checksum" in row["damage"] for row in hurt)
    assert len(rows) > len(hurt)


def test_damage_stands_before_its_rows(capfd: pytest.CaptureFixture[str]) -> None:
    path = VECTORS / "malformed" / "v2-bad-crc.log"
    for engine in ENGINES:
        _, lines, _ = printed(capfd, path, "--columns", "offset", "--engine", engine)
        assert [line.split()[0] for line in lines] == ["offset", "500", "!", "0", "1", "900"]


@pytest.mark.slow
def test_batches_and_vectors_need_no_arrow() -> None:
    """On a machine with nothing but Python and Construct; records say what they need."""
    code = (
        "import sys\n"
        "for name in ('numpy', 'pyarrow', 'numba'): sys.modules[name] = None\n"
        "from kafka_log.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    path = VECTORS / "control" / "txn-flow.log"
    for more, expected in (
        (["--batches"], (0, "baseOffset: 9 lastOffset: 9")),
        (["--format", "vectors"], (0, '"type":"record"')),
        ([], (2, "")),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, "dump", str(path), *more],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        assert done.returncode == expected[0], done.stderr
        assert expected[1] in done.stdout
        assert "Traceback" not in done.stderr
        if not more:
            assert "kafka-codecs[arrow]" in done.stderr


@pytest.mark.parametrize("more", [["--key", "a"], ["--columns", "offset"], ["--batches"]])
def test_vectors_are_whole(more: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    code, _, errors = printed(capfd, MALFORMED[0], "--format", "vectors", *more)
    assert code == 2 and "prints whole files" in errors[0]


def test_vectors_of_a_name_that_is_no_utf_8(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is printed is UTF-8 whatever a file is called."""
    path = shutil.copy(MALFORMED[0], tmp_path / os.fsdecode(b"\xff\xfe.log"))
    _, lines, _ = printed(capfd, Path(path), "--format", "vectors")
    assert json.loads(lines[0])["file"] == "\\udcff\\udcfe.log"
    assert lines[0].isascii()


@pytest.mark.parametrize("output", ["text", "jsonl"])
def test_headers_do_not_say_keys(output: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, errors = printed(capfd, MALFORMED[0], "--batches", "--key", "a", "--format", output)
    assert code == 2 and "keys filters records" in errors[0]
