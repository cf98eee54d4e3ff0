"""Reports that are killed, or whose disk fails: a page with its final name is whole, and an older page stays until then."""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_log.cli import main
from tests.support.batches import batch
from tests.support.failing_calls import Fault, failing_close, failing_fsync
from tests.support.killed_processes import KILLED, fork, killed_at
from tests.support.limited_disks import disk, enlarge
from tests.support.segment_files import put

OLD = "old page"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("source") / "logs"
    for partition in range(2):
        put(root / f"t-{partition}", (0, batch(0)), (3, batch(3)))
    return root


def report(source: Path, out: Path, title: str = "new page") -> int:
    words = ["report", str(source), "--now", "2026-11-22", "--title", title, "--overwrite"]
    return main([*words, "--out", str(out)])


def title_of(page: Path) -> str | None:
    """Return which page a file is; None without a file. Expect that the page is whole."""
    if not page.exists():
        return None
    data = page.read_bytes()
    assert data.lower().startswith(b"<!doctype html>") and data.endswith(b"</html>\n")
    return OLD if OLD.encode() in data else "new page"


@pytest.fixture(params=["no page before", "page before"])
def page(request: pytest.FixtureRequest, source: Path, tmp_path: Path) -> Path:
    """The path of a page, in a directory of its own."""
    out = tmp_path / "pages" / "page.html"
    out.parent.mkdir()
    if request.param == "page before":
        assert report(source, out, OLD) == 0
    return out


@contextmanager
def limited_files(size: int) -> Iterator[None]:
    """No file may have more bytes than this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def judge(source: Path, page: Path, before: str | None, said: str, code: int) -> None:
    """Expect an error that names the page, the old page as it was, and that the same command then writes the new one."""
    assert f"[Errno {code}]" in said and f"'{page}'" in said and "Traceback" not in said
    assert title_of(page) == before
    assert [p.name for p in page.parent.iterdir()] == [page.name] * (before is not None)
    assert report(source, page) == 0
    assert title_of(page) == "new page"


@pytest.mark.parametrize("failing", [failing_fsync, failing_close])
def test_a_call_that_fails(
    failing: Fault, source: Path, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = title_of(page)
    with failing(1) as made:
        assert report(source, page) == 2
    assert made.left == 0
    judge(source, page, before, capsys.readouterr().err, errno.EIO)


@pytest.mark.parametrize("size", [1_000, 20_000])
def test_a_page_that_is_too_large(
    size: int, source: Path, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = title_of(page)
    with limited_files(size):
        assert report(source, page) == 2
    judge(source, page, before, capsys.readouterr().err, errno.EFBIG)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_report_that_is_killed(source: Path, page: Path) -> None:
    before, nth = title_of(page), 1
    old = page.read_bytes() if before else b""
    while True:
        code = killed_at(nth, page.parent, lambda: report(source, page))
        if code != KILLED:
            assert code == 0
            break
        assert title_of(page) in (before, "new page")
        assert fork(lambda: report(source, page)) == 0
        assert title_of(page) == "new page"
        assert [p.name for p in page.parent.iterdir()] == [page.name]
        page.write_bytes(old) if before else page.unlink()
        nth += 1
    assert nth > 3


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts a tmpfs")
@pytest.mark.parametrize("limit", ["size={}k", "nr_inodes={}"])
def test_a_disk_with_little_room(
    limit: str, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed, room, step = 0, 4 if "size" in limit else 2, 12 if "size" in limit else 1
    while True:
        with disk(tmp_path / f"disk-{room}", limit.format(room)) as place:
            out = place / "page.html"
            code = report(source, out)
            said = capsys.readouterr().err
            if code == 0:
                assert title_of(out) == "new page"
                break
            assert (code, list(place.iterdir())) == (2, [])
            assert f"[Errno {errno.ENOSPC}]" in said and f"'{place}" in said
            enlarge(place)
            assert report(source, out) == 0
        failed += 1
        room += step
    assert failed
