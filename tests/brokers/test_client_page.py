"""The client of docs/import-kafka-json.md, with the messages of a Kafka release, against a broker of it."""

from __future__ import annotations

import importlib
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codecgen.cli import GOOD, main
from codecgen.importers import kafka_json
from tests.brokers.brokers import KraftBroker
from tests.brokers.maven import KAFKA_4, classpath
from tests.paths import ROOT

pytestmark = [pytest.mark.broker, pytest.mark.slow]
PACKAGE = "kafka_messages"


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The definitions in the jar of Kafka's clients."""
    directory = tmp_path_factory.mktemp("definitions")
    name = f"kafka-clients-{KAFKA_4.version}.jar"
    [jar] = [path for path in classpath(KAFKA_4).split(os.pathsep) if path.endswith(name)]
    with zipfile.ZipFile(jar) as files:
        names = [n for n in files.namelist() if re.fullmatch(r"common/message/\w+\.json", n)]
        files.extractall(directory, names)
    return directory


@pytest.fixture(scope="module")
def package(definitions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The package of all messages, on the path of modules."""
    root = tmp_path_factory.mktemp("client")
    schemas, out = str(root / "schemas"), str(root / "out")
    assert main(["import", "kafka-json", str(definitions), "--out", schemas]) == GOOD
    assert main(["generate", schemas, "--out", out, "--targets", "construct"]) == GOOD
    sys.path.insert(0, out)
    try:
        yield PACKAGE
    finally:
        sys.path.remove(out)
        for name in [n for n in sys.modules if n.partition(".")[0] == PACKAGE]:
            del sys.modules[name]


def test_the_client_of_the_page_talks_to_a_broker(package: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "import-kafka-json.md").read_text("utf-8")
    [code] = [c for c in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "Client" in c]
    assert len([line for line in code.splitlines() if line.strip()]) <= 60
    with KraftBroker(tmp_path / "broker", heap_mb=256) as broker:
        with broker.client() as client:
            client.ask("create_topic", topic="sixty", partitions=1, config={})
        host, _, port = broker.bootstrap_servers.partition(":")
        names: dict[str, Any] = {"HOST": host, "PORT": int(port), "TOPIC": "sixty"}
        exec(code, names)
    assert names["values"] == [b"hello", b"world"]
    assert names["written"].base_offset == 0


def test_every_message_of_the_release_is_in_the_table(package: str, definitions: Path) -> None:
    table = importlib.import_module(package).API
    found = kafka_json.find(definitions).messages
    keys = {m.api_key for m in found if m.type == "request" and not m.is_retired}
    assert set(table.message_keys) == keys
    for (key, version), exchange in table.items():
        for layout in (exchange.request, exchange.response):
            assert layout is not None and layout.version == version
            assert table.find(layout) is exchange
        assert exchange.request_header.version == 2 - (
            "unknown_tags" not in exchange.request.by_name
        )
        flexible = "unknown_tags" in exchange.response.by_name and key != 18
        assert exchange.response_header.version == flexible
