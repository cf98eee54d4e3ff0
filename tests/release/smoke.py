"""What an installation of kafka-codecs must be able to do. The Python of the installation runs this file, without the repository.

    python -I smoke.py STAGE VERSION SAMPLES

STAGE is `plain` (no extras), `fast` or `generate` (with this extra). VERSION is the expected version. SAMPLES is a copy of the
sample logs, which the smoke test may damage; output goes to the working directory. The exit code is 0 if everything works.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

TOPIC = "codecs"
"""A topic of the samples, with batches of each codec."""


def expect(condition: object, text: str) -> None:
    """Exit with `text` if the condition is false."""
    if not condition:
        sys.exit(text)


def run(command: str, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command of this installation, and return what it prints. Exit if its exit code is not `code`."""
    path = shutil.which(command, path=str(Path(sys.executable).parent))
    expect(path, f"{command} is not installed")
    done = subprocess.run(
        [str(path), *arguments], capture_output=True, text=True, encoding="utf-8", check=False
    )
    shown = " ".join([command, *map(str, arguments)])
    expect(
        done.returncode == code,
        f"`{shown}` exits with {done.returncode}, not {code}\n{done.stdout}{done.stderr}",
    )
    return done


def count_records(samples: Path) -> int:
    """Return the number of data records of `TOPIC`, read by the reference codecs."""
    from kafka_log import SegmentReader

    return sum(
        len(batch.records)
        for path in samples.glob(f"{TOPIC}-*/*.log")
        for batch in SegmentReader(path)
    )


def check_plain(version: str, samples: Path) -> None:
    """Build and parse a batch, read a segment, and let commands say what they need."""
    from kafka_codecs import RECORD_BATCH

    data = RECORD_BATCH.build(
        {"attributes": {"compression": "zstd"}, "records": [{"offset": 7, "value": b"v"}]}
    )
    batch = RECORD_BATCH.parse(data)
    expect([(one.offset, one.value) for one in batch.records] == [(7, b"v")], f"parsed: {batch}")
    expect(count_records(samples) > 0, f"the topic {TOPIC} has no records")
    shown = run("kafka-log", "--version").stdout
    expect(shown == f"kafka-log {version}\n", f"kafka-log --version prints {shown!r}")
    segment = next(samples.glob(f"{TOPIC}-*/*.log"))
    dumped = run("kafka-log", "dump", "--batches", segment).stdout
    expect("isvalid: true" in dumped, f"kafka-log dump --batches prints {dumped!r}")
    for command in (("check", samples), ("export", samples, "--out", "exported")):
        done = run("kafka-log", *command, code=2)
        expect("kafka-codecs[arrow]" in done.stderr, f"{command[0]} prints {done.stderr!r}")
    done = run("codecgen", "--help", code=2)
    expect("kafka-codecs[generate]" in done.stderr, f"codecgen prints {done.stderr!r}")


def check_fast(version: str, samples: Path) -> None:
    """Check and export the samples, and find damage in a copy."""
    for module in ("isal", "numba"):
        expect(importlib.util.find_spec(module), f"{module} is not installed")
    import pyarrow.parquet

    checked = run("kafka-log", "check", samples).stdout
    expect(checked == "nothing is wrong\n", f"kafka-log check prints {checked!r}")
    run("kafka-log", "export", samples, "--topic", TOPIC, "--out", "exported")
    files = list(Path("exported").rglob("*.parquet"))
    rows = sum(pyarrow.parquet.read_metadata(path).num_rows for path in files)
    expected = count_records(samples)
    expect(rows == expected, f"{rows} rows are exported, not {expected}")
    damaged = Path("damaged") / f"{TOPIC}-0"
    shutil.copytree(samples / damaged.name, damaged)
    segment = next(damaged.glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    segment.write_bytes(data)
    found = run("kafka-log", "check", damaged, code=1).stdout
    expect("error: " in found, f"kafka-log check prints {found!r} of a damaged segment")


def check_generate(version: str, samples: Path) -> None:
    """Generate codecs from the installed schemas, compare them with the installed ones, and use them."""
    import kafka_codecs

    installed = Path(kafka_codecs.__file__).parent
    shown = run("codecgen", "--version").stdout
    expect(shown == f"codecgen {version}\n", f"codecgen --version prints {shown!r}")
    run("codecgen", "check", installed / "schemas")
    run("codecgen", "generate", installed / "schemas", "--out", "out")
    made, brought = _python_files(Path("out/kafka_codecs")), _python_files(installed)
    expect(made and made == brought, "generated codecs are not the installed ones")
    program = (
        "import sys; sys.path.insert(0, 'out'); import kafka_codecs as k; b = k.RECORD_BATCH;"
        "print(b.parse(b.build({'records': [], 'last_offset_delta': 4})).last_offset, k.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False
    )
    expect(done.returncode == 0, done.stderr)
    last_offset, file = done.stdout.strip().split(maxsplit=1)
    expect(last_offset == "4", done.stdout)
    expect(Path(file).resolve().is_relative_to(Path("out").resolve()), f"imported: {file}")


def _python_files(package: Path) -> dict[str, str]:
    return {
        path.relative_to(package).as_posix(): path.read_text("utf-8")
        for pattern in ("*.py", "*.pyi")
        for path in package.rglob(pattern)
    }


STAGES = {"plain": check_plain, "fast": check_fast, "generate": check_generate}


if __name__ == "__main__":
    stage, expected_version, directory = sys.argv[1:]
    STAGES[stage](expected_version, Path(directory))
