"""Layouts: fields in the order of the bytes, related by lengths, counts and checksums; and choices between layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Generic

import construct

from codecgen.runtime.arrays import Array
from codecgen.runtime.building import Build
from codecgen.runtime.byte_strings import Bytes
from codecgen.runtime.declared import Declared
from codecgen.runtime.entry_points import B, EntryPoint, P
from codecgen.runtime.enums import list_numbers
from codecgen.runtime.errors import (
    BuildError,
    CodecError,
    LengthError,
    TrailingError,
    TruncatedError,
    ValueRefused,
    prefix_path,
)
from codecgen.runtime.fast_path import FastPath, find_fast_path
from codecgen.runtime.fields import Field, Fields, GivenFields, Length
from codecgen.runtime.given import Given, built_values, given_values
from codecgen.runtime.leading_fields import Frames, LeadingFields, frames
from codecgen.runtime.located_bytes import DEFAULT_LIMITS, Session, Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.nullable import Nullable
from codecgen.runtime.parsed import Derived, Parsed, make_class
from codecgen.runtime.parsing import Opened, Parse
from codecgen.runtime.primitives import Codec, EnumField, Integer, Varint
from codecgen.runtime.rules import LayoutRule
from codecgen.runtime.zero_bytes import Padding


class Layout(EntryPoint[P, Any], Codec, Generic[P, B]):
    """Fields in the order of the bytes. It parses to a :class:`~codecgen.runtime.parsed.Parsed` and
    builds from a dict, such as a Parsed.

    ``source`` is the YAML file that describes the layout. With ``trailing``, lenient readers skip bytes after the
    last field. ``given`` are the values that whoever holds the layout gives it; parsed values begin with them, and
    have arrays among them as attributes. For type checkers ``P`` is the class of parsed values, and ``B`` the type of the values that
    ``build`` takes.

    Example:
        >>> from kafka_codecs import RECORD_BATCH
        >>> data = RECORD_BATCH.build({"records": [{"key": b"k", "value": b"v"}]})
        >>> RECORD_BATCH.parse(data).records[0].key
        b'k'
    """

    def __init__(
        self,
        name: str,
        *fields: Field,
        source: str = "",
        version: int | None = None,
        trailing: bool = False,
        given: tuple[Given, ...] = (),
    ) -> None:
        super().__init__()
        self.layout_name = name
        self.given = given
        self.fields = fields
        self.related = Fields(fields, source)
        self.by_name = self.related.by_name
        self.source_file = source
        self.version = version
        self.trailing = trailing
        in_order = tuple(f for f in fields if f.tag is None)
        self._offsets: dict[str, int] = {}
        at = 0
        for f in in_order:
            self._offsets[f.name] = at
            if isinstance(f.codec, Padding):
                f.codec.size = f.codec.number(at)
            if f.codec.size is None or f.when is not None:
                break
            at += f.codec.size
        self.leading_size = at
        """The bytes of all fields at fixed places: what lies before the first one that varies."""
        fixed = all(f.codec.size is not None and f.when is None for f in in_order)
        self.size = sum(f.codec.size or 0 for f in in_order) if fixed else None
        self.min_size = sum(_min_size(f.codec) for f in in_order if f.when is None)
        self.parsed_class = make_class(name, self.__module__, version)

    @property
    def full_name(self) -> str:
        """Return the name, with ``@`` and the version if the layout has one: ``message@1``."""
        return self.layout_name if self.version is None else f"{self.layout_name}@{self.version}"

    def __repr__(self) -> str:
        return f"<Layout {self.full_name}: {', '.join(f.name for f in self.fields)}>"

    def derives(self, *derived: Derived) -> None:
        """Set the values that parsed objects compute from their fields on access: those without
        ``each`` for the layout itself, the others for the elements of the array that ``each``
        names. Raise KeyError if the layout lacks that array.
        """
        own = {d.name: d for d in derived if d.each is None}
        self.parsed_class._derived = own
        self.related.look_ups = tuple(d for d in derived if d.looks_up is not None)
        for d in derived:
            if d.each is not None:
                self.by_name[d.each].of_each[d.name] = d

    def requires(self, *rules: LayoutRule) -> None:
        """Set the rules that strict parsers and builders apply to all fields together."""
        self.related.rules = rules

    # ------------------------------------------------------------ places

    def offset_of(self, name: str) -> int:
        """Return the offset in bytes of a field from the start of the layout. Raise KeyError if an
        optional field or one of varying size lies before it, it is a tagged field, or the layout
        has no such field.
        """
        if name not in self._offsets:
            raise KeyError(f"{name} does not lie at a fixed place in {self.layout_name}")
        return self._offsets[name]

    def is_fixed(self, name: str) -> bool:
        """Return whether a field is always present, at a fixed place, with a fixed size."""
        f = self.by_name[name]
        return name in self._offsets and f.codec.size is not None and f.when is None

    def size_of(self, name: str) -> int:
        """Return the size in bytes of a field, for an optional one that of a present value. Raise
        KeyError if it varies, or the layout has no such field.
        """
        size = self.by_name[name].codec.size
        if size is None:
            raise KeyError(f"{name} has no fixed size")
        return size

    def codec_of(self, name: str) -> Codec:
        """Return the codec of a field; raise KeyError for an unknown name."""
        return self.by_name[name].codec

    @cached_property
    def length(self) -> Length | None:
        """Return where the first integer lies that counts the layout's bytes to its end. Return
        None if there is none: it must have a fixed size and be always present, at a fixed place, as
        must be the field that it counts from. One that is larger than these bytes by a constant is
        none.
        """
        for f in self.fields:
            last = None if f.measures is None else f.measures[1]
            if f.measures is None or last is not None or f.excess:
                continue
            if not isinstance(f.codec, Integer):
                continue
            if f.when is None and {f.name, f.measures[0]} <= self._offsets.keys():
                at, before = self.offset_of(f.name), self.offset_of(f.measures[0])
                codec = f.codec
                return Length(f, at, codec.size, codec.signed, codec.endian, before)
        return None

    @cached_property
    def leading_fields(self) -> LeadingFields:
        """Return the reader of the leading fields of fixed size."""
        return LeadingFields(self.fields, self._offsets, self.length)

    @cached_property
    def fast_path(self) -> FastPath | None:
        """Return the generated functions for regular bytes and values, or None if there are none."""
        return find_fast_path(self.__module__, self.full_name)

    @property
    def framed(self) -> bool:
        """Return whether the length of the layout is known before it is read: it has a fixed size,
        or its first bytes tell it.
        """
        return self.size is not None or self.length is not None

    def case(self, source: Source) -> Layout:
        """Return the layout itself, whatever the bytes are."""
        del source
        return self

    def frame(self, source: Source) -> int | None:
        """Return the length in bytes of the layout at the head of ``source``, which may exceed the
        bytes that are left. ``source`` does not move. Return None if too few bytes are there to
        know it (or, for a fixed size, to hold it). Raise LengthError if the stored length is too
        small or refused; TypeError if neither size nor length is known.
        """
        found = self.length
        if found is None:
            if self.size is None:
                raise TypeError(
                    f"the layout {self.layout_name} has no length at a fixed place, so that its end is unknown before it is parsed"
                )
            return self.size if source.left >= self.size else None
        if source.left < found.end:
            return None
        f, at = found.field, source.pos + found.offset
        peek = Source(source.data, source.session, pos=at, end=source.end, origin=source.origin)
        length = f.codec.read(peek, None)
        if length < f.own_bytes or (
            f.refuse is not None and f.refuse.holds(construct.Container({f.name: length}))
        ):
            reason = f"{f.name} is {length}, too small for any {self.layout_name}"
            raise self.related.locate(LengthError(reason, source.where(at)), f)
        return found.before + int(length)

    # ------------------------------------------------------------ parsing

    def parse_whole(self, data: Any, position: int, session: Session) -> Parsed:
        """Return the layout that all of ``data`` encodes. Raise CodecError if it does not parse, or
        bytes follow it; with ``trailing``, a lenient session takes these as a finding. ``position``
        is where ``data`` begins in its file, for errors.
        """
        obj: Parsed
        fast = self.fast_path
        if fast is None or self.given or type(data) is not bytes:
            source = Source(data, session, origin=position)
            obj = self.read(source, None)
        else:  # without a Source if it is not needed
            found = fast.read_bytes(data, 0, len(data), session)
            end = 0
            if found is not None:
                obj, end = found
                if end == len(data):
                    return obj
            source = Source(data, session, pos=end, origin=position)
            if found is None:
                obj = self._read_fields(source, {})
        if source.left:
            error = TrailingError(
                f"{count_noun(source.left, 'byte follows', 'bytes follow')} the {self.layout_name}",
                source.where(),
            )
            if not self.trailing:
                raise error
            session.tolerate(error)
        return obj

    def read(self, source: Source, this: Any) -> Parsed:
        """Parse the layout at the head of ``source``, and return its fields. Ordinary bytes go to
        the generated fast parser, all others field by field. ``this`` has the values that the
        layout is given by the one around; None: the session has them. Raise CodecError if the bytes
        do not parse; LimitError if layouts nest deeper than the session allows.
        """
        given = self._given_values(source, this)
        fast = self.fast_path
        if fast is not None:
            found: Parsed | None = fast.read(source, *given.values())
            if found is not None:
                return found
        return self._read_fields(source, given)

    def _read_fields(self, source: Source, given: Mapping[str, Any]) -> Parsed:
        """Parse the layout at the head of ``source`` field by field, and return its fields, which
        begin with the values that it is ``given``. Raise CodecError if the bytes do not parse;
        LimitError if layouts nest deeper than the session allows.
        """
        session = source.session
        source.enter()
        before, session.decompressed = session.decompressed, 0
        try:
            return self._parse_of(source, given).parse()
        finally:
            session.decompressed = before
            session.depth -= 1

    def open(self, source: Source) -> Opened:
        """Parse all fields at the head of ``source``, except an array that ends the layout, and
        return them with an iterator over its elements. A CodecError before the array is not raised:
        the result has it as ``error``, with the fields before it. Raise ValueRefused if the caller
        passed no fitting value for one that the layout gets from outside.
        """
        source.session.decompressed = 0
        return self._parse_of(source, self._given_values(source, None)).open()

    def _given_values(self, source: Source, this: Any) -> dict[str, Any]:
        """Return the values that the layout is given, by name: those in ``this`` or, if it is None,
        those that the caller passed, converted to parsed values (further ones are ignored). Return
        ``{}`` if the layout declares none. Raise ValueRefused if the caller passed none for a
        declared name, or one that does not fit its type.
        """
        if not self.given:
            return {}
        if this is not None:
            return {one.name: this[one.name] for one in self.given}
        try:
            return given_values(self.given, source.session.given)
        except BuildError as error:
            refused = ValueRefused(f"{error.reason}; parse(.., given={{..}})", source.where())
            raise refused.located(path=error.where.path, schema=self.source_file) from None

    def _parse_of(self, source: Source, given: Mapping[str, Any]) -> Parse:
        """Return a new parse of the layout, which begins with the values that it is ``given``."""
        arrays = {one.name: given[one.name] for one in self.given if one.is_array}
        obj = self.parsed_class({name: given[name] for name in given if name not in arrays})
        return Parse(self.layout_name, self.related, self.trailing, source, obj.with_arrays(arrays))

    # ------------------------------------------------------------ building

    def build(self, obj: B, *, level: int | None = None, strict: bool = True) -> bytes:
        """Return the bytes of a dict with the layout's fields. Lengths, counts, checksums and
        compression are worked out, and fields with a default may be left out. Raise BuildError if
        ``obj`` is no dict, a name is unknown, or a value is missing, does not fit or breaks a rule
        (``strict=False`` skips rules that relate several fields). Raise UnsupportedCodec if the
        package of a compression codec or checksum is not installed.

        Args:
            obj: The values by the names of the fields. Fields with a default may be left out.
            level: The compression level.
            strict: Whether to refuse values that together break a rule of a layout. What readers do with such bytes can be
                tested with ``strict=False``.

        Raises:
            BuildError: if a value is missing, is not one that the field can have, or breaks a rule.
            UnsupportedCodec: if the package of a compression codec or checksum is not installed.
        """
        fast = self.fast_path
        if fast is not None and strict:
            found = fast.write(obj, level, DEFAULT_LIMITS.depth)
            if found is not None:
                return found
        return self._write_fields(obj, None, Session(level=level, strict=strict))

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a mapping of fields. Ordinary values go to the generated fast
        builder, all others are built field by field. Raise BuildError if the value is no dict, a
        name is unknown, a value is missing, does not fit or breaks a rule, or layouts nest deeper
        than the session allows; UnsupportedCodec if the package of a compression codec or checksum
        is not installed. ``this`` has the values that the layout is given by the one around; None:
        ``value`` has them.
        """
        # A build of an outer layout looks at what is filled in.
        fast = None if type(value) is GivenFields else self.fast_path
        if fast is not None and session.strict:
            found = fast.write(value, session.level, session.limits.depth - session.depth)
            if found is not None:
                return found
        return self._write_fields(value, this, session)

    def _write_fields(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a mapping of fields, built field by field. Raise BuildError if the
        value is no dict, a name is unknown, a value is missing, does not fit or breaks a rule, or
        layouts nest deeper than the session allows; UnsupportedCodec if the package of a
        compression codec or checksum is not installed.
        """
        session.enter()
        try:
            given = self.given and isinstance(value, dict)
            around = built_values(self.given, this, value) if given else {}
            return Build(self.layout_name, self.related, value, session, around).build()
        finally:
            session.depth -= 1


def _min_size(codec: Codec) -> int:
    """Return the minimum size in bytes of a value of a codec: its fixed size, else that of its
    length and count (0 without these), or of its fixed number of elements (one if a condition ends
    them). Layouts and choices state their own minimum; a nullable layout has that of its number. It
    is 0 for padding and for layouts that are looked up on first use, and 1 for any other codec that
    states none.
    """
    if codec.size is not None:
        return codec.size
    if isinstance(codec, Bytes):
        return _min_size(codec.length) if isinstance(codec.length, Codec) else 0
    if isinstance(codec, Array):
        if codec.compressed is None and (codec.fixed is not None or codec.until is not None):
            return (codec.fixed or 1) * _min_size(codec.element)
        return sum(
            _min_size(number) for number in (codec.count, codec.length) if number is not None
        )
    if isinstance(codec, Nullable):
        return _min_size(codec.present)
    if isinstance(codec, Layout | Choice):
        return codec.min_size
    return 0 if isinstance(codec, Lazy | Padding) else int(getattr(codec, "min_size", 1))


class Choice(EntryPoint[P, Any], Codec, Generic[P, B]):
    """One of several layouts, chosen by the value of the field ``by``, which is at the same offset in all of them.

    A case may be a choice itself; a layout with versions is one.
    """

    def __init__(
        self, name: str, by: str, cases: Mapping[int, Layout | Choice], source: str = ""
    ) -> None:
        super().__init__()
        self.choice_name = name
        self.by = by
        self.cases = cases
        self.source_file = source
        some = next(iter(cases.values()))
        self.offset = some.offset_of(by)
        codec = some.codec_of(by)
        # Which values may stand there is for each case to say.
        self.codec = codec.base if isinstance(codec, EnumField) else codec
        self.framed: bool = all(layout.framed for layout in cases.values())
        self.min_size: int = min(layout.min_size for layout in cases.values())
        self.leading_size: int = min(layout.leading_size for layout in cases.values())

    @property
    def full_name(self) -> str:
        """Return the name of the choice; it has no version."""
        return self.choice_name

    def __repr__(self) -> str:
        cases = ", ".join(f"{number} {case.full_name}" for number, case in self.cases.items())
        return f"<Choice {self.choice_name} by {self.by}: {cases}>"

    def offset_of(self, name: str) -> int:
        """Return the offset in bytes of a field from the start, which is the same in all cases.
        Raise KeyError if it varies, within a case or between cases, or a case lacks the field.
        """
        places = {layout.offset_of(name) for layout in self.cases.values()}
        if len(places) > 1:
            raise KeyError(f"{name} does not lie at one place in all of {self.choice_name}")
        return places.pop()

    def codec_of(self, name: str) -> Codec:
        """Return the codec of a field in the first case, through nested choices. Raise KeyError if
        that case lacks the field.
        """
        return next(iter(self.cases.values())).codec_of(name)

    @cached_property
    def is_of_versions(self) -> bool:
        """Return whether the cases are the versions of one layout."""
        cases = self.cases.values()
        return all(isinstance(c, Layout) and c.layout_name == self.choice_name for c in cases)

    @cached_property
    def prefix_size(self) -> int:
        """Return how many leading bytes are always enough to read the deciding number and, in every
        case that has one at a fixed place, the length.
        """
        ends = [layout.length.end for layout in self.cases.values() if layout.length is not None]
        ends += [case.prefix_size for case in self.cases.values() if isinstance(case, Choice)]
        longest = self.codec.max_size if isinstance(self.codec, Varint) else self.codec.size or 0
        return max([self.offset + longest, *ends])

    @cached_property
    def length(self) -> Length | None:
        """Return where the length is, or None if the layouts do not all read it in the same way."""
        found = [layout.length for layout in self.cases.values()]
        same = {None if one is None else one.read_key() for one in found}
        return found[0] if len(same) == 1 else None

    @cached_property
    def plain_frame(self) -> Frames:
        """Return a function that frames ordinary layouts quickly; see :func:`frames`."""
        cases = {
            number: (case, case.length)
            for number, case in self.cases.items()
            if isinstance(case, Layout) and case.length is not None
        }
        if self.length is None or len(cases) < len(self.cases):
            return lambda data, at: None
        return frames(self.codec, self.offset, self.length, cases)

    def peek(self, source: Source) -> int:
        """Return the number that selects the layout at the head of ``source``, whether or not a
        case has it, without moving ``source`` or adding findings. Raise CodecError if the bytes end
        before it or do not parse.
        """
        codec = self.codec
        if isinstance(codec, Integer) and source.left >= self.offset + codec.size:
            return codec.number_at(source.data, source.pos + self.offset)
        at = Source(
            source.data,
            source.session,
            pos=min(source.pos + self.offset, source.end),
            end=source.end,
            origin=source.origin,
            inner=source.inner,
            pending=source.pending,
        )
        noticed = len(source.session.findings)
        try:
            return int(self.codec.read(at, None))
        except CodecError as error:
            raise prefix_path(error, self.by).located(schema=self.source_file) from None
        finally:
            del source.session.findings[noticed:]  # whoever reads it notices it again

    def case(self, source: Source) -> Layout:
        """Return the Layout that the number at the head of ``source`` selects, through nested
        choices, without moving ``source``. Raise ValueRefused if no case has the number; CodecError
        if the bytes end before it or do not parse.
        """
        value = self.peek(source)
        layout = self.cases.get(value)
        if layout is None:
            known = list_numbers(self.cases)
            error = ValueRefused(
                f"{value} is not one of {known}", source.where(source.pos + self.offset)
            )
            raise prefix_path(error, self.by).located(schema=self.source_file)
        return layout.case(source)

    def frame(self, source: Source) -> int | None:
        """Return the length in bytes of the layout at the head of ``source``; for a number without
        a case, by the first case. Return None if too few bytes are there to know it. Raise
        CodecError if the number does not parse, LengthError if the length is too small or refused,
        TypeError if that layout has no known length.
        """
        if source.left < self.offset + (self.codec.size or 1):
            return None
        try:
            number = self.peek(source)
        except TruncatedError:  # a varint that goes on
            return None
        layout = self.cases.get(number) or next(iter(self.cases.values()))
        return layout.frame(source)

    def read(self, source: Source, this: Any) -> Parsed:
        """Return the layout at the head of ``source``, in the case that its number selects, and
        move behind it. Raise CodecError if no case has the number, or the bytes do not parse.
        """
        return self.case(source).read(source, this)

    def parse_whole(self, data: Any, position: int, session: Session) -> Parsed:
        """Return the layout that all of ``data`` encodes, in the case that its number selects.
        Raise CodecError if no case has the number, the bytes do not parse, or bytes follow (a
        finding for a lenient session with ``trailing``). ``position`` is where ``data`` begins in
        its file, for errors.
        """
        codec, case = self.codec, None
        if isinstance(codec, Integer) and len(data) >= self.offset + codec.size:
            case = self.cases.get(codec.number_at(data, self.offset))
        if case is None:
            case = self.case(Source(data, session, origin=position))
        return case.parse_whole(data, position, session)

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a mapping of fields, in the layout that its field ``by`` selects by
        number, name or label. Raise BuildError if the value is no dict, the field names no case, or
        a value cannot be written; UnsupportedCodec if the package of a compression codec or
        checksum is not installed.
        """
        layout = self.case_of(value.get(self.by)) if isinstance(value, dict) else None
        if layout is None:
            reason = f"{self.by} must be one of {list_numbers(self.cases)}"
            raise BuildError(reason).located(path=self.by)
        return layout.write(value, this, session)

    def case_of(self, value: Any) -> Layout | Choice | None:
        """Return the case for a deciding value: a number, or the name or label of a member of the
        enum (if the field is one). Return None if there is no such case, and for any other type.
        """
        if isinstance(value, str):
            for number, layout in self.cases.items():
                codec = layout.codec_of(self.by)
                if isinstance(codec, EnumField) and codec.enum.find(value) == number:
                    return layout
        return self.cases.get(value) if isinstance(value, int) else None

    def build(self, obj: B, *, level: int | None = None, strict: bool = True) -> bytes:
        """Build bytes from a dict with the fields of a case, which its field ``by`` selects by
        number, name or label. Raise BuildError if ``obj`` is no dict, ``by`` is missing or selects
        no case, or a value is missing, does not fit or breaks a rule (``strict=False`` skips rules
        that relate several fields). Raise UnsupportedCodec if the package of a compression codec or
        checksum is not installed. ``level`` is the compression level.
        """
        return self.write(obj, None, Session(level=level, strict=strict))


class VersionedLayout(Choice[P, B]):
    """All versions of a layout that holds its version in a field: the field ``by`` chooses the version.

    Example:
        >>> from kafka_codecs import OFFSET_COMMIT_VALUE
        >>> OFFSET_COMMIT_VALUE.versions
        (0, 1, 2, 3, 4)
        >>> OFFSET_COMMIT_VALUE[3].full_name
        'offset_commit_value@3'
    """

    cases: Mapping[int, Layout[P, B]]

    @property
    def versions(self) -> tuple[int, ...]:
        """Return the versions, ascending."""
        return tuple(self.cases)

    @property
    def latest(self) -> Layout[P, B]:
        """Return the layout of the last version."""
        return self.cases[self.versions[-1]]

    def __getitem__(self, version: int) -> Layout[P, B]:
        """Return the layout of a version; raise KeyError, with the known versions, if there is none."""
        return _version_of(self.choice_name, self.cases, version)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the versions."""
        return iter(self.cases)

    def __repr__(self) -> str:
        return f"<VersionedLayout {self.choice_name} by {self.by}: {_version_list(self.cases)}>"


class LayoutVersions(Declared, Mapping[int, "Layout[P, B]"], Generic[P, B]):
    """All versions of a layout that does not hold its version: the caller chooses one.

    It is a mapping from versions to layouts.

    Example:
        >>> from kafka_codecs import PARTITION_RECORD
        >>> PARTITION_RECORD
        <LayoutVersions partition_record: 0, 1, 2>
        >>> PARTITION_RECORD.latest is PARTITION_RECORD[2]
        True
    """

    def __init__(self, *layouts: Layout[P, B]) -> None:
        super().__init__()
        self.layout_name = layouts[0].layout_name
        self._layouts = {layout.version: layout for layout in layouts if layout.version is not None}

    @property
    def versions(self) -> tuple[int, ...]:
        """Return the versions, ascending."""
        return tuple(self._layouts)

    @property
    def latest(self) -> Layout[P, B]:
        """Return the layout of the last version."""
        return self._layouts[self.versions[-1]]

    def __getitem__(self, version: int) -> Layout[P, B]:
        """Return the layout of a version; raise KeyError, with the known versions, if there is none."""
        return _version_of(self.layout_name, self._layouts, version)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the versions."""
        return iter(self._layouts)

    def __len__(self) -> int:
        return len(self._layouts)

    def __repr__(self) -> str:
        return f"<LayoutVersions {self.layout_name}: {_version_list(self._layouts)}>"


def _version_of(name: str, layouts: Mapping[int, Layout[P, B]], version: int) -> Layout[P, B]:
    """Return the layout of a version from ``layouts``. Raise KeyError, whose message lists the
    known versions, if there is none.
    """
    found = layouts.get(version)
    if found is None:
        raise KeyError(f"{name} has no version {version!r}; its versions: {_version_list(layouts)}")
    return found


def _version_list(layouts: Mapping[int, Any]) -> str:
    """Return the versions as text, such as ``0, 1, 2``."""
    return ", ".join(map(str, layouts))


class Lazy(Codec):
    """A codec that is looked up on first use: that of a layout that holds itself."""

    def __init__(self, find: Any) -> None:
        super().__init__()
        self._find = find

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("size", "name", "docs", "flagbuildnone", "parsed"):
            raise AttributeError(name)
        return getattr(self._find(), name)

    def read(self, source: Source, this: Any) -> Any:
        """Find the codec that this one stands for, and return the value that it reads at the head
        of ``source``. Raise CodecError if the bytes do not parse.
        """
        return self._find().read(source, this)

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Find the codec that this one stands for, and return the bytes that it writes for
        ``value``. Raise BuildError if the value cannot be written.
        """
        data: bytes = self._find().write(value, this, session)
        return data
