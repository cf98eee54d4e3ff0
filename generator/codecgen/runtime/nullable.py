"""Codec of a layout that may be null."""

from __future__ import annotations

from typing import Any

from codecgen.runtime.errors import ParseError, ValueRefused
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.primitives import Codec


class Nullable(Codec):
    """A layout after a number that says whether it is present: 1, or ``null``.

    With ``any_negative``, lenient readers take every negative number for null; with ``any_present``, every other
    one for 1.
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
        """Read the number at the head of ``source``; return None if it is ``null``, and the layout
        after it if it is 1. For any other number raise ValueRefused, unless a lenient session
        tolerates it as null (``any_negative``) or as 1 (``any_present``), with a finding. Raise
        CodecError if the number or the layout does not parse.
        """
        start = source.pos
        number = self.present.read(source, this)
        if number not in (1, self.null):
            error = ValueRefused(
                f"{number} stands where only 1 or, for null, {self.null} may", source.where(start)
            )
            return self.read_other_number(number, error, source, this)
        return None if number == self.null else self.layout.read(source, this)

    def read_other_number(self, number: int, error: ParseError, source: Source, this: Any) -> Any:
        """Add ``error`` to the findings, and return None for a negative number if ``any_negative``
        is set, else the layout at the head of ``source`` if ``any_present`` is. Raise ``error`` if
        neither applies or the session is strict; CodecError if the layout does not parse.
        """
        null = self.any_negative and number < 0
        if not null and not self.any_present:
            raise error
        source.session.tolerate(error)
        return None if null else self.layout.read(source, this)

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the number for null if the value is None, else the number 1 and the bytes of the
        layout. Raise BuildError if the layout cannot write the value.
        """
        if value is None:
            return self.present.write(self.null, this, session)
        return self.present.write(1, this, session) + self.layout.write(value, this, session)


__all__ = ["Nullable"]
