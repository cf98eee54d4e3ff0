"""A package whose kernels cannot read the view of records: the reference codecs read it, and the answers are the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codecgen.cli import main
from tests.paths import ROOT, SCHEMAS

pytestmark = pytest.mark.slow

LOG = ROOT / "tests" / "vectors" / "compacted" / "v2-lz4.log"
COMMANDS = [
    ["dump", "--format", "jsonl"],
    ["dump", "--engine", "construct"],
    ["stat", "--engine", "construct"],
    ["check", "--deep"],
    ["keys"],
]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = tmp_path_factory.mktemp("without_kernels")
    schemas = root / "schemas"
    shutil.copytree(SCHEMAS, schemas)
    view = schemas / "views" / "records.yaml"
    text = re.sub(r"    write:\n(?:      .*\n)+", "", view.read_text(encoding="utf-8"))
    # The value as it always is, said in a way that kernels cannot express, for each version.
    either = r"value: if \1offset > -9000 then \1value else \1key"
    text = text.replace(
        "value: item.value", "value: if base_offset > -9000 then item.value else item.key", 1
    )
    view.write_text(re.sub(r"value: (item\.|)value$", either, text, flags=re.MULTILINE))
    out = root / "generated"
    targets = ["--targets", "construct,arrow"]
    assert main(["generate", str(schemas), "--out", str(out), *targets]) == 0
    kernels = {path.name for path in (out / "kafka_codecs" / "arrow").glob("*_kernels.py")}
    assert "batches_kernels.py" in kernels and "records_kernels.py" not in kernels

    def of(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
        roots = [ROOT / "generator", directory, ROOT / "pipeline"]
        return subprocess.run(
            [sys.executable, "-m", "kafka_log", *command],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, roots))},
            capture_output=True,
            text=True,
        )

    return lambda *command: (of(ROOT / "generated", *command), of(out, *command))


@pytest.mark.share(ci=3)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_answers_are_the_same(run: Run, command: list[str]) -> None:
    usual, without = run(*command, str(LOG))
    assert usual.stdout and usual.returncode == 0
    assert (without.stdout, without.stderr, without.returncode) == (
        usual.stdout,
        usual.stderr,
        usual.returncode,
    )


def test_kernels_that_are_asked_for_are_an_error(run: Run) -> None:
    _, without = run("dump", "--engine", "arrow", str(LOG))
    assert (without.stdout, without.returncode) == ("", 2)
    assert without.stderr == (
        "kafka-log: the view records can only be read by the reference codecs: "
        "use --engine construct or --engine auto\n"
    )
