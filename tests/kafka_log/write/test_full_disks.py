"""A file system that is full, at each of its bytes and files: what is told, what is left, and that the same command goes on when there is room."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from tests.support.limited_disks import disk, enlarge
from tests.support.output_commands import COMMANDS
from tests.support.write_errors import (
    content,
    judge,
    run,
    source,
)

__all__ = ["source"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts a tmpfs"),
    pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.share(ci=5)
@pytest.mark.parametrize("limit", ["size={}k", "nr_inodes={}"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_with_little_room(
    name: str, limit: str, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(name, source, tmp_path / "whole") == 0
    whole = content(tmp_path / "whole")
    capsys.readouterr()
    failed, room, step = 0, 4 if "size" in limit else 2, 12 if "size" in limit else 1
    while True:
        with disk(tmp_path / f"disk-{room}", limit.format(room)) as place:
            out = place / "out"
            code = run(name, source, out)
            said = capsys.readouterr().err
            if code == 0:
                break
            assert code == 2
            judge(said, out, errno.ENOSPC)
            enlarge(place)
            assert run(name, source, out) == 0
            assert content(out).keys() == whole.keys()
            assert all(content(out)[k] == whole[k] for k in whole if not k.startswith("kafka-log-"))
            capsys.readouterr()
        failed += 1
        room += step
    assert failed
