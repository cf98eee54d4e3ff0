"""docs/topics.md: its code runs, and its table names the codecs of Kafka's own topics."""

from __future__ import annotations

import re

import pytest

import kafka_codecs
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "topics.md").read_text(encoding="utf-8")


@pytest.mark.share(6)
@pytest.mark.parametrize("code", re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S))
def test_code_runs(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(code, {})


def test_the_table_names_the_codecs_of_topics() -> None:
    named = set(re.findall(r"`([A-Z_]+)`", PAGE.partition("```")[0]))
    topics = ("CONSUMER_OFFSETS", "TRANSACTION_STATE", "SHARE_GROUP_STATE")
    keyed = {f"{topic}_{part}" for topic in topics for part in ("KEY", "VALUE")}
    assert named == keyed | {"METADATA_RECORD", "REMOTE_LOG_METADATA_RECORD"}
    assert named <= set(kafka_codecs.__all__)
