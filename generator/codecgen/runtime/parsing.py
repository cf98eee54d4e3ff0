"""One parse of a layout: windows over measured field ranges, checksums over covered ones, errors with their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import construct

from codecgen.runtime.arrays import Array, prefixed
from codecgen.runtime.errors import (
    ChecksumError,
    CodecError,
    LengthError,
    RuleBroken,
    TrailingError,
    ValueRefused,
    shown,
)
from codecgen.runtime.fields import Field, Fields
from codecgen.runtime.located_bytes import Source
from codecgen.runtime.parsed import Parsed, tell_elements
from codecgen.runtime.tags import SectionReader, Tags
from codecgen.runtime.zero_bytes import Padding


@dataclass(slots=True)
class LastArray:
    """The array that ends a layout. ``there`` says, once its elements are parsed, that it is neither null nor left out."""

    name: str
    there: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """A layout whose last array is not parsed yet.

    ``fields`` are those before the array; when ``error`` is set, those before the error. ``items`` parses
    the array's elements as they are asked for; a layout that ends with no array has none. Who takes the elements apart in
    another way asks ``section`` for their bytes (None: there are none), once and instead, and ``element`` for their path.
    """

    fields: Parsed
    items: Iterator[Any]
    error: CodecError | None = None
    array: LastArray | None = None
    section: Callable[[], Source | None] | None = None
    element: Callable[[CodecError, int | None], CodecError] | None = None
    """Gives an error the path of an element with this number; None: that of the array."""


class Parse:
    """The state of one parse: the values so far, windows that are open, where fields begin and end.

    With ``trailing`` lenient readers pass over bytes after the last field of the layout called ``name``. ``obj`` takes the values.
    """

    __slots__ = (
        "fields",
        "name",
        "obj",
        "source",
        "start",
        "starts",
        "trailing",
        "verified",
        "windows",
    )

    def __init__(
        self, name: str, fields: Fields, trailing: bool, source: Source, obj: Parsed
    ) -> None:
        self.name = name
        self.fields = fields
        self.trailing = trailing
        self.source = source
        self.start = source.pos
        self.obj = obj
        self.windows: list[
            tuple[Source, str | None]
        ] = []  # (what is around, the last field if not that of all)
        self.starts: dict[str, tuple[int, int]] = {}
        self.verified: set[str] = set()
        if source.session.begun is not None:
            source.session.begun[source.session.path] = self.obj

    def whole(self) -> Parsed:
        """All fields."""
        for f in self.fields.all:
            self.field(f)
        self.finish()
        self.check_rules(self.obj)
        return self.obj

    def open(self) -> Opened:
        """All but the array that ends the layout (without one: all), so that what stands before an error can be had."""
        last = self.fields.all[-1]
        try:
            for f in self.fields.all[:-1]:
                self.field(f)
            if isinstance(last.codec, Array):
                self.begin(last)
                self.check_rules(self.obj, of_elements=False)
                array = LastArray(last.name)
                return Opened(
                    self.obj,
                    self.elements(last, last.codec, array),
                    array=array,
                    section=partial(self.section, last, last.codec),
                    element=partial(self.in_element, last),
                )
            self.field(last)
            self.finish()
            self.check_rules(self.obj)
        except CodecError as error:
            return Opened(self.obj, iter(()), error.without_frames())
        return Opened(self.obj, iter(()))

    @property
    def ends_known(self) -> bool:
        """Whether the current window is the layout to its end."""
        return any(last is None for _, last in self.windows)

    def section(self, f: Field, codec: Array) -> Source | None:
        """The bytes that elements lie in, decompressed. Raises what is wrong with what stands before them."""
        try:
            return codec.section(self.source, self.obj, codec.number(self.source, self.obj))
        except CodecError as error:
            raise self.fields.at(error, f, self.source) from None

    def in_element(self, f: Field, error: CodecError, i: int | None) -> CodecError:
        return self.fields.at(error if i is None else prefixed(error, f"[{i}]"), f, self.source)

    def elements(self, f: Field, codec: Array, array: LastArray) -> Iterator[Any]:
        session = self.source.session
        findings = session.findings
        ruled = (session.strict or session.rules) and any(
            rule.array == f.name for rule in self.fields.rules
        )
        kept: list[Any] = []
        if f.refuse is not None or f.valid is not None:
            # What the field says holds for all of the array: its elements come when they are known.
            self.value(f)
            found = self.obj[f.name]
            array.there = found is not None
            self.finish()
            self.check_rules(self.obj, of_elements=True)
            yield from found or ()
            return
        if f.when is None or f.when(self.obj):
            noticed = len(findings)
            try:
                for item in codec.items(self.source, self.obj, array):
                    for finding in findings[noticed:]:
                        self.fields.at(finding, f)
                    if ruled:
                        kept.append(item)
                    yield item
                    noticed = len(findings)
                for finding in findings[noticed:]:
                    self.fields.at(finding, f)
            except CodecError as error:
                for finding in findings[noticed:]:
                    self.fields.at(finding, f)
                raise self.fields.at(error, f, self.source) from None
        self.finish()
        if ruled:
            self.check_rules({**self.obj, f.name: kept}, of_elements=True)

    def check_rules(self, fields: Mapping[str, Any], *, of_elements: bool | None = None) -> None:
        """Apply the rules of the layout. ``of_elements``: those that ask for elements of the last array, or the others."""
        session = self.source.session
        if not self.fields.rules or not (session.strict or session.rules):
            return
        this = construct.Container(fields)
        last = self.fields.all[-1].name
        for rule in self.fields.rules:
            if of_elements is not None and (rule.array == last) is not of_elements:
                continue
            reason = rule.find_breach(this)
            if reason is not None:
                start, _ = self.starts.get(rule.about, (self.source.pos, 0))
                error = RuleBroken(reason, self.source.where(start))
                session.tolerate(self.fields.in_rule(error, rule))

    def field(self, f: Field) -> None:
        if f.tag is not None:  # in the section of tagged fields
            return
        self.begin(f)
        self.value(f)

    def value(self, f: Field) -> None:
        """A field, once the windows that begin with it are open."""
        source, obj = self.source, self.obj
        if f.in_layout and isinstance(f.codec, Tags):
            start = source.pos
            SectionReader(self.fields, f, f.codec).read(source, obj)
            self.starts[f.name] = (start, source.pos)
            self.close(f)
            return
        if f.when is not None and not f.when(obj):
            obj[f.name] = None
            self.close(f)
            return
        start = source.pos
        session = source.session
        noticed = len(session.findings)
        if session.trace is not None:
            session.prefix.append(f.name)
        try:
            if f.in_layout and isinstance(f.codec, Padding):
                value = None
                f.codec.take(source, f.codec.number(start - self.start))
            else:
                value = f.codec.read(source, obj) if f.tail is None else self.rest(f)
            obj[f.name] = value
            if f.of_each:
                tell_elements(value, obj, f.of_each)
            self.starts[f.name] = (start, source.pos)
            if f.const is not None and value != f.const:
                reason = f"{shown(value)} stands where only {shown(f.const)} may"
                wrong = ValueRefused(reason, source.where(start))
                if f.is_version and not session.any_version:
                    raise wrong
                session.tolerate(wrong)
            if f.refuse is not None and f.refuse.holds(obj):
                raise ValueRefused(f.refuse.broken(value), source.where(start))
            if f.valid is not None and not f.valid.holds(obj):
                session.tolerate(ValueRefused(f.valid.missed(value), source.where(start)))
            for finding in session.findings[noticed:]:
                self.fields.at(finding, f)
        except CodecError as error:
            for finding in session.findings[noticed:]:
                self.fields.at(finding, f)
            raise self.fields.at(error, f, source) from None
        finally:
            if session.trace is not None:
                session.trace.append((session.path, start, source.pos, source.inner))
                session.prefix.pop()
        self.close(f)

    def begin(self, f: Field) -> None:
        """Open the windows that begin with a field, and verify the checksums over them where the end is known."""
        for measure in f.opened_by:
            n = self.obj[measure.name]
            if n is None:
                continue
            around = self.source
            try:
                if 0 <= n < measure.own_bytes:
                    reason = f"{measure.name} is {n}, less than its own {measure.own_bytes} bytes"
                    raise LengthError(reason)
                self.source = around.window(n - measure.own_bytes if n > 0 else n, measure.name)
            except LengthError as error:
                error.where = around.where(self.starts[measure.name][0])
                raise self.fields.at(error, measure) from None
            assert measure.measures is not None
            self.windows.append((around, measure.measures[1]))
        for check in f.checked_by:
            if self.ends_known:
                self.verify(check, [(self.source.pos, self.source.end)])

    def close(self, f: Field) -> None:
        while self.windows and self.windows[-1][1] == f.name:
            self.leave()

    def leave(self) -> None:
        window = self.source
        around, last = self.windows.pop()
        if window.left:
            error = TrailingError(
                f"{window.left} bytes are left of the range that {self.name} measures",
                window.where(),
            )
            if not (self.trailing and last is None):
                raise error.located(schema=self.fields.source_file)
            window.session.tolerate(error)
        self.source = around

    def finish(self) -> None:
        end = self.source.pos
        for f in self.fields.all:
            if f.covers and f.name not in self.verified and self.obj[f.name] is not None:
                ends = [(self.start_of(a), self.end_of(b) if b else end) for a, b in f.covers]
                self.verify(f, ends)
        while self.windows:
            self.leave()

    def start_of(self, name: str) -> int:
        names = self.fields.names
        for later in names[names.index(name) :]:
            if later in self.starts:
                return self.starts[later][0]
        return self.source.pos

    def end_of(self, name: str) -> int:
        names = self.fields.names
        for earlier in reversed(names[: names.index(name) + 1]):
            if earlier in self.starts:
                return self.starts[earlier][1]
        return self.source.pos

    def verify(self, f: Field, ranges: list[tuple[int, int]]) -> None:
        self.verified.add(f.name)
        source = self.source
        stored = self.obj.get(f.name)
        if f.checksum is None or stored is None:
            return
        data = self.covered(f, ranges)
        computed = f.checksum(data)
        if computed != stored:
            reason = f"stored checksum {stored}, computed {computed} over {len(data)} bytes"
            error = ChecksumError(reason, source.where(self.starts[f.name][0]))
            source.session.tolerate(self.fields.at(error, f))

    def covered(self, f: Field, ranges: list[tuple[int, int]]) -> bytes | memoryview:
        """The bytes that a checksum is taken over."""
        whole = memoryview(self.source.data)
        if len(ranges) == 1 and not f.zero:
            return whole[slice(*ranges[0])]
        out = b"".join(whole[begin:end] for begin, end in ranges)
        if not f.zero:
            return out
        zeroed = bytearray(out)
        at = 0
        for begin, end in ranges:
            for name in f.zero & self.starts.keys():
                first, after = self.starts[name]
                if begin <= first and after <= end:
                    zeroed[at + first - begin : at + after - begin] = bytes(after - first)
            at += end - begin
        return bytes(zeroed)

    def rest(self, f: Field) -> Any:
        """Bytes to the end of the field range, less what the fixed fields after them take."""
        source = self.source
        after = 0
        last = self.windows[-1][1] if self.windows else None
        for later in () if f.name == last else f.tail or ():
            if later.when is None or later.when(self.obj):
                after += later.codec.size or 0
            if later.name == last:
                break
        n = source.left - after
        if n < 0:
            raise source.short(after)
        window = source.window(n, f.name)
        return f.codec.read(window, self.obj)
