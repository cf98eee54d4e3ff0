"""Compare a wheel and an sdist with the files that they are built from."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

Members = Mapping[str, bytes]
"""Files by name, with `/` and without the top directory of an sdist."""

CACHES = frozenset({"__pycache__", ".venv", ".git", "build", "dist"})
"""Directories that no archive may have."""
MACHINE_PATH = re.compile(rb"(?:/(?:home|Users|root)/|[A-Za-z]:\\Users\\)[\w.-]+")
"""A path below somebody's home directory."""
SHOWN = 10
"""Maximum number of names in one line about a problem."""


def read_wheel(path: Path) -> dict[str, bytes]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(path) as archive:
        return {one.filename: archive.read(one) for one in archive.infolist() if not one.is_dir()}


def read_sdist(path: Path) -> dict[str, bytes]:
    """Return the files of an sdist, without the name of its top directory.

    Raises:
        ValueError: if a member is not a regular file below the top directory.
    """
    top = path.name.removesuffix(".tar.gz")
    found: dict[str, bytes] = {}
    with tarfile.open(path) as archive:
        for one in archive:
            name = PurePosixPath(one.name)
            if one.isdir():
                continue
            content = archive.extractfile(one) if one.isfile() else None
            if content is None or name.parts[0] != top or ".." in name.parts:
                raise ValueError(f"{one.name} is not a regular file below {top}")
            found[PurePosixPath(*name.parts[1:]).as_posix()] = content.read()
    return found


def wheel_names(files: Iterable[str], project: Mapping[str, Any]) -> dict[str, str]:
    """Return the names that files of the repository have in the wheel, by their names in the repository.

    Args:
        files: Names of all files of the repository.
        project: Content of pyproject.toml. Its packages and included directories go into the wheel.
    """
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    roots = {package: PurePosixPath(package).name for package in wheel["packages"]}
    roots |= wheel["force-include"]
    return {
        name: f"{inside}{name.removeprefix(root)}"
        for name in files
        for root, inside in roots.items()
        if name.startswith(f"{root}/")
    }


def find_wheel_problems(
    members: Members, files: Members, project: Mapping[str, Any], places: Sequence[str] = ()
) -> list[str]:
    """Return what is wrong with the files of a wheel; an empty list if nothing is.

    Args:
        members: Files of the wheel.
        files: Files of the repository.
        project: Content of pyproject.toml.
        places: Paths of this machine, which no file may contain.
    """
    metadata = [name for name in members if name.endswith(".dist-info/METADATA")]
    if len(metadata) != 1:
        return [f"{len(metadata)} files are called METADATA, not one"]
    info = metadata[0].removesuffix("METADATA")
    inside = {name: data for name, data in members.items() if not name.startswith(info)}
    expected = {new: files[old] for old, new in wheel_names(files, project).items()}
    problems = list(_differences(inside, expected))
    for package in {PurePosixPath(name).parts[0] for name in expected}:
        if f"{package}/py.typed" not in inside:
            problems.append(f"{package}/py.typed is missing: type checkers ignore the package")
    for license_file in project["project"]["license-files"]:
        if members.get(f"{info}licenses/{license_file}") != files.get(license_file, b""):
            problems.append(f"{license_file} is missing, or another one than in the repository")
    if not any(name.endswith(".yaml") for name in inside):
        problems.append("there are no schemas")
    tops = {PurePosixPath(name).parts[0] for name in inside}
    if tests := sorted(tops & {"tests", "benchmarks", "samples", "demo", "docs"}):
        problems.append(f"it would install {', '.join(tests)}")
    return [*problems, *_find_unwanted(members, places)]


def find_sdist_problems(members: Members, files: Members, places: Sequence[str] = ()) -> list[str]:
    """Return what is wrong with the files of an sdist; an empty list if it has those of the repository and PKG-INFO.

    Args:
        members: Files of the sdist.
        files: Files of the repository.
        places: Paths of this machine, which no file may contain.
    """
    inside = dict(members)
    problems = [] if inside.pop("PKG-INFO", None) else ["PKG-INFO is missing"]
    return [*problems, *_differences(inside, files), *_find_unwanted(members, places)]


def find_relative_links(text: str) -> list[str]:
    """Return the links and pictures of a Markdown text that only work beside the file."""
    found = re.findall(r'\]\(([^)\s]+)(?: "[^"]*")?\)|\bsrc="([^"]+)"', text)
    return [link for link in map("".join, found) if not re.match(r"[a-z]+:|#", link)]


def _differences(members: Members, files: Members) -> Iterator[str]:
    missing = [name for name in files if name not in members]
    added = [name for name in members if name not in files]
    changed = [name for name in files if name in members and members[name] != files[name]]
    for names, text in (
        (missing, "missing"),
        (added, "not in the repository"),
        (changed, "not as in the repository"),
    ):
        if names:
            yield f"{text}: {_list_names(names)}"


def _find_unwanted(members: Members, places: Sequence[str]) -> Iterator[str]:
    caches = [
        name
        for name in members
        if CACHES & set(PurePosixPath(name).parts) or name.endswith((".pyc", ".nbc", ".nbi"))
    ]
    if caches:
        yield f"caches: {_list_names(caches)}"
    known = [place.encode() for place in places]
    for name, data in members.items():
        found = MACHINE_PATH.search(data)
        text = found[0] if found else next((place for place in known if place in data), None)
        if text is not None:
            yield f"{name} contains a path of a machine: {text.decode(errors='replace')}"


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(sorted(names)[:SHOWN]) + more
