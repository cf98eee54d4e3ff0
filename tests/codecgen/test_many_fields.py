"""Layouts with many fields: the work for them grows with their number, not with its square.

Expressions still look fields up one by one, which is little work for each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from codecgen.check import run
from codecgen.plan import make_plan
from codecgen.schema import loader
from codecgen.targets import construct
from tests.codecgen.goldens import MANIFEST


def lines_run(function: Callable[[], object]) -> int:
    """The number of lines that Python runs in a function, once more for each pass of a loop."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def check_and_emit(fields: int, field: str) -> None:
    text = "".join(f"  f{i}: {field.replace('NAME', f'f{i}')}\n" for i in range(fields))
    model, found = loader.load(
        {"codecgen.yaml": MANIFEST, "case.yaml": f"layout: a\nfields:\n{text}"}
    )
    assert model is not None and not found and not run(model)
    assert not construct.emit(make_plan(model)).diagnostics


@pytest.mark.slow
@pytest.mark.parametrize("field", ["u8", "{bytes: u8}", "{type: u8, valid: NAME < 9}"])
def test_work_is_linear(field: str) -> None:
    check_and_emit(3, field)  # what is worked out once for all
    few = lines_run(lambda: check_and_emit(20, field))
    many = lines_run(lambda: check_and_emit(160, field))
    assert many < 12 * few, "8 times the fields, which was 20 to 27 times the work"
