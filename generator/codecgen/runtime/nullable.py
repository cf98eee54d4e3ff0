"""Layouts in the place of a field that may be null."""

from __future__ import annotations

from typing import Any

from codecgen.runtime.errors import ParseError, ValueRefused
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.primitives import Codec


class Nullable(Codec):
    """A layout after a number, ``present``, that says whether it is there: 1, or ``null``.

    Lenient readers take every negative number for null (``any_negative``), every other one for 1 (``any_present``).
    """

    def __init__(
        self,
        layout: Codec,
        present: Codec,
        null: int,
        any_negative: bool = False,
        any_present: bool = False,
    ) -> None:
        super().__init__()
        self.layout = layout
        self.present = present
        self.null = null
        self.any_negative = any_negative
        self.any_present = any_present

    def read(self, source: Source, this: Any) -> Any:
        start = source.pos
        number = self.present.read(source, this)
        if number not in (1, self.null):
            error = ValueRefused(
                f"{number} stands where only 1 or, for null, {self.null} may", source.where(start)
            )
            return self.other(number, error, source, this)
        return None if number == self.null else self.layout.read(source, this)

    def other(self, number: int, error: ParseError, source: Source, this: Any) -> Any:
        """What a lenient reader makes of another number."""
        null = self.any_negative and number < 0
        if not null and not self.any_present:
            raise error
        source.session.tolerate(error)
        return None if null else self.layout.read(source, this)

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        if value is None:
            return self.present.write(self.null, this, session)
        return self.present.write(1, this, session) + self.layout.write(value, this, session)


__all__ = ["Nullable"]
