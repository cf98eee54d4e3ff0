"""The catalog of findings, and the command that explains them."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest

from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.inspect import check
from kafka_log.inspect.check.catalog import (
    CATALOG,
    COPY,
    COPY_LOST,
    FOLLOW_FIRST,
    SEVERITIES,
    TRUNCATE_AT_START,
    compare_epochs,
    copy_or_skip,
    keep_or_skip,
    skip_batch,
    without_replicas,
)
from kafka_log.inspect.check.finding import make_finding
from kafka_log.inspect.check.log_end import KILLED
from tests.paths import ROOT, SAMPLES
from tests.support.check_plants import flip

SOURCES = sorted(Path(check.__file__).parent.glob("*.py"))


def test_every_kind_has_texts() -> None:
    for kind in CATALOG.values():
        assert kind.severities and set(kind.severities) <= set(SEVERITIES)
        assert kind.title[0].isupper() or kind.title.startswith((".", "leader", "meta", "part"))
        assert not kind.title.endswith(".")
        assert kind.explanation.endswith(".") and kind.remedy.endswith(".")


def test_texts_say_when_a_finding_has_another_severity() -> None:
    for kind in CATALOG.values():
        for severity in kind.severities[1:]:
            assert re.search(rf"\ban? {severity}\b", kind.explanation, re.I), (kind.id, severity)


def test_remedies_write_what_is_left_by_salvage() -> None:
    """`dump --policy salvage` prints it, which restores nothing."""
    remedies = [kind.remedy for kind in CATALOG.values()]
    for remedy in (*remedies, keep_or_skip(), copy_or_skip(), skip_batch()):
        assert "dump --policy" not in remedy


def written_remedies() -> list[str]:
    """Remedies of the catalog, and texts in the checks that speak of other replicas, with ``N`` in
    place of what a finding puts in."""
    found = [kind.remedy for kind in CATALOG.values()]
    found += [keep_or_skip(), copy_or_skip(), compare_epochs(), KILLED, COPY, COPY_LOST]
    found += [
        TRUNCATE_AT_START,
        FOLLOW_FIRST,
        f"Otherwise: {FOLLOW_FIRST[0].lower()}{FOLLOW_FIRST[1:]}",
    ]
    for path in SOURCES:
        if path.name in ("catalog.py", "cluster.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (v.value if isinstance(v, ast.Constant) else "write N" for v in node.values)
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    is_step = re.compile(r"(other|another) replicas?\b.*[.]\Z", re.S)
    steps = [text for text in found if is_step.search(text) and text[0].isupper()]
    return [text for text in steps if not text.startswith(DESCRIPTIONS)]


DESCRIPTIONS = ("Yield ", "Return ", "A gap ", "Finds ", "Correct the file", "Checks ", "Check ")
"""Begins of docstrings, and of the remedy of a file that is of no partition."""


def test_without_replicas_a_remedy_needs_none() -> None:
    remedies = written_remedies()
    assert len(remedies) > 30
    for remedy in remedies:
        said = without_replicas(remedy)
        first, _, rest = said.partition(". ")
        assert first == "By __cluster_metadata, the partition has no other replica"
        assert not re.search("replica|leads|the leader", rest), said
        assert rest[0].isupper() or rest.startswith("kafka-log")
        assert not re.search(r"[.] (?!kafka-log)[a-z]", rest), said
    assert without_replicas("Stop the broker.") == "Stop the broker."


def test_without_replicas_a_torn_batch_is_rescued() -> None:
    for remedy in (CATALOG["torn_tail"].remedy, TRUNCATE_AT_START, FOLLOW_FIRST):
        assert "kafka-log salvage" in without_replicas(remedy)


def test_the_metadata_says_whether_there_is_another_replica(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    shutil.copytree(SAMPLES / "kafka-4.x" / "codecs-1", root / "codecs-1")
    flip(root / "codecs-1" / f"{0:020d}.log", 300)
    remedies = LogDirectory(root).check().column("remedy").to_pylist()
    assert any("If another replica then leads" in remedy for remedy in remedies)
    metadata = "__cluster_metadata-0"
    shutil.copytree(SAMPLES / "kafka-4.x" / metadata, root / metadata)
    remedies = LogDirectory(root, topics="codecs").check().column("remedy").to_pylist()
    assert any("the partition has no other replica" in remedy for remedy in remedies)
    assert not any("another replica" in remedy for remedy in remedies)


def test_the_checks_use_every_kind() -> None:
    texts: set[str] = set()
    for path in SOURCES:
        if path.name != "catalog.py":
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            texts |= {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}  # fmt: skip
    ends = {text for text in texts if text.startswith("_")}
    built = {f"{name}{end}" for name in ("index", "timeindex") for end in ends}
    assert set(CATALOG) <= texts | built


def test_the_page_has_every_kind() -> None:
    page = (ROOT / "docs" / "tool" / "check.md").read_text(encoding="utf-8")
    assert set(CATALOG) <= set(re.findall(r"`([a-z]+_[a-z_]+)`", page))


def test_a_finding_has_the_severity_and_remedy_of_its_kind() -> None:
    kind = CATALOG["batch_checksum"]
    found = make_finding("batch_checksum", Path("x"), "It is damaged.")
    assert (found.severity, found.remedy) == (kind.severities[0], kind.remedy)
    with pytest.raises(ValueError, match="cannot have the severity note"):
        make_finding("batch_checksum", Path("x"), "It is damaged.", severity="note")
    with pytest.raises(KeyError):
        make_finding("unknown", Path("x"), "It is damaged.")


def test_explain_lists_all_and_explains_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(CATALOG)
    for kind in CATALOG.values():
        assert main(["explain", kind.id]) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 60
        assert kind.explanation in " ".join(out.split())
        assert kind.remedy in " ".join(out.split())


def test_explain_suggests_similar_ids(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "batch_checksums"]) == 2
    assert "did you mean batch_checksum" in capsys.readouterr().err
    assert main(["explain", "?"]) == 2
    assert "kafka-log explain lists all" in capsys.readouterr().err
