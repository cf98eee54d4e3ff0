"""Python programs whose working directory was removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import SAMPLES

LOGS = SAMPLES / "kafka-4.x"
READ = f"kafka_log.read_table({str(LOGS / 'transactions-0')!r}, engine=engine).num_rows > 0"
PROGRAMS = {
    "arrow": f"engine = 'arrow'; assert {READ}",
    "construct": f"engine = 'construct'; assert {READ}",
    "check": f"assert kafka_log.LogDirectory({str(LOGS)!r}).check(deep=True).num_rows == 0",
    "write": "path = '{out}/00000000000000000000.log'; kafka_log.write_segment(path, pyarrow.table({{'offset': [7], 'value': [b'v']}})); "
    "assert kafka_log.read_table(path)['value'].to_pylist() == [b'v']",
}
RUN = """
import os, sys
os.rmdir({gone!r})
import kafka_log, pyarrow
"""


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_absolute_paths(tmp_path: Path, name: str) -> None:
    pytest.importorskip("numba")
    # numba imports coverage if it is there, and coverage asks for the working directory.
    (tmp_path / "coverage.py").write_text("import os; os.getcwd()")
    gone = tmp_path / "gone"
    gone.mkdir()
    paths = [str(tmp_path), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(gone=str(gone)) + PROGRAMS[name].format(out=tmp_path)],
        cwd=gone,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
