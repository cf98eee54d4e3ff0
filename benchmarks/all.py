"""All the benchmarks, one after the other, with their results in benchmarks/results.

    python -m benchmarks.all [decode threads ...]

For figures that mean something nothing else should run on the machine. It takes about an hour.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time

from benchmarks.result_page import RESULTS

NAMES = (
    "decode",
    "encode",
    "batch_headers",
    "file_to_arrow",
    "threads",
    "verbs",
    "tasks",
    "start",
    "memory",
    "no_jit",
    "payloads",
    "schema_values",
    "reference_codecs",
    "fast_paths",
    "spark",
    "spark_kafka",
    "spark_plan",
    "spark_tables",
)


def main() -> int:
    wanted = sys.argv[1:] or [n for n in NAMES if importlib.util.find_spec(f"benchmarks.{n}")]
    failed = []
    for name in wanted:
        start = time.monotonic()
        command = [sys.executable, "-m", f"benchmarks.{name}"]
        done = subprocess.run([*command, "--output", str(RESULTS / f"{name}.md")], check=False)
        print(f"\n{name}: {time.monotonic() - start:.0f} s\n", flush=True)
        failed += [name] if done.returncode else []
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
