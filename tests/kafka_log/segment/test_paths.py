"""URLs of files, and where they are understood: in one place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_log.cli import main
from kafka_log.segment.paths import local_path, make_path
from kafka_log.segment.urls import is_url, path_of_file_url


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:/x", "/x"),
        ("file:///x", "/x"),
        ("file://localhost/x", "/x"),
        ("FILE://LOCALHOST/x/y", "/x/y"),
        ("file:///", "/"),
        ("file:/kafka%20logs/%C3%A4", "/kafka logs/ä"),
        ("file:///kafka logs", "/kafka logs"),
        ("file:///a%25b", "/a%b"),
        ("file:///orders-?/a#1", "/orders-?/a#1"),  # no query, no fragment
        ("file:///{a,b}/*", "/{a,b}/*"),
        ("file:///%ff", os.fsdecode(b"/\xff")),
        ("file:///a%0Ab", "/a\nb"),
    ],
)
def test_a_url_of_a_file_is_a_path(url: str, path: str) -> None:
    assert path_of_file_url(url, windows=False) == path
    assert not is_url(url)
    if os.name != "nt":
        assert make_path(url) == local_path(url) == Path(path)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///C:/kafka%20logs", "C:/kafka logs"),
        ("file:/c:/logs", "c:/logs"),
        ("file://localhost/C:/", "C:/"),
        ("file:///C:", "C:"),
        ("file:///logs", "/logs"),
        ("file:///CD:/logs", "/CD:/logs"),
    ],
)
def test_drives_of_windows(url: str, path: str) -> None:
    assert path_of_file_url(url, windows=True) == path


@pytest.mark.parametrize(
    "path", ["/x", "x", "C:/logs", "C:\\logs", "profile:/x", "s3://b/file:/x", "./file:x", ""]
)
def test_what_is_no_url_of_a_file(path: str) -> None:
    assert path_of_file_url(path) is None


@pytest.mark.parametrize(
    "url", ["file:", "file:x", "file:x/y", "file://x", "file://host/x", "file://C:/x", "file:C:/x"]
)
def test_urls_that_are_of_no_path(url: str) -> None:
    for understood in (path_of_file_url, make_path, local_path):
        with pytest.raises(ValueError, match="begins with file:///"):
            understood(url)


def test_what_as_uri_makes_is_the_path(tmp_path: Path) -> None:
    for name in ("a b", "ä#?%41", "[x]{y}*", os.fsdecode(b"\xff")):
        assert make_path((tmp_path / name).as_uri()) == tmp_path / name


@pytest.mark.parametrize("command", ["ls", "stat", "dump", "hexdump", "check"])
def test_a_command_says_what_is_wrong_with_a_url(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "file://host/x"]) == 2
    assert capsys.readouterr().err.startswith("kafka-log: file://host/x: it is not a URL of a path")
