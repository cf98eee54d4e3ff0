"""Settings that Kafka calls passwords are secrets in the schemas, and no other setting of Kafka's is."""

from __future__ import annotations

import subprocess

import pytest

from kafka_codecs import CONFIG_RECORD
from tests.log.inspect.test_secrets import PASSWORDS

from .maven import INTERNAL_TOPICS, JAVA, classpath

pytestmark = [pytest.mark.broker, pytest.mark.slow]


def test_passwords() -> None:
    command = ["java", "-cp", classpath(INTERNAL_TOPICS), str(JAVA / "src" / "Settings.java")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    words = [line.split() for line in done.stdout.splitlines() if line.startswith("setting ")]
    types = {name: kind for _, name, kind in words}
    assert len(types) > 300
    (value,) = (f for f in CONFIG_RECORD[0].fields if f.sensitive is not None)
    passwords = {name for name, kind in types.items() if kind == "PASSWORD"}
    assert value.sensitive is not None
    assert {name for name in types if value.sensitive.covers(name)} == passwords
    assert passwords and passwords <= set(PASSWORDS)
