"""Values from outside: those that a layout is given by whoever holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codecgen.runtime.arrays import Array
from codecgen.runtime.errors import BuildError, describe_value, prefix_path
from codecgen.runtime.located_bytes import Condition, Session, Source
from codecgen.runtime.parsed import arrays_of
from codecgen.runtime.primitives import Codec


@dataclass(frozen=True, slots=True)
class Given:
    """A value that a layout is given. ``codec`` is that of its type; the value has no bytes in the layout."""

    name: str
    codec: Codec

    @property
    def is_array(self) -> bool:
        """Return whether the value is an array, which is an attribute of parsed values and no item."""
        return isinstance(self.codec, Array)

    def checked(self, value: Any) -> Any:
        """Return a value of a caller as parsers have it, such as the member of an enum for its name. Raise BuildError,
        whose path is the name, if it is missing or of another type.
        """
        try:
            if value is None:
                raise BuildError(
                    "a value is needed that the caller gives (given), because the layout does not contain it"
                )
            data = self.codec.write(value, None, Session())
        except BuildError as error:
            raise prefix_path(error, self.name) from None
        return self.codec.read(Source(data, Session()), None)


def given_values(declared: tuple[Given, ...], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the declared values from those of a caller; others are ignored. Raise BuildError if one is missing or of another
    type.
    """
    return {one.name: one.checked((given or {}).get(one.name)) for one in declared}


def built_values(
    declared: tuple[Given, ...], this: Mapping[str, Any] | None, value: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the declared values for a build: those of the layout around (``this``), or without one
    those of ``value`` itself. Without ``this`` raise BuildError if one is missing or of another
    type. With it raise BuildError if ``value`` has another one than the layout around, or one of
    another type.
    """
    if this is None:
        known = {**arrays_of(value), **value}
        return {one.name: one.checked(known.get(one.name)) for one in declared}
    for one in declared:
        own = value.get(one.name)
        if own is not None and one.checked(own) != this[one.name]:
            reason = (
                f"{describe_value(own)} was given, but the layout around gives "
                f"{describe_value(this[one.name])}: leave {one.name} out"
            )
            raise BuildError(reason).located(path=one.name)
    return dict(this)


def values_from(values: Mapping[str, Condition], this: Any) -> dict[str, Any]:
    """Return each value of ``values``, computed from the fields ``this``."""
    return {name: compute(this) for name, compute in values.items()}


class Giving(Codec):
    """A layout that is given values: ``values`` returns each from the fields of the layout around, by name."""

    def __init__(self, layout: Codec, values: Mapping[str, Condition]) -> None:
        super().__init__()
        self.layout = layout
        self.values = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("size", "name", "docs", "flagbuildnone", "parsed"):
            raise AttributeError(name)
        return getattr(self.layout, name)

    def read(self, source: Source, this: Any) -> Any:
        """Return the layout at the head of ``source``. Raise CodecError if the bytes do not parse."""
        return self.layout.read(source, values_from(self.values, this))

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a mapping of fields. Raise BuildError if they cannot be written."""
        data: bytes = self.layout.write(value, values_from(self.values, this), session)
        return data


__all__ = ["Given", "Giving", "built_values", "given_values", "values_from"]
