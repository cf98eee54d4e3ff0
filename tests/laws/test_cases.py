"""What random schemas found: one small directory each. A first line ``# open: ..`` says what is still wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.laws.judge import judge
from tests.laws.made import checked
from tests.laws.world import World

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
MANIFEST = 'language: 1\npackage: laws_codecs\ntitle: A case\nrelease_line: rel\nreleases: ["1.0", "2.0"]\n'


def world_of(path: Path) -> World:
    """The directory of a case: the lines ``# file: name`` begin another file."""
    texts = {"codecgen.yaml": MANIFEST}
    parts = re.split(r"^# file: (\S+)\n", path.read_text(encoding="utf-8"), flags=re.M)
    texts |= (
        {"case.yaml": parts[0]}
        if len(parts) == 1
        else dict(zip(parts[1::2], parts[2::2], strict=True))
    )
    return World.read(texts)


@pytest.mark.slow
@pytest.mark.share(24, ci=3)
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_keeps_the_laws(path: Path, request: pytest.FixtureRequest) -> None:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    if first.startswith("# open: "):
        request.applymarker(pytest.mark.xfail(strict=True, reason=first[8:]))
    number = re.match(r"# (?:open: )?check: (C\d+)", first)
    if number is not None:
        _, found = checked(world_of(path))
        assert f"error[{number[1]}]" in found, found
        return
    verdict = judge(world_of(path), thorough=12)
    assert not verdict.rejected, verdict.rejected
    assert verdict.finding is None, verdict.finding.text if verdict.finding else ""
