"""Rows of views of payloads from parsed payloads: the classes and functions that generated modules of rows use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codecgen.runtime.declared import Declared
from codecgen.runtime.errors import CodecError, ParseError
from codecgen.runtime.layout import Choice, Layout
from codecgen.runtime.located_bytes import Limits, Session, Source
from codecgen.runtime.rows import bits_of, case_of

__all__ = ["Case", "Part", "PartError", "PayloadRows", "Unknown", "bits_of", "case_of"]

Given = Mapping[Any, Layout | Choice]
"""What a part is, by the number of the part that decides."""
Layouts = tuple[Layout | None, ...]
"""The layouts of the parts that are looked at, in their order. None is for a part that is null."""


class PartError(Exception):
    """Raised when a part of a payload does not parse: ``part`` is its name, ``error`` the error of the codec."""

    def __init__(self, part: str, error: CodecError) -> None:
        super().__init__(part, error)
        self.part = part
        self.error = error

    def __str__(self) -> str:
        return f"{self.part}: {self.error}"


class Unknown(Exception):
    """Raised when a payload cannot be identified: the deciding part is null, or its ``number`` has no case."""

    def __init__(self, number: int | None) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a payload: a layout, a choice, or layouts by the number of the part that ``decides``."""

    kind: Layout | Choice | Given
    decides: bool = False


Value = Callable[..., Any]
"""A value of a row: from the parts, the element at hand, and the number of the row that the payload is in."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Rows of payloads that match ``of``: the deciding number (None: no part decides) and the layouts of the parts.

    If ``when`` holds, each element of the array ``each`` (part and field) is a row, or the payload if that is None.
    ``empty`` cases have no rows.
    """

    of: tuple[tuple[int | None, Layouts], ...]
    columns: Mapping[str, Value]
    each: tuple[str, str] | None = None
    when: Value | None = None
    empty: bool = False


class PayloadRows(Declared):
    """Makes the rows of a view from payloads: byte strings in one or several named parts, such as
    the key and the value of a record.

    ``parts`` has the parts by name, ``columns`` the column names in order, and ``looks`` the parts that are parsed,
    by the deciding number. Values are plain: timestamps are milliseconds, structs are tuples.
    """

    def __init__(
        self,
        name: str,
        *,
        parts: Mapping[str, Part],
        columns: tuple[str, ...],
        looks: Mapping[int | None, tuple[str, ...]],
        cases: tuple[Case, ...],
    ) -> None:
        super().__init__()
        self.name = name
        self.parts = parts
        self.columns = columns
        self.looks = looks
        self.cases = cases
        self.decider = next((name for name, part in parts.items() if part.decides), None)
        self._cases: dict[tuple[int | None, tuple[int | None, ...]], list[Case]] = {}
        for case in cases:
            for number, layouts in case.of:
                key = (number, tuple([None if one is None else id(one) for one in layouts]))
                self._cases.setdefault(key, []).append(case)

    def __repr__(self) -> str:
        return f"<PayloadRows {self.name}: {', '.join(self.columns)}>"

    def rows(
        self,
        payload: Mapping[str, bytes | memoryview | None],
        *,
        row: int = 0,
        columns: Sequence[str] | None = None,
        strict: bool = True,
        limits: Limits | None = None,
        findings: list[ParseError] | None = None,
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of one payload as tuples of ``columns`` (None: all). The first case whose
        condition holds makes them; yield nothing if there is none, or the view gives it no rows.
        Raise PartError if a part that the rows need does not parse; Unknown if the deciding part is
        null or its number has no case; KeyError for a missing part or unknown column.

        Args:
            payload: Bytes or None of each part, by name.
            row: The number of the row that holds the payload.
            columns: The wanted columns in order; None for all.
            strict: Refuse what the layouts do not allow. A lenient reader takes their tolerances and adds to
                ``findings``.
            limits: Limits of the parse.
            findings: Receives what a lenient reader tolerated.
        """
        number = self._number(payload)
        looked_at = self.looks.get(number)
        if looked_at is None:
            return
        layouts: list[int | None] = []
        values: list[Any] = []
        for name, part in self.parts.items():
            values.append(None)
            if name not in looked_at:
                continue
            data = payload[name]
            if data is None:
                layouts.append(None)
                continue
            try:
                layout = _layout(part, number, data)
                layouts.append(id(layout))
                values[-1] = layout.parse(data, strict=strict, limits=limits, findings=findings)
            except CodecError as error:
                raise PartError(name, error) from None
        wanted = self.columns if columns is None else columns
        for case in self._cases.get((number, tuple(layouts)), ()):
            if not (case.when is None or case.when(*values, None, row)):
                continue
            if case.empty:
                return
            functions = [case.columns[name] for name in wanted]
            for item in self._items(case, values):
                yield tuple([value(*values, item, row) for value in functions])
            return

    def _items(self, case: Case, values: Sequence[Any]) -> Sequence[Any]:
        """Return the elements of the array ``case.each`` that become rows; ``()`` if its part or
        the array is null. Return ``(None,)``, for one row of the payload, if the case has no such
        array. ``values`` are the parsed parts, in order, None for null.
        """
        if case.each is None:
            return (None,)
        part, name = case.each
        found = values[[*self.parts].index(part)]
        items = None if found is None else found[name]
        return () if items is None else items

    def _number(self, payload: Mapping[str, bytes | memoryview | None]) -> int | None:
        """Return the number in the deciding part that selects the case; None if the view has no
        deciding part. Raise Unknown if that part is null or its number has no case; PartError if it
        ends before the number.
        """
        if self.decider is None:
            return None
        choice, data = self.parts[self.decider].kind, payload[self.decider]
        if data is None:
            raise Unknown(None)
        assert isinstance(choice, Choice)
        try:
            number = choice.peek(Source(data, Session()))
        except CodecError as error:
            raise PartError(self.decider, error) from None
        if number not in choice.cases:
            raise Unknown(number)
        return number


def _layout(part: Part, number: int | None, data: bytes | memoryview) -> Layout:
    """Return the layout of a part, which ``number`` selects if the part has a layout for each
    number, and its own bytes ``data`` if it is a choice. Raise CodecError if the bytes end before
    the choice's number or no case has it; KeyError if no layout has ``number``.
    """
    kind = part.kind
    if isinstance(kind, Mapping):
        assert number is not None
        kind = kind[number]
    return kind.case(Source(data, Session())) if isinstance(kind, Choice) else kind
