"""The pages of the API are those of the docstrings, and these say what there is to say."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pytest

import kafka_log
from kafka_log.inspect.metadata.table import KINDS
from tests import api_pages
from tests.paths import ROOT

THINGS = [thing for page in api_pages.pages() for thing in page.things]
MEMBERS = [
    (f"{name}.{label}", member)
    for name, thing in THINGS
    if inspect.isclass(thing)
    for label, member in api_pages.members(thing)
]


def test_pages_are_current() -> None:
    assert api_pages.stale() == [], "run python -m tests.api_pages"


@pytest.mark.slow
def test_what_is_not_current_is_said(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(api_pages, "API", tmp_path / "api")
    assert api_pages.main([]) == 0 and api_pages.main(["--check"]) == 0
    (tmp_path / "api" / "errors.md").write_text("old")
    (tmp_path / "api" / "gone.md").write_text("old")
    assert api_pages.main(["--check"]) == 1
    assert capsys.readouterr().out.rstrip().endswith(": errors.md, gone.md")
    assert api_pages.main([]) == 0 and api_pages.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("name", "thing"), [*THINGS, *MEMBERS], ids=lambda x: x if isinstance(x, str) else ""
)
def test_everything_has_a_text(name: str, thing: Any) -> None:
    doc = inspect.getdoc(thing) or ""
    own = vars(thing).get("__doc__") if inspect.isclass(thing) else doc
    assert own and len(doc) > 10 and doc[0].isupper(), name
    assert doc.partition("\n\n")[0].rstrip().endswith("."), name


READING = [
    *(
        (name, thing)
        for name, thing in THINGS
        if inspect.isfunction(thing) and name.startswith("kafka_log.")
    ),
    *(
        (name, member)
        for name, member in MEMBERS
        if ".LogDirectory." in name and inspect.isfunction(member)
    ),
]


@pytest.mark.parametrize(("name", "thing"), READING, ids=lambda x: x if isinstance(x, str) else "")
def test_what_reads_files_says_its_errors(name: str, thing: Any) -> None:
    assert re.search(r"[Rr]aise", inspect.getdoc(thing) or ""), name


def test_what_is_documented_is_exported() -> None:
    """Code on pages takes from kafka_log itself what is in its list, and from its modules what has no underscore."""
    seen: set[str] = set()
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        if page.parent == api_pages.API:
            continue
        for code in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.ImportFrom) and node.module == "kafka_log":
                    seen |= {alias.name for alias in node.names}
                elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "kafka_log":
                    seen.add(node.attr)
    assert len(seen) > 4
    assert seen <= set(kafka_log.__all__)


def test_the_list_of_the_package_is_what_it_has() -> None:
    assert all(getattr(kafka_log, name) for name in kafka_log.__all__)
    assert {name.rpartition(".")[2] for name, _ in api_pages.pages()[0].things} == set(
        kafka_log.__all__
    )


ANSWERS: dict[str, Callable[[kafka_log.LogDirectory], Iterable[pa.Table]]] = {
    "ls": lambda log: (log.ls(), log.ls(by="topic"), log.ls(segments=True)),
    "stat": lambda log: (log.stat(now=0),),
    "largest": lambda log: (log.largest(1), log.largest(1, deep=True)),
    "keys": lambda log: (log.keys(),),
    "records_of_key": lambda log: (log.records_of_key(b"nobody"),),
    "schemas": lambda log: (log.schemas(),),
    "txn": lambda log: (log.txn(),),
    "producers": lambda log: (log.producers(),),
    "groups": lambda log: (log.groups(), log.groups(states=True)),
    "metadata": lambda log: (log.metadata(kind) for kind in KINDS),
    "coordinator": lambda log: (log.coordinator("tx-group"),),
    "check": lambda log: (log.check(),),
    "diff": lambda log: (log.diff(log),),
}


@pytest.mark.slow
@pytest.mark.parametrize("method", ANSWERS)
def test_the_page_has_the_columns_that_come(method: str) -> None:
    """Names and types, in their order: of each table that a method gives, as the page of the API has it."""
    page = (api_pages.API / "kafka_log.md").read_text(encoding="utf-8")
    own = page.partition(f"\n### LogDirectory.{method}\n")[2].partition("\n##")[0]
    tables = re.findall(r"^\| --- \| --- \| --- \|\n((?:\|.*\n)+)", own, re.M)
    documented = [re.findall(r"^\| `(\w+)` \| (.*?) \| ", rows, re.M) for rows in tables]
    log = kafka_log.LogDirectory(ROOT / "samples" / "kafka-4.x")
    came = [[(f.name, str(f.type)) for f in table.schema] for table in ANSWERS[method](log)]
    assert came and documented == came


@pytest.mark.slow
def test_the_page_has_the_columns_of_changes() -> None:
    """What identifies a thing stands after the first one."""
    [(first, *rest)] = re.findall(
        r"^\| `(change)` .*\n\| `(columns)` .*\n\| `(before)` .*\n\| `(after)` ",
        (api_pages.API / "kafka_log.md").read_text(encoding="utf-8"),
        re.M,
    )
    log = kafka_log.LogDirectory(ROOT / "samples" / "kafka-4.x")
    for kind in KINDS:
        columns = log.metadata_changes(kind=kind).column_names
        assert columns == [first, *KINDS[kind].key, *rest]
