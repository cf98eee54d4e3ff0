"""The committed values of control records are those that Kafka's classes write and read today."""

from __future__ import annotations

import json

import pytest

from .control_values import FILE, READ, WRITTEN, answered

pytestmark = pytest.mark.broker


def test_the_committed_values_are_those_of_kafka() -> None:
    committed = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
    assert answered([*WRITTEN, *READ]) == committed
