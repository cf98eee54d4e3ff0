"""What texts of every form share: a name, where they are declared, and how bytes are parsed as one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from codecgen.runtime.errors import ParseError
from codecgen.runtime.located_bytes import Limits, Session
from codecgen.runtime.parsed import Parsed, class_of
from codecgen.runtime.text_source import TextSource


class TextFile:
    """A text. ``accepts`` are the freedoms of lenient readers."""

    def __init__(self, name: str, source: str, accepts: Collection[str]) -> None:
        self.text_name = name
        self.source_file = source
        self.accepts = frozenset(accepts)
        self.parsed_class = class_of(name)

    def parse(
        self,
        data: Any,
        *,
        file: str | None = None,
        position: int = 0,
        strict: bool = True,
        limits: Limits | None = None,
        findings: list[ParseError] | None = None,
        trace: list[tuple[str, int, int, bool]] | None = None,
    ) -> Parsed:
        """Parse bytes that are one whole text, as :meth:`codecgen.runtime.layout.Layout.parse` does those of a layout.

        Raises :class:`~codecgen.runtime.errors.ParseError`.
        """
        session = Session(strict=strict, limits=limits or Limits(), file=file, trace=trace)
        if findings is not None:
            session.findings = findings
        source = TextSource(
            data, session, origin=position, accepts=self.accepts, schema=self.source_file
        )
        return self.read(source)

    def read(self, source: TextSource) -> Parsed:
        """The values of a whole text."""
        raise NotImplementedError


__all__ = ["TextFile"]
