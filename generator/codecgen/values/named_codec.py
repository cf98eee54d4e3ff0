"""Find the codec that a user names: a layout, one of its versions, or a choice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from codecgen.diagnostics import suggest
from codecgen.plan import LayoutPlan, Plan
from codecgen.runtime.enums import list_numbers
from codecgen.runtime.errors import CodecError
from codecgen.runtime.layout import Choice as ChoiceCodec
from codecgen.runtime.layout import Layout as LayoutCodec
from codecgen.runtime.located_bytes import Source
from codecgen.schema.declarations import used_of
from codecgen.schema.model import Choice, Layout
from codecgen.schema.reader import parse_hex, parse_integer
from codecgen.targets.construct.homes import symbol
from codecgen.targets.live_codecs import Codecs


class UnknownCodecError(Exception):
    """The name does not identify a codec. The text says which name would."""


@dataclass(frozen=True, slots=True)
class NamedCodec:
    """A codec and its name. A choice finds its layout in the bytes or in the values. ``given`` has the values that the layout
    gets from outside.
    """

    name: str
    plan: Plan
    codec: LayoutCodec | ChoiceCodec
    given: Mapping[str, object] | None = None

    def layout_of_bytes(self, source: Source) -> LayoutPlan:
        """Return the layout of the bytes at the position of ``source``. Raise CodecError if no layout matches."""
        codec = self.codec
        return self._plan_of(codec if isinstance(codec, LayoutCodec) else codec.case(source))

    def layout_of_values(self, values: Mapping[str, object]) -> tuple[LayoutPlan, LayoutCodec]:
        """Return (plan, codec) of the layout that ``values`` select through the discriminators of
        the choice and of choices inside it, as numbers or enum names. If the codec is no choice,
        return its own and look at no value. Raise CodecError if a discriminator is missing or
        unknown.
        """
        codec: LayoutCodec | ChoiceCodec | None = self.codec
        while isinstance(codec, ChoiceCodec):
            by, known = codec.by, list_numbers(codec.cases)
            codec = codec.case_of(values.get(by))
            if codec is None:
                if by in values:
                    reason = f"{values[by]!r} is not one of {known}, which choose the {self.name}"
                    raise CodecError(reason).located(path=by)
                raise CodecError(f"{by} is needed, which chooses the {self.name}: one of {known}")
        assert codec is not None
        return self._plan_of(codec), codec

    def _plan_of(self, codec: LayoutCodec) -> LayoutPlan:
        """Return the plan of a codec: of its layout, version and fields, in this directory or a
        used one. Raise LookupError if there is none.
        """
        for plans in (self.plan.versions, used_of(self.plan.versions)):
            for plan in _find_plans(plans, codec):
                names = [fp.name for fp in plan.fields]
                if plan.version == codec.version and names == codec.related.names:
                    return plan
        raise LookupError(codec.layout_name)


def _find_plans(
    plans: Mapping[str, tuple[LayoutPlan, ...]], codec: LayoutCodec
) -> Iterator[LayoutPlan]:
    """Yield the plans, in all versions, of the layouts that have a codec's name, apart from a
    prefix, and its source file.
    """
    for name, versions in plans.items():
        file = versions[0].layout.span.file
        if name.rpartition(".")[2] == codec.layout_name and file.endswith(codec.source_file):
            yield from versions


def format_layout(plan: LayoutPlan) -> str:
    """Return the name of a layout with its version: ``message@1``."""
    return plan.name if plan.version is None else f"{plan.name}@{plan.version}"


def find_codec(plan: Plan, codecs: Codecs, text: str, given: str | None) -> NamedCodec:
    """Return the codec for ``layout``, ``layout@version`` or a choice. ``given`` is the
    discriminator of a choice that the bytes lack, or of a layout the values that it gets from
    outside: ``has_key=true,names=["a","b"]``; their names are not checked, and None is accepted.
    Raise UnknownCodecError if there is none, a version is unknown or needed, ``given`` is malformed,
    unknown or (of a choice) needed, or either stands where it has no meaning.
    """
    name, at, version = text.partition("@")
    model = plan.model
    if name in model.layouts:
        layout = model.layouts[name]
        if given is not None and not layout.given:
            raise UnknownCodecError(f"{name} is a layout, not a choice: leave out --given")
        found = _find_layout(plan, codecs, layout, version if at else None)
        return replace(found, given=None if given is None else _read_given(given))
    if name in model.choices:
        if at:
            raise UnknownCodecError(f"{name} is a choice, which has no versions")
        return _find_choice(plan, codecs, model.choices[name], given)
    known = [*model.layouts, *model.choices]
    hint = suggest(name, known, "declared layouts and choices")
    raise UnknownCodecError(f"unknown layout {name!r}; {hint}")


def _read_given(text: str) -> dict[str, object]:
    """Return the values of ``name=value,name=value`` by name: truth values, numbers, arrays as JSON
    lists, and all other words, such as names of enum values, as text. Of a repeated name the last
    value counts. Raise UnknownCodecError if an item has another form, also for empty text.
    """
    out: dict[str, object] = {}
    rest = text
    while rest or not out:
        name, equals, value = rest.partition("=")
        if not equals or "," in name:
            item = rest.partition(",")[0]
            raise UnknownCodecError(f"--given {text}: write name=value, not {item!r}")
        if value.startswith("["):
            out[name.strip()], rest = _read_list(text, value)
        else:
            word, _, rest = value.partition(",")
            number = parse_integer(word)
            words = {"true": True, "false": False}
            out[name.strip()] = words.get(word, word) if number is None else number
    return out


def _read_list(text: str, rest: str) -> tuple[object, str]:
    """Return the JSON list at the head of ``rest``, and the text behind the comma after it, ``""``
    if nothing follows. Objects ``{"hex": ".."}`` in the list become bytes. ``text`` is the whole
    option, for errors. Raise UnknownCodecError if there is no such list, or something other than a
    comma follows it.
    """
    try:
        found, end = json.JSONDecoder(object_hook=_read_bytes).raw_decode(rest)
    except ValueError as error:
        raise UnknownCodecError(f"--given {text}: {rest!r} is not a JSON list: {error}") from None
    if rest[end : end + 1] not in ("", ","):
        raise UnknownCodecError(f"--given {text}: write a comma after a list, not {rest[end:]!r}")
    return found, rest[end + 1 :]


def _read_bytes(value: dict[str, Any]) -> object:
    """Return the bytes of ``{"hex": ".."}``; other objects as they are."""
    digits = value.get("hex")
    data = parse_hex(digits) if list(value) == ["hex"] and isinstance(digits, str) else None
    return value if data is None else data


def _find_layout(plan: Plan, codecs: Codecs, layout: Layout, version: str | None) -> NamedCodec:
    """Return the codec of a layout: of ``version``, of its only version or, if it has a version
    field, of any. Raise UnknownCodecError if ``version`` is unknown, or is None although the bytes
    do not give the version.
    """
    plans = plan.versions[layout.name]
    if version is not None:
        wanted = int(version) if version.isdecimal() and version.isascii() else None
        plans = tuple(p for p in plans if p.version == wanted and wanted is not None)
        if not plans:
            there = "no versions" if layout.versions is None else f"versions {layout.versions}"
            raise UnknownCodecError(f"{layout.name} has {there}, not {version!r}")
    if len(plans) == 1:
        return NamedCodec(format_layout(plans[0]), plan, codecs.layout(plans[0]))
    if layout.version_is is None:
        names = _join_alternatives(f"{layout.name}@{p.version}" for p in plans)
        raise UnknownCodecError(
            f"the bytes of {layout.name} do not say their version: name {names}"
        )
    return NamedCodec(layout.name, plan, codecs.any_version(plans[0]))


def _find_choice(plan: Plan, codecs: Codecs, choice: Choice, given: str | None) -> NamedCodec:
    """Return the codec of a choice by a field, or of the case that ``given`` selects. Raise
    UnknownCodecError if ``given`` is missing or unknown, is given for a choice by a field, or the
    version of the case is not determined.
    """
    codec = getattr(codecs.module(choice.span.file), symbol(choice.name))
    if choice.by is not None:
        if given is not None:
            raise UnknownCodecError(
                f"{choice.name} is chosen by its field {choice.by}: leave out --given"
            )
        return NamedCodec(choice.name, plan, codec)
    cases = dict(zip((str(key) for key, _ in choice.cases), codec.values(), strict=True))
    if given not in cases:
        wrong = "" if given is None else f"{given!r} is not one of them; "
        raise UnknownCodecError(
            f"{choice.name} is chosen by a {choice.given or choice.given_type}: {wrong}name it with --given {_list_cases(choice)}"
        )
    if isinstance(cases[given], Mapping):  # it is told its version where it is held
        ref = next(ref for key, ref in choice.cases if str(key) == given)
        return _find_layout(plan, codecs, plan.model.layouts[ref.layout], None)
    return NamedCodec(f"{choice.name} of {given}", plan, cases[given])


def _list_cases(choice: Choice) -> str:
    """Return the cases of a choice for a message: values of the enum as ``a, b or c``, numbers as
    ``0-127, 192``.
    """
    keys = [key for key, _ in choice.cases]
    numbers = [key for key in keys if isinstance(key, int)]
    return list_numbers(numbers) if numbers else _join_alternatives(map(str, keys))


def _join_alternatives(words: Iterable[str]) -> str:
    """Return words as ``a, b or c``."""
    *head, last = words
    return f"{', '.join(head)} or {last}" if head else last
