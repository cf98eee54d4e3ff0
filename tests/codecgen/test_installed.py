"""The distribution in an environment of its own, without the repository: its package brings the schemas."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from codecgen import directories
from tests.paths import ROOT, SCHEMAS
from tests.release.__main__ import read_project, read_repository
from tests.release.archives import find_wheel_problems, read_wheel

OWN = """\
layout: audited_record
fields: {record: {layout: kafka.record}, compression: {type: u8, enum: kafka.compression}, by: {string: u8}}
examples:
  - name: one
    build: true
    values: {record: {timestamp_delta: 0, offset_delta: 1, key: null, value: a, headers: []}, compression: zstd, by: me}
"""
MANIFEST = "language: 1\npackage: audit_codecs\ntitle: Audit\nuses: {kafka: kafka_codecs}\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the wheel, built from this tree, and what it depends on."""
    root = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(root)]
    subprocess.run([*pip, str(ROOT)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(root / "venv")], check=True)
    commands = next(path for path in (root / "venv").iterdir() if path.name in ("bin", "Scripts"))
    (wheel,) = root.glob("*.whl")
    install = [str(commands / "pip"), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True)
    (site,) = (root / "venv").glob("[Ll]ib/**/site-packages")
    (site / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return commands


def run(command: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run([command, *arguments], cwd=cwd, env=env, capture_output=True, text=True)


@pytest.mark.soak
@pytest.mark.slow
def test_names_of_kafka_are_explained_anywhere(installed: Path, tmp_path: Path) -> None:
    shown = run(installed / "codecgen", "explain", "record_batch", cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("record_batch: layout (records/record_batch.yaml:")
    arguments = ("diff", "message", "0", "1", "--schemas", "kafka_codecs")
    changes = run(installed / "codecgen", *arguments, cwd=tmp_path)
    assert changes.returncode == 0 and "+ timestamp" in changes.stdout


@pytest.mark.slow
def test_the_schemas_that_are_installed_can_be_used(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "codecgen.yaml").write_text(MANIFEST, "utf-8")
    (tmp_path / "audit" / "audit.yaml").write_text(OWN, "utf-8")
    for command in (("check", "audit"), ("generate", "audit", "--out", "out")):
        done = run(installed / "codecgen", *command, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    code = (
        "import audit_codecs as a, kafka_codecs as k\n"
        "print(a.AUDITED_RECORD.by_name['record'].codec is k.RECORD, k.__file__)"
    )
    shown = run(installed / "python", "-c", code, cwd=tmp_path / "out")
    assert shown.stdout.startswith("True "), shown.stderr
    assert str(installed.parent) in shown.stdout


@pytest.mark.share(ci=2)
@pytest.mark.slow
@pytest.mark.parametrize("uses", [[], ["--uses", "kafka_codecs"]], ids=["alone", "kafka"])
def test_a_directory_that_is_begun_works(installed: Path, tmp_path: Path, uses: list[str]) -> None:
    begun = run(installed / "codecgen", "init", "my_format", *uses, cwd=tmp_path)
    assert (begun.returncode, begun.stderr) == (0, "")
    change, *steps = [line.split() for line in begun.stdout.split("next:\n")[1].splitlines()]
    for command, *arguments in steps:
        done = run(installed / command, *arguments, cwd=tmp_path / change[1])
        assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


@pytest.mark.slow
def test_the_wheel_has_the_files_of_the_packages_and_no_others(installed: Path) -> None:
    """Schemas and type markers too, and no path of this machine."""
    (wheel,) = installed.parent.parent.glob("*.whl")
    files = read_repository(ROOT)
    assert find_wheel_problems(read_wheel(wheel), files, read_project(ROOT), [str(ROOT)]) == []


USED = """
from datetime import datetime

import kafka_log
from codecgen.runtime.errors import CodecError
from kafka_codecs import RECORD_BATCH, Compression
from kafka_log import Batch, LogDirectory, Policy, Record, SegmentReader


def first(path: str) -> Record | None:
    reader = SegmentReader(path, policy=Policy.SALVAGE)
    batches: list[Batch] = list(reader)
    try:
        RECORD_BATCH.parse(b"", strict=False).records[0].offset
    except CodecError as error:
        print(error.reason, error.where.position or 0)
    codec: Compression | None = Compression.find("zstd")
    print(codec, LogDirectory(path, topics="orders").ls(segments=True))
    return batches[0].records[0] if batches else None


def when(record: Record) -> datetime | None:
    return record.time


print(kafka_log.scan("x", offsets=(0, 10)).read_all())
"""
WRONG = {
    "kafka_log.scam('x')": "attr-defined",
    "kafka_log.scan(5)": "arg-type",
    "kafka_log.scan('x', isolation='serial')": "arg-type",
    "kafka_log.LogDirectory('x').lss()": "attr-defined",
    "kafka_log.Record(1, 2, 3, None, 'text')": "arg-type",
    "next(iter(kafka_log.SegmentReader('x'))).ofset": "attr-defined",
    "kafka_codecs.RECORD_BATCH.parse(b'', strikt=True)": "call-overload",
    "kafka_codecs.RECORD_BACH": "attr-defined",
    "kafka_codecs.RECORD_BATCH.parse(b'').recrods": "attr-defined",
    "kafka_codecs.RECORD_BATCH.parse(b'').records[0].key.upper()": "union-attr",
    "kafka_codecs.RECORD_BATCH.parse(b'').last_offset = 5": "misc",
    "kafka_codecs.LOG_ENTRY.parse(b'').records": "union-attr",
    "kafka_codecs.RECORD_BATCH.build([1])": "arg-type",
}
"""Uses that are wrong, and what mypy calls the mistake."""
SHOWN = {
    "kafka_codecs.RECORD_BATCH.parse(b'').records[0].key": "bytes | None",
    "kafka_codecs.RECORD_BATCH.parse(b'').records[0].offset": "int",
    "kafka_codecs.RECORD_BATCH.parse(b'').delete_horizon": "int | None",
    "kafka_codecs.RECORD_BATCH.parse(b'').magic": "Literal[2]",
    "kafka_codecs.RECORD_BATCH.parse(b'').attributes.compression": "kafka_codecs.records.enums.Compression",
    "kafka_codecs.RECORD_BATCH.parse(b'').attributes.is_control": "bool",
    "kafka_codecs.RECORD_BATCH.parse(b'', strict=False)": "Any",
    "kafka_codecs.META_PROPERTIES.parse(b'', strict=False).directory_id": "uuid.UUID | None",
    "kafka_codecs.LOG_ENTRY.parse(b'')": "kafka_codecs.records.message.MessageV0 | "
    "kafka_codecs.records.message.MessageV1 | kafka_codecs.records.record_batch.RecordBatch",
}
"""What mypy says of the types of values."""


@pytest.mark.soak
def test_mypy_sees_the_types_that_are_installed(installed: Path, tmp_path: Path) -> None:
    """The packages say that they have types: README's code is right under ``--strict``, and mistakes are found."""
    readme = (ROOT / "README.md").read_text("utf-8")
    page = (ROOT / "docs" / "parse-and-build.md").read_text("utf-8")
    snippets = re.findall(r"^```python\n(.*?)^```$", readme + page, re.M | re.S)
    assert len(snippets) > 4
    for i, code in enumerate([*snippets, USED]):
        (tmp_path / f"snippet_{i}.py").write_text(code, "utf-8")
    wrong = "".join(f"{code}\n" for code in WRONG)
    (tmp_path / "wrong.py").write_text(f"import kafka_codecs\nimport kafka_log\n{wrong}", "utf-8")
    shown = "".join(f"reveal_type({code})\n" for code in SHOWN)
    (tmp_path / "shown.py").write_text(f"import kafka_codecs\n{shown}", "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--no-error-summary"]
    command += ["--config-file", os.devnull, "--python-executable", str(installed / "python"), "."]
    env = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "MYPY"))
    }
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    found = re.findall(r"^(\S+?):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M)
    assert list(dict.fromkeys(found)) == [
        ("wrong.py", str(3 + i), code) for i, code in enumerate(WRONG.values())
    ], done.stdout + done.stderr
    told = re.findall(r'^shown.py:\d+: note: Revealed type is "(.*)"$', done.stdout, re.M)
    assert told == list(SHOWN.values())


def test_in_a_source_tree_they_are_those_of_the_tree() -> None:
    assert directories.shipped("kafka_codecs") == SCHEMAS


class _Point:
    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize(
    ("brought", "found"),
    [
        (["kafka_codecs"], SCHEMAS),
        (["kafka_codecs", "kafka_codecs", "nobody_codecs"], SCHEMAS),
        ([], Path("schemas")),
    ],
)
def test_commands_find_schemas(
    brought: list[str], found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(directories, "entry_points", lambda group: map(_Point, brought))
    assert directories.named("") == found
    assert directories.named("kafka_codecs") == SCHEMAS
    assert directories.named("nowhere") == Path("nowhere")
    (tmp_path / "schemas").mkdir()
    assert directories.named("") == Path("schemas")


@pytest.mark.slow
def test_the_connector_brings_its_sources(installed: Path, tmp_path: Path) -> None:
    """Java that is compiled where it is used."""
    there = ROOT / "pipeline" / "pyspark_kafka_log" / "connector" / "java"
    shown = run(
        installed / "python",
        "-c",
        "from pyspark_kafka_log.connector.jars import java_sources; print(*java_sources())",
        cwd=tmp_path,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.split() == sorted(path.name for path in there.glob("*.java"))
