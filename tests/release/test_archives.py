"""A wheel and an sdist are compared with the repository; whatever is missing, added or of this machine is named."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT
from tests.release.__main__ import read_project
from tests.release.archives import (
    find_relative_links,
    find_sdist_problems,
    find_wheel_problems,
    read_sdist,
    wheel_names,
)

PROJECT = read_project(ROOT)
INFO = "kafka_codecs-0.1.0.dist-info"
FILES = {
    "LICENSE": b"the license",
    "README.md": b"text",
    "generator/codecgen/py.typed": b"",
    "generator/codecgen/cli.py": b"pass",
    "generated/docs/page.md": b"page",
    "generated/kafka_codecs/py.typed": b"",
    "pipeline/kafka_log/py.typed": b"",
    "pipeline/pyspark_kafka_log/py.typed": b"",
    "schemas/records/record.yaml": b"layout: record",
    "tests/test_x.py": b"pass",
}


def wheel() -> dict[str, bytes]:
    """Return the files of a wheel that is as it should be."""
    inside = {new: FILES[old] for old, new in wheel_names(FILES, PROJECT).items()}
    return inside | {f"{INFO}/METADATA": b"", f"{INFO}/licenses/LICENSE": FILES["LICENSE"]}


def test_a_good_wheel() -> None:
    assert "kafka_codecs/schemas/records/record.yaml" in wheel()
    assert not {"tests/test_x.py", "docs/page.md", "README.md"} & wheel().keys()
    assert find_wheel_problems(wheel(), FILES, PROJECT, ["/a/machine"]) == []


MACHINE = b"made in /ho" + b"me/someone"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"codecgen/cli.py": None}, "missing: codecgen/cli.py"),
        ({"codecgen/cli.py": b"x"}, "not as in the repository: codecgen/cli.py"),
        ({"codecgen/more.py": b""}, "not in the repository: codecgen/more.py"),
        ({"kafka_log/py.typed": None}, "kafka_log/py.typed is missing"),
        ({"kafka_codecs/schemas/records/record.yaml": None}, "there are no schemas"),
        ({f"{INFO}/licenses/LICENSE": None}, "LICENSE is missing"),
        ({f"{INFO}/licenses/LICENSE": b"another"}, "LICENSE is missing, or another one"),
        ({"tests/test_x.py": b"pass"}, "it would install tests"),
        ({"codecgen/__pycache__/cli.cpython-311.pyc": b""}, "caches: codecgen/__pycache__"),
        ({f"{INFO}/METADATA": MACHINE}, "contains a path of a machine: /ho" + "me/someone"),
        ({f"{INFO}/METADATA": b"see /a/machine/x"}, "contains a path of a machine: /a/machine"),
        ({f"{INFO}/METADATA": None}, "0 files are called METADATA"),
    ],
)
def test_what_is_wrong_with_a_wheel(change: dict[str, Any], problem: str) -> None:
    members = {name: data for name, data in (wheel() | change).items() if data is not None}
    found = find_wheel_problems(members, FILES, PROJECT, ["/a/machine"])
    assert any(problem in line for line in found), found


def test_a_marker_that_the_repository_lacks() -> None:
    files = {name: data for name, data in FILES.items() if name != "pipeline/kafka_log/py.typed"}
    files["pipeline/kafka_log/x.py"] = b""
    members = wheel() | {"kafka_log/x.py": b""}
    del members["kafka_log/py.typed"]
    (problem,) = find_wheel_problems(members, files, PROJECT)
    assert problem.startswith("kafka_log/py.typed is missing")


def test_sdists() -> None:
    good = FILES | {"PKG-INFO": b"Name: x"}
    assert find_sdist_problems(good, FILES) == []
    assert find_sdist_problems(FILES, FILES) == ["PKG-INFO is missing"]
    less = {name: data for name, data in good.items() if name != "tests/test_x.py"}
    assert find_sdist_problems(less, FILES) == ["missing: tests/test_x.py"]
    more = good | {"tests/__pycache__/x.pyc": MACHINE}
    assert [line.partition(":")[0] for line in find_sdist_problems(more, FILES)] == [
        "not in the repository",
        "caches",
        "tests/__pycache__/x.pyc contains a path of a machine",
    ]


@pytest.mark.parametrize("name", ["x-1/../../y", "y-1/a", "/x-1/a"])
def test_members_outside_of_an_sdist(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x-1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(ValueError, match="is not a regular file below x-1"):
        read_sdist(path)


def test_links_that_only_work_beside_a_page() -> None:
    text = '[a](docs/a.md#b) [c](#c) [d](https://d.example/x) <img src="docs/e.svg"> ![f](f.png)'
    assert find_relative_links(text) == ["docs/a.md#b", "docs/e.svg", "f.png"]
