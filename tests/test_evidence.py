"""The counts in `Why believe it` of README and in docs/evidence.md are those of the tests that they link to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import soak
from tests.brokers.maven import KAFKA_2_8, KAFKA_4, KAFKA_4_TIERED
from tests.paths import ROOT
from tests.support.check_plants_of_files import OF_FILES
from tests.support.check_plants_of_segments import OF_SEGMENTS
from tests.support.passages import NUMBER, read_passages
from tests.support.peak_memory import SCANNED_BYTES
from tests.support.topic_messages import MESSAGES, VERSIONS
from tests.support.vector_segments import DIFFERENCES, SEGMENTS

README, EVIDENCE = ROOT / "README.md", ROOT / "docs" / "evidence.md"


def client_lines() -> int:
    """Return the lines of the client in docs/import-kafka-json.md, without empty ones."""
    page = (ROOT / "docs" / "import-kafka-json.md").read_text("utf-8")
    [code] = [c for c in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "Client" in c]
    return sum(1 for line in code.splitlines() if line.strip())


MALFORMED = [file for file in SEGMENTS if file.startswith("malformed/")]
BROKERS = (KAFKA_4, KAFKA_4_TIERED, KAFKA_2_8)
COUNTS: dict[Path, dict[str, list[str]]] = {
    README: {
        "reference segments": [f"{len(n)}" for n in (SEGMENTS, MALFORMED, DIFFERENCES)],
        "messages of internal topics": [f"{len(MESSAGES)}", f"{len(VERSIONS)}"],
        "kinds of damage": [f"{len(OF_SEGMENTS) + len(OF_FILES)}"],
        "random schemas": [f"{soak.SCHEMAS:,}", f"{soak.MUTANTS:,}"],
        "elected uncleanly": [build.version for build in BROKERS],
    },
    EVIDENCE: {
        "a client of": [f"{client_lines()}"],
        "random faults of each kind": [f"{soak.FAULTS:,}"],
        "mutants between guard pages": [f"{n:,}" for n in soak.MUTATED_BATCHES.values()],
        "tables between guard pages": [f"{n:,}" for n in soak.MADE_TABLES.values()],
        "GiB are scanned": [f"{round(SCANNED_BYTES / (1 << 30))}"],
    },
}
"""The numbers of each passage that has some, by words of it."""


def read_claims(page: Path) -> Iterator[str]:
    """Yield the passages of the part of `page` that says why to believe it."""
    part = list(read_passages(page))
    starts = [passage.line for passage in part if passage.text.startswith("## Why believe it")]
    ends = [passage.line for passage in part if passage.text.startswith("## Links")]
    first, last = (starts[0], ends[0]) if starts else (0, part[-1].line + 1)
    yield from (passage.text for passage in part if first <= passage.line < last)


def find_wrong_counts(page: Path, counts: dict[str, list[str]]) -> list[str]:
    """Return the passages of `page` whose numbers are not those of `counts`, and words that no passage has."""
    claims = list(read_claims(page))
    wrong = [words for words in counts if sum(words in text for text in claims) != 1]
    for text in claims:
        expected = [number for words in counts if words in text for number in counts[words]]
        if NUMBER.findall(text) != expected:
            wrong.append(f"{expected} are the numbers of: {text}")
    return wrong


@pytest.mark.parametrize("page", COUNTS, ids=lambda page: page.name)
def test_counts_are_those_of_the_tests(page: Path) -> None:
    assert find_wrong_counts(page, COUNTS[page]) == []


def test_a_wrong_count_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for count in COUNTS[README].values():
        for number in count:
            text = README.read_text("utf-8")
            head, _, tail = text.partition("## Why believe it")
            page.write_text(f"{head}## Why believe it{tail.replace(number, '77', 1)}", "utf-8")
            assert len(find_wrong_counts(page, COUNTS[README])) == 1, number
    page.write_text(text.replace("## Links", "- 5 more.\n\n## Links"), "utf-8")
    assert find_wrong_counts(page, COUNTS[README]) == ["[] are the numbers of: - 5 more."]


def test_readme_fits() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 150
