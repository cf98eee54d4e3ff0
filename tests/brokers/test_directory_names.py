"""Which directories a broker starts with: what `check` says of their names is right."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.brokers import KraftBroker
from tests.brokers.maven import JAVA, KAFKA_4, BrokerError, java_command
from tests.log.inspect.check.test_directories import REFUSES, STARTS

pytestmark = pytest.mark.broker
CACHE = "remote-log-index-cache"
"""A directory that brokers with a remote tier make, and pass over."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftBroker]:
    """A stopped one without topics."""
    made = KraftBroker(tmp_path_factory.mktemp("names"), {}, heap_mb=384)
    with made:
        pass
    try:
        yield made
    finally:
        made.kill()


def cleared(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir() and path.name != "__cluster_metadata-0":
            shutil.rmtree(path)


def test_kafkas_parser_refuses_and_takes_the_same_names(tmp_path: Path) -> None:
    """Directories, which exist. Brokers do not parse CACHE."""
    names = [name for name in (*REFUSES, *STARTS) if name != CACHE]
    for name in names:
        (tmp_path / name).mkdir()
    lines = "".join(f"{tmp_path / name}\n" for name in names)
    command = [*java_command(KAFKA_4, str(JAVA / "src" / "DirectoryNames.java"))]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answers = dict(zip(names, done.stdout.splitlines(), strict=True))
    for name in REFUSES:
        assert answers[name].startswith(f"refused Found directory {tmp_path / name}"), name
    for name in set(names) - set(REFUSES):
        assert answers[name].startswith("taken "), answers[name]


def test_a_broker_asks_the_parser(broker: KraftBroker) -> None:
    cleared(broker.log_dir)
    (broker.log_dir / REFUSES[0]).mkdir()
    with pytest.raises(BrokerError):
        broker.start()
    broker.kill()
    assert f"Found directory {broker.log_dir / REFUSES[0]}" in broker.last_log()


def test_taken(broker: KraftBroker) -> None:
    """All of them at once, and files of the other names."""
    cleared(broker.log_dir)
    for name in STARTS:
        (broker.log_dir / name).mkdir()
    for name in REFUSES:
        (broker.log_dir / name).touch()
    broker.start()
    broker.stop()
