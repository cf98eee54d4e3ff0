"""What texts of every form share: a name, where they are declared, and how bytes are parsed as one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from codecgen.runtime.entry_points import EntryPoint, P
from codecgen.runtime.located_bytes import Session
from codecgen.runtime.parsed import Parsed, make_class
from codecgen.runtime.text_source import TextSource


class TextFile(EntryPoint[P, P]):
    """A text. ``accepts`` are the freedoms of lenient readers."""

    def __init__(self, name: str, source: str, accepts: Collection[str]) -> None:
        super().__init__()
        self.text_name = name
        self.source_file = source
        self.accepts = frozenset(accepts)
        self.parsed_class = make_class(name, self.__module__)

    def parse_whole(self, data: Any, position: int, session: Session) -> Parsed:
        source = TextSource(
            data, session, origin=position, accepts=self.accepts, schema=self.source_file
        )
        return self.read(source)

    def read(self, source: TextSource) -> Parsed:
        """The values of a whole text."""
        raise NotImplementedError


__all__ = ["TextFile"]
