"""Names in what is generated: those that targets take, and how a name is spelled in other documents."""

from __future__ import annotations

from typing import Literal

TARGET_PACKAGES = frozenset(["arrow", "columns", "rows"])
"""Packages that targets write inside the generated one, beside a module for each YAML file."""

SHIPPED = "schemas"
"""Directory inside the generated package where a distribution puts the schemas that it was made from."""

TARGET_DIRECTORIES = frozenset(["docs", "html", "kaitai"])
"""Directories that targets write beside the generated package."""


def identifier(name: str) -> str:
    """A declaration in the names of functions: ``weather.reading`` -> ``weather_reading``."""
    return name.replace(".", "_")


def spell(name: str, style: Literal["camel", "snake"]) -> str:
    """A snake_case name in the style of a format's own documents."""
    head, *rest = name.split("_")
    return name if style == "snake" else head + "".join(part.capitalize() for part in rest)
