"""The catalog of findings, and the command that explains them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from kafka_log.cli import main
from kafka_log.inspect import check
from kafka_log.inspect.check.catalog import CATALOG, SEVERITIES
from kafka_log.inspect.check.finding import make_finding
from tests.paths import ROOT

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
