"""Files and directories are written to the disk where their file system can do so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kafka_log.write.output_files import sync


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="has no /proc, whose directories have no fsync")
def test_a_directory_without_fsync_is_left_alone() -> None:
    """A commit could never end there. A file that is not on the disk is an error."""
    sync(Path("/proc"))
    with pytest.raises(OSError, match="/proc/version"):
        sync(Path("/proc/version"))
