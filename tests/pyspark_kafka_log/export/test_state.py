"""The state that a target keeps, which later versions must read, and the errors of exports."""

from __future__ import annotations

from typing import get_args

import pytest

from pyspark_kafka_log.export import FORMATS, DataLossError, ExportError, Format, TaskError
from pyspark_kafka_log.export.state import State

TEXT = (
    '{"made": {"columns": ["key"]}, "number": 3, "offsets": {"a": {"0": 10, "2": 5}, "b": {"1": 7}},'
    ' "version": 1}'
)
STATE = State(3, {("a", 0): 10, ("a", 2): 5, ("b", 1): 7}, {"columns": ["key"]})


def test_state_has_one_json_form() -> None:
    assert STATE.to_json() == TEXT
    assert State.from_json("table", TEXT) == STATE


def test_next_state_counts_exports_and_keeps_other_partitions() -> None:
    after = STATE.advance({("a", 0): 12, ("c", 0): 1})
    ends = {("a", 0): 12, ("a", 2): 5, ("b", 1): 7, ("c", 0): 1}
    assert after == State(4, ends, STATE.definition)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TEXT.replace('"version": 1', '"version": 2'), "has version 2"),
        (TEXT.replace('"number": 3', '"number": "x"'), "cannot be read"),
        (TEXT.replace('"number": 3, ', ""), "cannot be read: 'number'"),
        ("{", "cannot be read"),
        (TEXT.encode().replace(b"key", b"\xff"), "cannot be read: 'utf-8' codec"),
        ("[]", "cannot be read"),
        ('{"version": 1, "offsets": []}', "cannot be read"),
    ],
)
def test_invalid_state_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(ExportError, match=f"^table: .*{reason}") as caught:
        State.from_json("table", text)
    assert caught.value.target == "table"


@pytest.mark.parametrize(
    ("count", "end"), [(1, "loss 0"), (10, "loss 9"), (11, "loss 9; and 1 more")]
)
def test_data_loss_names_ten_partitions(count: int, end: str) -> None:
    losses = [f"loss {number}" for number in range(count)]
    error = DataLossError("table", losses)
    assert error.losses == tuple(losses) and error.target == "table"
    named = "; ".join(losses[: min(count, 10) - 1])
    start = f"{named}; " if named else ""
    assert str(error) == f"table: data is lost: {start}{end}"


def test_an_error_of_a_task_is_its_message() -> None:
    error = TaskError("bad", True)
    assert (str(error), error.target, error.reason, error.is_damage) == (
        "bad",
        "Spark",
        "bad",
        True,
    )


def test_formats_are_those_of_the_type() -> None:
    assert get_args(Format) == FORMATS
