"""Every file of the sample directories is read by a layout or a text, or has a reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.paths import SAMPLES
from tests.support.log_files import NOT_READ, is_read

PATHS = sorted(path for path in SAMPLES.rglob("*") if path.is_file())


def name(path: Path) -> str:
    return path.relative_to(SAMPLES).as_posix()


@pytest.mark.share(4)
@pytest.mark.parametrize("path", PATHS, ids=name)
def test_a_file_is_read(path: Path) -> None:
    assert is_read(path)


def test_every_reason_is_needed() -> None:
    assert set(NOT_READ) <= {path.name for path in PATHS}
