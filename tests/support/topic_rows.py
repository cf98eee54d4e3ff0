"""What tests of the views of Kafka's own topics share."""

from __future__ import annotations

import importlib
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from codecgen.runtime.arrow.view import PayloadView

TIME = 1_795_243_559_142
THEN = datetime.fromtimestamp(TIME / 1000, UTC)
TOPIC = uuid.UUID("5e5b647c-1561-4c31-8c62-d8711b1768f6")


Rows = list[dict[str, Any]]


def filled(columns: dict[str, Any], *rows: dict[str, Any]) -> Rows:
    """Rows with what they all have, and null in what they do not name."""
    return [columns | row for row in rows]


def engines(*views: str) -> list[Any]:
    """Return each view with the reference codecs (False) and, if it has kernels, with those (True): compiling them is slow."""
    return [pytest.param(view, False) for view in views] + [
        pytest.param(view, True, marks=pytest.mark.slow)
        for view in views
        if described(view).kernels is not None
    ]


def described(view: str) -> PayloadView:
    """Return the description of a view into payloads."""
    found: PayloadView = getattr(
        importlib.import_module(f"kafka_codecs.columns.{view}"), view.upper()
    )
    return found
