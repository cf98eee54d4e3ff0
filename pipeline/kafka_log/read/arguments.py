"""Checks of arguments of callers. Each check returns the value, or raises ValueError with the name of the argument."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches
from operator import index
from typing import Any, TypeVar

T = TypeVar("T")

OFFSET_BITS = (1 << 63) - 1


def tuple_of(kind: type | tuple[type, ...], check: Callable[[str, Any], T]) -> Any:
    """Return a function of an argument's name and value. It applies ``check`` to a value of type
    ``kind``, to bytes or to any value that is not iterable, or else to each item, and returns the
    results as a tuple without duplicates, ``()`` if there is no item; None for None. It raises
    ValueError if ``check`` does.
    """

    def checked(name: str, value: Any) -> tuple[T, ...] | None:
        """Return the checked values as a tuple without duplicates, None for None. Raises what ``check`` raises."""
        if value is None:
            return None
        if isinstance(value, (kind, bytes)):  # bytes are not several numbers
            return (check(name, value),)
        try:
            values = list(value)
        except TypeError:
            return (check(name, value),)  # which says what is wrong
        return tuple(dict.fromkeys(check(name, one) for one in values))

    return checked


def text_of(what: str) -> Callable[[str, Any], str]:
    """Return a function of an argument's name and value that returns the value if it is a str, and
    raises ValueError otherwise. ``what`` describes the expected values in the message.
    """

    def check(name: str, value: Any) -> str:
        """Return ``value``. Raises ValueError if it is no str."""
        if not isinstance(value, str):
            raise ValueError(f"{name} is {value!r}: {what} are expected")
        return value

    return check


def number(least: int, most: int, what: str) -> Callable[[str, Any], int]:
    """Return a function of an argument's name and value that returns the value as an int, also if it
    is an integer of NumPy. It raises ValueError, in which ``what`` describes the expected values,
    for a bool, a float, None, another type, or a number outside of ``least`` to ``most`` (both included).
    """

    def check(name: str, value: Any) -> int:
        """Return ``value`` as an int. Raises ValueError if it is no integer in the range, or a bool."""
        try:
            number = index(value)
        except TypeError:
            raise ValueError(f"{name} is {value!r}: {what} are expected") from None
        if isinstance(value, bool) or not least <= number <= most:
            raise ValueError(f"{name} is {value!r}: {what} are expected")
        return number

    return check


def flag(name: str, value: Any) -> bool:
    """Return True or False; None is False. Raises ValueError for anything else: a text such as "no" would count as True."""
    if not isinstance(value, bool | None):
        raise ValueError(f"{name} is {value!r}: True or False is expected")
    return bool(value)


def one_of(known: Collection[str]) -> Callable[[str, Any], Any]:
    """Return a function of an argument's name and value that returns the value if it is None or a
    str in ``known``, and raises ValueError otherwise.
    """

    def check(name: str, value: Any) -> Any:
        """Return ``value``. Raises ValueError if it is neither None nor one of ``known``."""
        if value is not None and not (isinstance(value, str) and value in known):
            raise ValueError(f"{name} is {value!r}; known: {', '.join(known)}")
        return value

    return check


def optional_number(
    name: str, value: Any, least: int = -1 - OFFSET_BITS, most: int = OFFSET_BITS
) -> int | None:
    """Return ``value`` as an int; None stays None. Raise ValueError, which names the argument, if
    it is a bool or no integer from ``least`` to ``most`` (both included; by default any signed
    64-bit number).
    """
    return (
        None
        if value is None
        else number(least, most, f"numbers from {least} to {most}")(name, value)
    )


def check_columns(columns: Sequence[str], known: Sequence[str]) -> None:
    """Raise ValueError if ``columns`` is a str, is empty, has a name twice, or has a name that is
    not in ``known``. Return nothing otherwise.
    """
    if isinstance(columns, str):
        raise ValueError(f"columns is a string: write [{columns!r}]")
    if not columns:
        raise ValueError(f"columns is empty: name at least one column of {', '.join(known)}")
    repeated = [name for i, name in enumerate(columns) if name in columns[:i]]
    if repeated:
        raise ValueError(f"columns has {repeated[0]!r} twice: name each column once")
    for name in columns:
        if name not in known:
            close = get_close_matches(str(name), known, 1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ValueError(f"no column is called {name!r}{hint}; known: {', '.join(known)}")
