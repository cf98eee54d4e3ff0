"""Names in generated output: reserved package names, and spellings of names in other documents."""

from __future__ import annotations

from typing import Literal

TARGET_PACKAGES = frozenset(["arrow", "columns", "rows"])
"""Packages that targets write inside the generated one, beside a module for each YAML file."""

MESSAGE_TABLE = "message_table"
"""Module that the target construct writes if a directory has messages."""

SHIPPED = "schemas"
"""Directory inside the generated package where a distribution puts the schemas that it was made from."""

TARGET_DIRECTORIES = frozenset(["docs", "html", "kaitai"])
"""Directories that targets write beside the generated package."""


def identifier(name: str) -> str:
    """Return a declaration's name as part of a function name: ``weather.reading`` becomes ``weather_reading``."""
    return name.replace(".", "_")


def spell(name: str, style: Literal["camel", "snake"]) -> str:
    """Return a snake_case name in ``style``, the style of the format's own documents."""
    head, *rest = name.split("_")
    return name if style == "snake" else head + "".join(part.capitalize() for part in rest)
