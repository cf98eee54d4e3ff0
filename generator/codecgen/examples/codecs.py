"""What trying examples needs of generated codecs."""

from __future__ import annotations

from typing import Any, Protocol

from codecgen.plan import LayoutPlan
from codecgen.schema.texts import Text


class ExampleCodecs(Protocol):
    """The generated codecs of a plan."""

    def layout(self, plan: LayoutPlan) -> Any:
        """Return the codec of a layout in one version."""

    def any_version(self, plan: LayoutPlan) -> Any:
        """Return the codec that finds the version in the bytes."""

    def text(self, text: Text) -> Any:
        """Return the codec of a text."""
