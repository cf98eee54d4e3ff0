"""One parse of a layout: windows over measured field ranges, checksums over covered ones, located errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import construct

from codecgen.runtime.arrays import Array
from codecgen.runtime.errors import (
    ChecksumError,
    CodecError,
    LengthError,
    RuleBroken,
    TrailingError,
    ValueRefused,
    describe_value,
    prefix_path,
)
from codecgen.runtime.fields import Field, Fields
from codecgen.runtime.located_bytes import Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.parsed import Parsed, link_elements
from codecgen.runtime.tags import SectionReader, Tags
from codecgen.runtime.zero_bytes import Padding


@dataclass(slots=True)
class LastArray:
    """The array that ends a layout. ``there`` becomes True when its elements are parsed, unless it is null or absent."""

    name: str
    there: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """A layout whose last array is not parsed yet.

    Attributes:
        fields: The fields before the array, or before the error.
        items: Parses the elements of the array one by one. Empty if no array ends the layout.
        error: The error that ended the parse of the fields, or None.
        array: The array that ends the layout, or None.
        section: Returns the bytes of the elements, once and instead of ``items``; None if there are no elements.
        element: Adds the path of an element, by its index, to an error; None as the index stands for the array.
        check: Checks the rules of the layout about the elements, once all are parsed. ``items`` does that itself.
    """

    fields: Parsed
    items: Iterator[Any]
    error: CodecError | None = None
    array: LastArray | None = None
    section: Callable[[], Source | None] | None = None
    element: Callable[[CodecError, int | None], CodecError] | None = None
    check: Callable[[Sequence[Any]], None] | None = None


class Parse:
    """State of one parse: the values so far, open windows, and where fields begin and end.

    With ``trailing``, lenient readers skip bytes after the last field of the layout ``name``. ``obj`` receives the
    values.
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

    def parse(self) -> Parsed:
        """Parse all fields, and return them as a Parsed. Raise CodecError if a field does not
        parse, bytes are left of a measured range, a derived value looks up an element that an array
        lacks, or a checksum or rule is broken; a lenient session takes wrong checksums as findings
        and, unless ``rules`` is set, skips the layout's rules.
        """
        for f in self.fields.all:
            self.parse_field(f)
        self.finish()
        self.check_look_ups()
        self.check_rules(self.obj)
        return self.obj

    def open(self) -> Opened:
        """Parse all fields but the array that ends the layout, and return them with an iterator
        that parses its elements, then verifies what needs the end; the iterator raises CodecError.
        A CodecError before the array is not raised, but stored in the result with the fields before
        it. Then, and without an array at the end, where all fields are parsed, the iterator is
        empty.
        """
        last = self.fields.all[-1]
        try:
            for f in self.fields.all[:-1]:
                self.parse_field(f)
            if isinstance(last.codec, Array):
                self.open_windows(last)
                self.check_rules(self.obj, of_elements=False)
                array = LastArray(last.name)
                return Opened(
                    self.obj,
                    self.elements(last, last.codec, array),
                    array=array,
                    section=partial(self.section, last, last.codec),
                    element=partial(self.in_element, last),
                    check=partial(self.check_elements, last),
                )
            self.parse_field(last)
            self.finish()
            self.check_look_ups()
            self.check_rules(self.obj)
        except CodecError as error:
            return Opened(self.obj, iter(()), error.without_frames())
        return Opened(self.obj, iter(()))

    @property
    def ends_known(self) -> bool:
        """Return whether an open window ends where the layout ends."""
        return any(last is None for _, last in self.windows)

    def section(self, f: Field, codec: Array) -> Source | None:
        """Read the count and length of an array, and return the bytes of its elements as a Source,
        decompressed. Return None if the count is 0, no length follows and the array has to end its
        section; with a length, an empty array gives an empty Source. Raise CodecError, whose path
        names the field, if the count or length is invalid, bytes follow a count of 0, arrays nest
        too deep, or the codec is unknown. A number for null is not recognized.
        """
        start = self.source.pos
        try:
            section = codec.section(self.source, self.obj, codec.number(self.source, self.obj))
        except CodecError as error:
            raise self.fields.locate(error, f, self.source) from None
        self.starts[f.name] = (start, self.source.pos)
        return section

    def in_element(self, f: Field, error: CodecError, i: int | None) -> CodecError:
        """Add the path of an element, or of the array if the index is None, to an error, with its
        YAML line and, if unknown, the position. Return the error.
        """
        return self.fields.locate(
            error if i is None else prefix_path(error, f"[{i}]"), f, self.source
        )

    def elements(self, f: Field, codec: Array, array: LastArray) -> Iterator[Any]:
        """Yield the elements of the last array, then verify checksums, windows and rules that need
        the end. If the field has rules of its own, or the layout looks elements up, yield only after all is checked. Yield nothing
        if it is absent or null, else set ``array.there``. Raise CodecError, whose path names the
        field, if an element, checksum or rule is invalid.
        """
        session = self.source.session
        findings = session.findings
        ruled = (session.strict or session.rules) and any(
            rule.array == f.name for rule in self.fields.rules
        )
        kept: list[Any] = []
        if f.refuse is not None or f.valid is not None or self.fields.look_ups:
            # What the field says holds for all of the array: its elements come when they are known.
            self.parse_value(f)
            found = self.obj[f.name]
            array.there = found is not None
            self.finish()
            self.check_look_ups()
            self.check_rules(self.obj, of_elements=True)
            yield from found or ()
            return
        if f.when is None or f.when(self.obj):
            start, noticed = self.source.pos, len(findings)
            try:
                for item in codec.items(self.source, self.obj, array):
                    for finding in findings[noticed:]:
                        self.fields.locate(finding, f)
                    if ruled:
                        kept.append(item)
                    yield item
                    noticed = len(findings)
                for finding in findings[noticed:]:
                    self.fields.locate(finding, f)
            except CodecError as error:
                for finding in findings[noticed:]:
                    self.fields.locate(finding, f)
                raise self.fields.locate(error, f, self.source) from None
            self.starts[f.name] = (start, self.source.pos)
        self.finish()
        if ruled:
            self.check_elements(f, kept)

    def check_elements(self, f: Field, items: Sequence[Any]) -> None:
        """Check the layout's rules about ``items``, all elements of the last array. Raise
        RuleBroken as :meth:`check_rules` does.
        """
        self.check_rules({**self.obj, f.name: items}, of_elements=True)

    def check_look_ups(self) -> None:
        """Raise ValueRefused, also in a lenient session, for the first derived value that looks up
        an element which an array does not have. Its place is the byte of the field with the number.
        """
        if not self.fields.look_ups:
            return
        try:
            self.fields.check_look_ups(self.obj)
        except ValueRefused as error:
            name = str(error.where.path).partition("[")[0]
            start, _ = self.starts.get(name, (self.start, 0))
            where = self.source.where(start)
            raise error.located(
                position=where.position, stream_position=where.stream_position, file=where.file
            ) from None

    def check_rules(self, fields: Mapping[str, Any], *, of_elements: bool | None = None) -> None:
        """Check the layout's rules: those about elements of the last array (``of_elements`` True),
        the others (False), or all (None). Raise RuleBroken in a strict session for a broken one. A
        lenient session adds it to the findings if ``rules`` is set, and else checks nothing.
        """
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

    def parse_field(self, f: Field) -> None:
        """Open the windows that begin with a field, and parse its value. Do nothing for a tagged
        field, which the section of tagged fields holds. Raise CodecError, whose path names the
        field, if it does not parse or breaks a rule of its own.
        """
        if f.tag is not None:  # in the section of tagged fields
            return
        self.open_windows(f)
        self.parse_value(f)

    def parse_value(self, f: Field) -> None:
        """Parse the value of a field into ``obj``, None if its condition does not hold, check its
        constant and rules, and close its windows. Raise CodecError, whose path names the field, if
        it does not parse or a check fails; a lenient session takes a broken ``valid`` rule and a
        wrong constant (that of a version only with ``any_version``) as findings.
        """
        source, obj = self.source, self.obj
        if f.in_layout and isinstance(f.codec, Tags):
            start = source.pos
            SectionReader(self.fields, f, f.codec).read(source, obj)
            self.starts[f.name] = (start, source.pos)
            self.close_windows(f)
            return
        if f.when is not None and not f.when(obj):
            obj[f.name] = None
            self.close_windows(f)
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
                value = f.codec.read(source, obj) if f.tail is None else self.read_rest(f)
            obj[f.name] = value
            if f.of_each:
                link_elements(value, obj, f.of_each)
            self.starts[f.name] = (start, source.pos)
            if f.const is not None and value != f.const:
                reason = f"{describe_value(value)} stands where only {describe_value(f.const)} may"
                wrong = ValueRefused(reason, source.where(start))
                if f.is_version and not session.any_version:
                    raise wrong
                session.tolerate(wrong)
            if f.refuse is not None and f.refuse.holds(obj):
                raise ValueRefused(f.refuse.broken(value), source.where(start))
            if f.valid is not None and not f.valid.holds(obj):
                session.tolerate(ValueRefused(f.valid.missed(value), source.where(start)))
            for finding in session.findings[noticed:]:
                self.fields.locate(finding, f)
        except CodecError as error:
            for finding in session.findings[noticed:]:
                self.fields.locate(finding, f)
            raise self.fields.locate(error, f, source) from None
        finally:
            if session.trace is not None:
                session.trace.append((session.path, start, source.pos, source.inner))
                session.prefix.pop()
        self.close_windows(f)

    def open_windows(self, f: Field) -> None:
        """Narrow ``source`` to each measured field range that begins with a field, and verify the
        checksums from there to a known end. A range whose length is absent is not opened. Raise
        LengthError if a length is negative, less than the bytes that it has to count, or more than
        what is left (then the pending error, if there is one); in a strict session ChecksumError.
        """
        for measure in f.opened_by:
            n = self.obj[measure.name]
            if n is None:
                continue
            around = self.source
            try:
                if 0 <= n < measure.own_bytes:
                    reason = f"{measure.name} is {n}, less than its own {count_noun(measure.own_bytes, 'byte')}"
                    raise LengthError(reason)
                if measure.excess and n < measure.excess:
                    raise LengthError(
                        f"{measure.name} is {n}, but must be at least {measure.excess}"
                    )
                own = measure.own_bytes if n > 0 else 0
                self.source = around.window(n - own - measure.excess, measure.name)
            except LengthError as error:
                error.where = around.where(self.starts[measure.name][0])
                raise self.fields.locate(error, measure) from None
            assert measure.measures is not None
            self.windows.append((around, measure.measures[1]))
        for check in f.checked_by:
            if self.ends_known:
                self.verify(check, [(self.source.pos, self.source.end)])

    def close_windows(self, f: Field) -> None:
        """Close all windows that end with a field, and go on in the one around them. Raise
        TrailingError if bytes are left in one; a lenient session adds a finding if it ends a layout
        with ``trailing``.
        """
        while self.windows and self.windows[-1][1] == f.name:
            self.leave_window()

    def leave_window(self) -> None:
        """Close the innermost window, and go on in the one around it. Raise TrailingError if bytes
        are left in it. If it reaches to the end of a layout with ``trailing``, a lenient session
        adds a finding instead.
        """
        window = self.source
        around, last = self.windows.pop()
        if window.left:
            error = TrailingError(
                f"{count_noun(window.left, 'byte is', 'bytes are')} left of the range that {self.name} measures",
                window.where(),
            )
            if not (self.trailing and last is None):
                raise error.located(schema=self.fields.source_file)
            window.session.tolerate(error)
        self.source = around

    def finish(self) -> None:
        """Verify the checksums that are not verified yet, and close all windows. Raise
        ChecksumError in a strict session if one is wrong (a finding in a lenient one);
        TrailingError if bytes are left in a window, unless a lenient session may skip them
        (``trailing``).
        """
        end = self.source.pos
        for f in self.fields.all:
            if f.covers and f.name not in self.verified and self.obj[f.name] is not None:
                ends = [(self.start_of(a), self.end_of(b) if b else end) for a, b in f.covers]
                self.verify(f, ends)
        while self.windows:
            self.leave_window()

    def start_of(self, name: str) -> int:
        """Return the index of the first byte of a field; if it is absent, that of the next present
        field, or the current position if there is none.
        """
        names = self.fields.names
        for later in names[names.index(name) :]:
            if later in self.starts:
                return self.starts[later][0]
        return self.source.pos

    def end_of(self, name: str) -> int:
        """Return the index after the last byte of a field; if it is absent, that of the last
        present field before it, or the current position if there is none.
        """
        names = self.fields.names
        for earlier in reversed(names[: names.index(name) + 1]):
            if earlier in self.starts:
                return self.starts[earlier][1]
        return self.source.pos

    def verify(self, f: Field, ranges: list[tuple[int, int]]) -> None:
        """Compare a stored checksum with the one computed over ``ranges`` of (first byte, end).
        Raise ChecksumError in a strict session if they differ; a lenient one adds a finding. Raise
        UnsupportedCodec if the package of the checksum is not installed. An absent checksum passes.
        Either way the field counts as verified.
        """
        self.verified.add(f.name)
        source = self.source
        stored = self.obj.get(f.name)
        if f.checksum is None or stored is None:
            return
        data = self.covered(f, ranges)
        computed = f.checksum(data)
        if computed != stored:
            reason = f"stored checksum {stored}, computed {computed} over {count_noun(len(data), 'byte')}"
            error = ChecksumError(reason, source.where(self.starts[f.name][0]))
            source.session.tolerate(self.fields.locate(error, f))

    def covered(self, f: Field, ranges: list[tuple[int, int]]) -> bytes | memoryview:
        """Return the bytes of ``ranges`` (first byte, end), joined, over which a checksum is
        computed. Fields in ``f.zero`` that lie in one range are replaced by zero bytes.
        """
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

    def read_rest(self, f: Field) -> Any:
        """Return the value of a field that takes all bytes to the end of its window, except the
        present fields of fixed size after it. Raise TruncatedError, or the pending error, if too
        few bytes are left for those; CodecError if the value does not parse.
        """
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
            raise source.truncated_error(after)
        window = source.window(n, f.name)
        return f.codec.read(window, self.obj)
