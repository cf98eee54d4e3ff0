"""Random expressions over what can be named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.laws.draws import Draw

NUMBERS = (0, 1, 2, 3, 5, -1, 127, 128, 255, 300, 1 << 31, -(1 << 31), 1 << 40, (1 << 63) - 1)


@dataclass(frozen=True)
class Seen:
    """Something that expressions can name. ``kind``: int, bool, enum, text, bytes, uuid, float, array, other.

    ``words`` are the names of the values of an enum, ``versions`` those in which it is there, ``element`` the fields of an
    array's elements that are numbers (or "" for an element that is one)."""

    path: str
    kind: str
    words: tuple[str, ...] = ()
    nullable: bool = False
    versions: str | None = None
    element: tuple[str, ...] = ()
    type: str = ""
    late: bool = False

    @property
    def ordered(self) -> bool:
        return self.kind == "int"


class Conditions:
    """Draws expressions. ``version`` is the word for the version where there is one."""

    def __init__(
        self, d: Draw, seen: Sequence[Seen], versions: tuple[int, int] | None = None
    ) -> None:
        self.d = d
        self.seen = [s for s in seen if not s.late]
        self.versions = versions

    def boolean(self, depth: int = 2) -> str | None:
        """A condition; None when there is nothing to say one about."""
        d = self.d
        ways = self._simple()
        if not ways:
            return None
        if depth and d.chance(4):
            one, other = self.boolean(depth - 1), self.boolean(depth - 1)
            kind = d.number(0, 3)
            if kind == 0:
                return f"({one}) and ({other})"
            if kind == 1:
                return f"{one} or {other}"
            if kind == 2:
                return f"not ({one})"
            third = self.boolean(0)
            return f"(if {one} then {other} else {third}) or ({third})" if third else None
        return d.pick(ways)()

    def _simple(self) -> list[Callable[[], str]]:
        ways: list[Callable[[], str]] = []
        if any(s.ordered for s in self.seen):
            ways += [self._compared] * 3
        if any(s.kind == "bool" for s in self.seen):
            ways.append(self._flag)
        if any(s.kind == "enum" and s.words for s in self.seen):
            ways.append(self._word)
        if any(s.nullable for s in self.seen):
            ways.append(self._null)
        if any(s.kind == "array" and s.element for s in self.seen):
            ways.append(self._end)
        if self.versions is not None:
            ways.append(self._version)
        if any(s.kind == "float" for s in self.seen):
            ways.append(self._float)
        return ways

    def _of(self, kind: str) -> Seen:
        return self.d.pick([s for s in self.seen if s.kind == kind])

    def _int(self) -> str:
        return self.d.pick([s for s in self.seen if s.ordered]).path

    def _compared(self) -> str:
        d = self.d
        operator = d.pick(("==", "!=", "<", "<=", ">", ">="))
        left = self.sum(1) if d.chance(5) else self._int()
        kind = d.number(0, 3)
        right = str(d.pick(NUMBERS)) if kind < 2 else self._int() if kind == 2 else self.sum(0)
        return f"{left} {operator} {right}"

    def sum(self, depth: int = 1) -> str:
        """A sum of numbers that are there."""
        d = self.d
        left = self._int()
        right = self._int() if d.chance(2) else str(abs(d.pick(NUMBERS)))
        text = f"{left} {d.pick('+-')} {right}"
        if depth and d.chance(3):
            return f"{text} - ({self._int()} + 1)"
        return text

    def _flag(self) -> str:
        flag = self._of("bool")
        if self.d.chance(4):
            return f"{flag.path} {self.d.pick(('==', '!='))} {self.d.pick(('true', 'false'))}"
        return flag.path if self.d.chance(2) else f"not {flag.path}"

    def _word(self) -> str:
        seen = self.d.pick([s for s in self.seen if s.kind == "enum" and s.words])
        return f"{seen.path} {self.d.pick(('==', '!='))} {self.d.pick(seen.words)}"

    def _null(self) -> str:
        seen = self.d.pick([s for s in self.seen if s.nullable])
        return f"{seen.path} {self.d.pick(('==', '!='))} null"

    def _end(self) -> str:
        d = self.d
        seen = d.pick([s for s in self.seen if s.kind == "array" and s.element])
        part = d.pick(seen.element)
        path = f"{d.pick(('first', 'last'))}({seen.path})" + (f".{part}" if part else "")
        return f"{path} {d.pick(('<', '==', '!=', '>='))} {d.pick(NUMBERS)}"

    def _version(self) -> str:
        assert self.versions is not None
        number = self.d.number(*self.versions)
        return f"version {self.d.pick(('==', '>=', '<', '!='))} {number}"

    def _float(self) -> str:
        return f"{self._of('float').path} {self.d.pick(('<', '>='))} {self.d.pick(NUMBERS[:5])}"
