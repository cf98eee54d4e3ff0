"""The description of how a view is written, as the generator writes it: entries, their cases, defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codecgen.runtime.arrow.view import Codec, Place, View


@dataclass(frozen=True, slots=True)
class Check:
    """What is in the way of a row: a column, by its index among the buffers (None: the size of the row), for the sake of
    what has its ``place`` in YAML (None: it would not be read back)."""

    column: int | None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class WriteCase:
    """Entries of one layout. ``codecs`` by number (None: no compression); ``around`` is the most bytes that an entry has
    beside its rows, ``most`` the most that its rows may have as they are written, ``rows`` how many there may be."""

    name: str
    codecs: Mapping[int, Codec | None]
    around: int
    most: int
    rows: int


@dataclass(frozen=True, slots=True)
class WriteKind:
    """What stands for one number that tells entries apart. ``needs`` are columns that must be there; ``cases`` by their
    number in the kernels."""

    name: str
    cases: Mapping[int, WriteCase]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Writer:
    """How the rows of a view become bytes. ``kernels`` is the module that has them, by the numbers of ``kinds``.

    ``defaults`` has a number, or the name of another column, for columns that rows may lack; ``places`` are columns that
    say where a row was read, which are not written, ``varying`` those that readers make of each row,
    ``checks`` what may be in the way of a row, by the numbers that the kernels give. ``slots`` are the numbers that the kernels keep of an entry.
    """

    view: View
    kernels: str
    kinds: Mapping[int, WriteKind]
    defaults: Mapping[str, int | str]
    places: tuple[str, ...]
    checks: tuple[Check, ...]
    varying: tuple[str, ...]
    slots: int
