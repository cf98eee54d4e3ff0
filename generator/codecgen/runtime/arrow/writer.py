"""The description of how a view is written, as the generator writes it: entries, their cases, defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codecgen.runtime.arrow.view import Codec, Place, View


@dataclass(frozen=True, slots=True)
class Check:
    """What may prevent that a row is written.

    Attributes:
        column: Index of the column, None for the size of the row.
        place: Place in YAML of the field or rule, None if the value would not be read back.
    """

    column: int | None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class WriteCase:
    """Entries of one layout.

    Attributes:
        name: Name of the layout.
        codecs: Codecs by number, None for no compression.
        around: Max bytes of an entry beside its rows.
        max_bytes: Max bytes of its rows as they are written.
        rows: Max number of its rows.
    """

    name: str
    codecs: Mapping[int, Codec | None]
    around: int
    max_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class WriteKind:
    """Entries with one number that tells entries apart.

    Attributes:
        name: Words for such entries in messages, such as ``message of version 0``.
        cases: Layouts by their number in the kernels.
        needs: Columns that must be there.
    """

    name: str
    cases: Mapping[int, WriteCase]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Writer:
    """Description of how the rows of a view are written.

    Attributes:
        view: The view.
        kernels: Module of the kernels, which are there by the numbers of ``kinds``.
        kinds: Entries by the number that tells them apart.
        defaults: Number, or name of another column, for columns that rows may lack.
        places: Columns that say where a row was read. They are not written.
        checks: What may prevent that a row is written, by the numbers that kernels return.
        varying: Columns that readers compute for each row.
        slots: Numbers that kernels keep of an entry.
    """

    view: View
    kernels: str
    kinds: Mapping[int, WriteKind]
    defaults: Mapping[str, int | str]
    places: tuple[str, ...]
    checks: tuple[Check, ...]
    varying: tuple[str, ...]
    slots: int
