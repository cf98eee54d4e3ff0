"""Build what would be published, and try it: ``python -m tests.release``.

The sdist and the wheel are built from a clean checkout of HEAD, compared with the files of the repository, and installed with each
Python that the classifiers of pyproject.toml name. Only if every step is good do the archives go into dist/. Nothing is uploaded,
and no tag is set. docs/release.md describes the steps.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from email.parser import BytesParser
from functools import partial
from pathlib import Path
from typing import Any

from codecgen.runtime.version import RELEASE
from tests.paths import ROOT
from tests.release.archives import (
    find_relative_links,
    find_sdist_problems,
    find_wheel_problems,
    read_sdist,
    read_wheel,
)
from tests.release.checklist import NotRun, Result, State, StepError, run_step, summarize
from tests.release.pythons import (
    check_command,
    find_pythons,
    install,
    make_environment,
    named_versions,
    run_command,
)

OLDEST = (3, 11)
TOOLS = ("build", "twine")
SMOKE = Path(__file__).with_name("smoke.py")
LOGS = Path("samples") / "kafka-4.x"
HEADING = re.compile(r"^## (\S+) \((.+)\)$", re.MULTILINE)
"""A heading of CHANGELOG.md: version, and date or `unreleased`."""
NO_PYTHON = "this machine has no such Python (looked in ~/.pyenv/versions and PATH)"
FROM_A_COPY = re.compile(r'pip install (?:\.(?=[`\s])|"\.\[)')
"""A command that installs from a copy of the repository."""
BY_HAND = """\
By hand, on the commit above:
  - bash .ci/run and make soak pass
  - git tag -s v{version} && git push origin v{version}
  - python -m twine upload {archives}
  - in a new environment: pip install "kafka-codecs[fast]=={version}" && kafka-log --version
  - afterwards: the next version in pyproject.toml and RELEASE, make regen, a new section of CHANGELOG.md"""


def read_project(root: Path) -> dict[str, Any]:
    """Return the content of pyproject.toml in a directory."""
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def read_repository(root: Path) -> dict[str, bytes]:
    """Return the files of a git work tree, without ignored ones, by their names.

    Raises:
        StepError: if git fails.
    """
    options = ("--cached", "--others", "--exclude-standard", "-z")
    names = check_command("git", "ls-files", *options, cwd=root).split("\0")
    return {name: (root / name).read_bytes() for name in names if (root / name).is_file()}


def find_version_problems(root: Path, release: str) -> list[str]:
    """Return where pyproject.toml, RELEASE and CHANGELOG.md name different versions; an empty list if nowhere.

    Args:
        root: Directory of the repository.
        release: The version that the commands print.
    """
    version = read_project(root)["project"]["version"]
    heading = HEADING.search((root / "CHANGELOG.md").read_text("utf-8"))
    problems = []
    if release != version:
        problems.append(f"pyproject.toml has version {version}, RELEASE is {release}")
    if heading is None or heading[1] != version:
        shown = "no version" if heading is None else heading[1]
        problems.append(f"pyproject.toml has version {version}, CHANGELOG.md begins with {shown}")
    return problems


def find_open_entries(root: Path) -> list[str]:
    """Return what a person has to fill in before a release; an empty list if nothing.

    Args:
        root: Directory of the repository.
    """
    project = read_project(root)
    found = []
    if not project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]:
        found.append(
            "pyproject.toml: `repository` is empty, so PyPI shows no links, and those of README.md do not work there"
        )
    authors = project["project"].get("authors", [])
    if not any("email" in author for author in authors):
        found.append(
            "pyproject.toml: `authors` has no address, which SECURITY.md tells people to write to"
        )
    heading = HEADING.search((root / "CHANGELOG.md").read_text("utf-8"))
    if heading is None or not _is_date(heading[2]):
        found.append("CHANGELOG.md: the first heading has no date")
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    local = [page for page in pages if FROM_A_COPY.search(page.read_text("utf-8"))]
    if local:
        names = ", ".join(page.relative_to(root).as_posix() for page in local)
        found.append(f"they install from a copy of the repository, not from PyPI: {names}")
    return found


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def check_out(root: Path, folder: Path) -> list[str]:
    """Clone HEAD of a repository into a new directory, and return what the clone lacks.

    Raises:
        NotRun: if git is not installed, or the directory is not a repository.
    """
    try:
        status = subprocess.run(
            ["git", "-C", root, "status", "--porcelain"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        raise NotRun(f"{root} is not a git repository, or git is not installed") from None
    check_command("git", "clone", "--quiet", "--no-hardlinks", root, folder, cwd=root)
    changed = status.splitlines()
    return [f"{len(changed)} changes are not committed, first: {changed[0]}"] if changed else []


def find_tag(root: Path, version: str) -> list[str]:
    """Return a line if the version has a tag already."""
    tag = check_command("git", "tag", "--list", f"v{version}", cwd=root).strip()
    return [f"the tag {tag} exists: this version was released before"] if tag else []


class Archives:
    """The sdist and the wheel of a checkout, and the environments in which they are tried.

    Attributes:
        checkout: A clean checkout.
        scratch: Directory for everything that is made.
        project: Content of pyproject.toml.
        version: The version in it.
        commands: Commands of the environment with the tools that build.
        sdist: The sdist, None until it is built.
        wheel: The wheel, None until it is built.
    """

    def __init__(self, checkout: Path, scratch: Path) -> None:
        self.checkout = checkout
        self.scratch = scratch
        self.project = read_project(checkout)
        self.version: str = self.project["project"]["version"]
        self.commands: Path | None = None
        self.sdist: Path | None = None
        self.wheel: Path | None = None

    def build(self) -> list[str]:
        """Build the sdist, and from it the wheel.

        Raises:
            NotRun: if the tools that build cannot be installed.
            StepError: if the build fails.
        """
        commands = make_environment(Path(sys.executable), self.scratch / "tools")
        requirements = self.project["build-system"]["requires"]
        try:
            install(commands, *TOOLS, *requirements, cwd=self.scratch)
        except StepError as error:
            raise NotRun(f"{', '.join(TOOLS)} cannot be installed: {error}") from None
        self.commands = commands
        out = self.scratch / "dist"
        check_command(
            *(commands / "python", "-m", "build", "--no-isolation", "--outdir", out, self.checkout),
            cwd=self.scratch,
        )
        names = sorted(path.name for path in out.iterdir())
        stem = f"kafka_codecs-{self.version}"
        if names != [f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"]:
            return [f"the build wrote {', '.join(names)}"]
        self.wheel, self.sdist = (out / name for name in names)
        return []

    def find_wheel_problems(self) -> list[str]:
        """Compare the wheel with the checkout."""
        members = read_wheel(_built(self.wheel))
        return find_wheel_problems(members, self._files(), self.project, self._places())

    def find_sdist_problems(self) -> list[str]:
        """Compare the sdist with the checkout."""
        try:
            members = read_sdist(_built(self.sdist))
        except ValueError as error:
            return [str(error)]
        return find_sdist_problems(members, self._files(), self._places())

    def find_description_problems(self) -> list[str]:
        """Return what PyPI cannot show of the page of the project."""
        wheel, sdist = _built(self.wheel), _built(self.sdist)
        assert self.commands is not None
        check_command(
            *(self.commands / "python", "-m", "twine", "check", "--strict", wheel, sdist),
            cwd=self.scratch,
        )
        metadata = read_wheel(wheel)[f"kafka_codecs-{self.version}.dist-info/METADATA"]
        description = BytesParser().parsebytes(metadata).get_payload(decode=False)
        links = find_relative_links(str(description))
        return (
            [f"{len(links)} links of README.md do not work on PyPI, first: {links[0]}"]
            if links
            else []
        )

    def try_wheel(self, python: Path) -> list[str]:
        """Install the wheel without extras, then with `fast`, then with `generate`, and try each.

        Raises:
            NotRun: if there is no wheel.
            StepError: if a step fails.
        """
        wheel = _built(self.wheel)
        folder, commands = self._environment(python, "wheel")
        for stage in ("plain", "fast", "generate"):
            install(commands, f"{wheel}[{stage}]" if stage != "plain" else str(wheel), cwd=folder)
            self._smoke(commands, stage, folder)
        return []

    def try_sdist(self, python: Path) -> list[str]:
        """Install the sdist with `fast` and `generate`, try it, and compare its files with those of the wheel.

        Raises:
            NotRun: if there is no sdist.
            StepError: if a step fails.
        """
        sdist, wheel = _built(self.sdist), _built(self.wheel)
        folder, commands = self._environment(python, "sdist")
        install(commands, f"{sdist}[fast,generate]", cwd=folder)
        program = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = Path(check_command(commands / "python", "-I", "-c", program, cwd=folder).strip())
        for name, data in read_wheel(wheel).items():
            if ".dist-info/" not in name and (site / name).read_bytes() != data:
                return [f"{name} is not as in the wheel"]
        for stage in ("fast", "generate"):
            self._smoke(commands, stage, folder)
        return []

    def _environment(self, python: Path, kind: str) -> tuple[Path, Path]:
        folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=self.scratch))
        return folder, make_environment(python, folder / "venv")

    def _smoke(self, commands: Path, stage: str, folder: Path) -> None:
        work = folder / stage
        work.mkdir()
        shutil.copytree(self.checkout / LOGS, work / "samples")
        shutil.copy(SMOKE, work / "smoke.py")
        python = commands / "python"
        done = run_command(
            *(python, "-I", work / "smoke.py", stage, self.version, work / "samples"), cwd=work
        )
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines()
            raise StepError(f"stage {stage} fails:", *lines[-8:])

    def _files(self) -> dict[str, bytes]:
        return read_repository(self.checkout)

    def _places(self) -> list[str]:
        return [str(ROOT), str(self.scratch)]


def _built(archive: Path | None) -> Path:
    if archive is None:
        raise NotRun("nothing was built")
    return archive


def run_checklist(root: Path, scratch: Path, wanted: Sequence[str], out: Path) -> str:
    """Run all steps, print their results, and return the summary.

    Args:
        root: Directory of the repository.
        scratch: Empty directory.
        wanted: Versions of Python to try, such as `3.12`; others are reported as not run. Empty: all.
        out: Directory that gets the archives if everything is good.
    """
    results: list[Result] = []

    def step(name: str, check: Callable[[], Sequence[str]], problem: State = State.FAILED) -> None:
        results.append(run_step(name, check, problem))

    checkout = scratch / "checkout"
    step("clean checkout of HEAD", lambda: check_out(root, checkout), State.OPEN)
    if not checkout.is_dir():
        return summarize(results)
    archives = Archives(checkout, scratch)
    version = archives.version
    step("versions agree", lambda: find_version_problems(checkout, RELEASE))
    step("the version is new", lambda: find_tag(root, version))
    step("everything is filled in", lambda: find_open_entries(checkout), State.OPEN)
    step("build", archives.build)
    step("files of the wheel", archives.find_wheel_problems)
    step("files of the sdist", archives.find_sdist_problems)
    step("the page on PyPI", archives.find_description_problems, State.OPEN)
    pythons = find_pythons(OLDEST, scratch)
    named = named_versions(archives.project)
    for key in sorted({*named, *pythons}):
        name = ".".join(map(str, key))
        if wanted and name not in wanted:
            pythons.pop(key, None)
        if key in named or key in pythons:
            missing = "left out by --python" if wanted and name not in wanted else NO_PYTHON
            for kind, check in (("wheel", archives.try_wheel), ("sdist", archives.try_sdist)):
                step(f"Python {name}, {kind}", partial(_try, check, pythons.get(key), missing))
        if key in pythons and key not in named:
            print(f"         no classifier names Python {name}: add it if both are good")
    summary = summarize(results)
    print(f"\n{summary}")
    if summary == "complete":
        commit = check_command("git", "rev-parse", "HEAD", cwd=checkout).strip()
        print(f"version {version}, commit {commit}")
        copied = [_keep(path, out) for path in (archives.sdist, archives.wheel) if path]
        print(BY_HAND.format(version=version, archives=" ".join(map(str, copied))))
    return summary


def _try(
    check: Callable[[Path], Sequence[str]], python: Path | None, missing: str
) -> Sequence[str]:
    if python is None:
        raise NotRun(missing)
    return check(python)


def _keep(archive: Path, out: Path) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    copied = Path(shutil.copy(archive, out))
    print(f"{hashlib.sha256(copied.read_bytes()).hexdigest()}  {copied}")
    return copied


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checklist. Return 0 if it is complete, 1 if a step failed, is open or did not run."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description=__doc__)
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="3.X",
        help="try this version of Python only; may be repeated. Others are not run, so the result is not complete",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "dist",
        metavar="DIR",
        help="directory for the archives if everything is good (default: dist)",
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="kafka-codecs-release-") as scratch:
        summary = run_checklist(ROOT, Path(scratch), options.python, options.out)
    return 0 if summary == "complete" else 1


if __name__ == "__main__":
    sys.exit(main())
