"""The command on a machine that only reads: PyYAML and Jinja2 belong to an extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("module", ["yaml", "jinja2"])
def test_the_command_says_what_to_install(module: str, tmp_path: Path) -> None:
    argv = ["codecgen", "generate", "schemas", "--out", str(tmp_path / "out")]
    code = (
        f"import sys; sys.modules['{module}'] = None; sys.argv = {argv!r}\n"
        "from codecgen.__main__ import main; sys.exit(main())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr == f'codecgen needs {module}: pip install "kafka-codecs[generate]"\n'
    assert not (tmp_path / "out").exists()
