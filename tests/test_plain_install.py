"""``pip install .`` without extras, in an environment of its own: what is missing is said in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kafka_log
from codecgen.runtime.extras import EXTRAS, missing
from kafka_log import LogDirectory
from tests.paths import ROOT, SAMPLES
from tests.support.commands import LOG_COMMANDS

LOG = SAMPLES / "kafka-4.x" / "transactions-2"
MORE = {
    "dump": [str(LOG), "--batches"],
    "hexdump": [str(LOG / "00000000000000000000.log")],
    "coordinator": ["group-classic", str(LOG)],
    "export": [str(LOG), "--out", "exported"],
    "salvage": [str(LOG), "--out", "salvaged"],
    "merge": [str(LOG), str(LOG), "--out", "merged"],
    "sql": [str(LOG), "select 1 as a"],
}
"""Arguments of commands that take others than a path."""
WITHOUT_ARROW = {"dump", "hexdump"}
"""Commands that a plain installation has; of dump what stands above."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the commands of a new environment."""
    root = tmp_path_factory.mktemp("plain") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(root)], check=True)
    there = root / ("Scripts" if os.name == "nt" else "bin")
    install = [
        str(there / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-cache-dir",
        str(ROOT),
    ]
    subprocess.run(install, check=True)
    return there


def run(command: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [command, *arguments], cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8"
    )


@pytest.mark.slow
def test_commands_say_what_they_need(commands: Path, tmp_path: Path) -> None:
    for name in LOG_COMMANDS:
        shown = run(commands / "kafka-log", name, "--help", cwd=tmp_path)
        assert (shown.returncode, shown.stderr) == (0, ""), name
        done = run(commands / "kafka-log", name, *MORE.get(name, [str(LOG)]), cwd=tmp_path)
        assert "Traceback" not in done.stderr, name
        if name in WITHOUT_ARROW:
            assert (done.returncode, done.stderr) == (0, ""), name
        elif "usage:" not in done.stderr and done.returncode == 2:
            wanted = f'kafka-log: {name} needs (pyarrow|numpy): pip install "kafka-codecs[arrow]"\n'
            assert done.stderr in (
                wanted.replace("(pyarrow|numpy)", module) for module in ("pyarrow", "numpy")
            )
    table = run(commands / "kafka-log", "stat", str(LOG), "--format", "parquet", cwd=tmp_path)
    assert table.returncode == 2
    assert table.stderr.count("\n") == 1 and "kafka-codecs[arrow]" in table.stderr


@pytest.mark.soak
def test_the_tool_in_one_file(tmp_path: Path) -> None:
    """It needs nothing but Python: no package of this environment, none of the user."""
    out = tmp_path / "bin" / "kafka-log.pyz"
    build = f"import sys, pathlib; sys.path.insert(0, {str(ROOT / 'demo')!r}); import run; run.tool(pathlib.Path({str(out)!r}), [])"
    subprocess.run([sys.executable, "-c", build], check=True)
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    environment = {"PATH": os.defpath, "SHIV_ROOT": str(tmp_path / "unpacked")}
    isolated = [sys._base_executable, "-I", "-S", str(out)]  # type: ignore[attr-defined]

    def started(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*isolated, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    listed = started("ls", str(SAMPLES / "kafka-4.x"), "--format", "csv")
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.count("\n") == LogDirectory(SAMPLES / "kafka-4.x").ls().num_rows + 1
    checked = started("check", str(SAMPLES / "kafka-4.x"))
    assert (checked.returncode, checked.stdout.splitlines()[-1]) == (0, "nothing is wrong")
    damaged = tmp_path / "codecs-0" / f"{0:020}.log"
    damaged.parent.mkdir()
    data = bytearray((SAMPLES / "kafka-4.x" / "codecs-0" / damaged.name).read_bytes())
    data[100] ^= 1
    damaged.write_bytes(data)
    assert started("check", str(damaged)).returncode == 1
    missing = started("sql", str(LOG), "select 1 as a")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


@pytest.mark.slow
def test_codecgen_says_what_it_needs(commands: Path, tmp_path: Path) -> None:
    done = run(commands / "codecgen", "--help", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "kafka-codecs[generate]" in done.stderr


@pytest.mark.slow
def test_names_of_the_package_say_what_they_need(commands: Path, tmp_path: Path) -> None:
    """What needs no more is there; of the rest the last line of the error says it."""
    for name in kafka_log.__all__:
        done = run(commands / "python", "-c", f"from kafka_log import {name}", cwd=tmp_path)
        if done.returncode == 0:
            continue
        last = done.stderr.rstrip().splitlines()[-1]
        assert last.startswith(f"ModuleNotFoundError: kafka_log.{name} needs ")
        assert last.endswith('pip install "kafka-codecs[arrow]"')
        assert "direct cause" not in done.stderr and "During handling" not in done.stderr


@pytest.mark.slow
def test_the_source_of_spark_says_what_it_needs(commands: Path, tmp_path: Path) -> None:
    done = run(commands / "python", "-c", "import pyspark_kafka_log", cwd=tmp_path)
    last = done.stderr.rstrip().splitlines()[-1]
    wanted = 'ModuleNotFoundError: pyspark_kafka_log needs {}: pip install "kafka-codecs[{}]"'
    assert last in (wanted.format(*one) for one in (("pyspark", "spark"), ("pyarrow", "arrow")))
    assert "During handling" not in done.stderr


@pytest.mark.slow
def test_the_codecs_and_their_schemas_are_there(commands: Path, tmp_path: Path) -> None:
    program = (
        "from kafka_codecs import RECORD_BATCH as b; from pathlib import Path; import kafka_codecs as k\n"
        "print(b.parse(b.build({'records': [], 'last_offset_delta': 4})).last_offset)\n"
        "print(sum(1 for _ in (Path(k.__file__).parent / 'schemas').rglob('*.yaml')))"
    )
    done = run(commands / "python", "-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    brought = sum(1 for _ in (ROOT / "schemas").rglob("*.yaml"))
    assert done.stdout.split() == ["4", str(brought)]


def test_each_extra_is_one_of_the_distribution() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])
    error = ModuleNotFoundError("no", name="pyarrow.parquet")
    assert missing("x", error) == 'x needs pyarrow: pip install "kafka-codecs[arrow]"'
    assert missing("x", ModuleNotFoundError("no", name="elsewhere")) is None
    assert missing("x", ImportError("no")) is None
