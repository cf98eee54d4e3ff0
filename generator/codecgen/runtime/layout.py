"""Layouts: fields in the order of the bytes, with lengths, counts and checksums that hold each other in check."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import construct

from codecgen.runtime.arrays import Array, E, prefixed
from codecgen.runtime.bits import Bits
from codecgen.runtime.checksums import checksum as checksum_function
from codecgen.runtime.errors import (
    BuildError,
    ChecksumError,
    CodecError,
    LengthError,
    ParseError,
    TrailingError,
    ValueRefused,
)
from codecgen.runtime.primitives import Bytes, Codec, EnumField, Integer
from codecgen.runtime.source import Condition, Limits, Session, Source


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition of the schema, with its text for people."""

    text: str
    holds: Condition

    def broken(self, value: Any) -> str:
        """What to say when the rule says what may not be."""
        return f"{value!r} is refused, since {self.text}"

    def missed(self, value: Any) -> str:
        """What to say when the rule says what must be."""
        return f"{value!r} is not valid: {self.text}"


class Field:
    """One field.

    ``measures`` (first, last): the field is the length in bytes of that run of fields; last None is the end of the
    layout. ``counts``: it is the number of elements of that array. ``checksum`` and ``covers``: it is a
    checksum over that run. What the builder can work out of these it fills in; the parser verifies them.
    ``valid`` and ``refuse`` are rules about the fields so far. ``spelled`` is the name in the format's own
    documents, ``hidden`` fields are left out where people read.
    """

    def __init__(
        self,
        name: str,
        codec: Codec,
        *,
        line: int = 0,
        when: Condition | None = None,
        default: Condition | None = None,
        const: int | None = None,
        version: int | None = None,
        measures: tuple[str, str | None] | None = None,
        counts: str | None = None,
        checksum: str | None = None,
        covers: tuple[str, str | None] | None = None,
        valid: Rule | None = None,
        refuse: Rule | None = None,
        spelled: str | None = None,
        hidden: bool = False,
    ) -> None:
        self.name = name
        self.codec = codec
        self.line = line
        self.spelled = spelled or name
        self.hidden = hidden
        self.when = when
        self.default = default
        self.const = const if version is None else version
        self.is_version = version is not None
        self.measures = measures
        self.counts = counts
        self.checksum = None if checksum is None else checksum_function(checksum)
        self.covers = covers
        self.valid = valid
        self.refuse = refuse
        # Filled in by the layout: the fields that measure or check a run that begins here, runs that end here.
        self.opened_by: tuple[Field, ...] = ()
        self.checked_by: tuple[Field, ...] = ()
        self.closes = 0
        self.tail: tuple[Field, ...] | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A layout whose last array is not parsed yet.

    ``fields`` are those before the array; when ``error`` is set, those before the error. ``items`` parses
    the array's elements as they are asked for.
    """

    fields: construct.Container
    items: Iterator[Any]
    error: CodecError | None = None


class _Frame:
    """The state of one parse of a layout: windows that are open, and where fields begin and end."""

    __slots__ = ("obj", "opened", "source", "starts", "verified", "windows")

    def __init__(self, source: Source) -> None:
        self.obj = construct.Container()
        self.source = source
        self.windows: list[
            tuple[Source, bool]
        ] = []  # (the window around, does it end with the layout)
        self.opened: dict[str, bool] = {}
        self.starts: dict[str, tuple[int, int]] = {}
        self.verified: set[str] = set()

    @property
    def ends_known(self) -> bool:
        """Whether the current window is the layout to its end."""
        return any(to_end for _, to_end in self.windows)


class Layout(Codec):
    """Fields in the order of the bytes. Parses to a Container, builds from any mapping.

    ``source`` is the YAML file that describes it. With ``trailing`` lenient readers pass over bytes after the
    last field.
    """

    def __init__(
        self,
        name: str,
        *fields: Field,
        source: str = "",
        version: int | None = None,
        trailing: bool = False,
    ) -> None:
        super().__init__()
        self.layout_name = name
        self.fields = fields
        self.by_name = {f.name: f for f in fields}
        self.source_file = source
        self.version = version
        self.trailing = trailing
        self._relate()
        fixed = all(f.codec.size is not None and f.when is None for f in fields)
        self.size = sum(f.codec.size or 0 for f in fields) if fixed else None
        self.least = sum(f.codec.size or 1 for f in fields if f.when is None)

    def _relate(self) -> None:
        names = [f.name for f in self.fields]
        for f in self.fields:
            if f.measures is not None:
                first, last = f.measures
                self.by_name[first].opened_by += (f,)
                self.by_name[last or names[-1]].closes += 1 if last else 0
            if f.covers is not None:
                self.by_name[f.covers[0]].checked_by += (f,)
        for i, f in enumerate(self.fields):
            if isinstance(f.codec, Bytes) and f.codec.length is None:  # all that is left
                f.tail = self.fields[i + 1 :]

    # ------------------------------------------------------------ places

    def offset_of(self, name: str) -> int:
        """The byte of the layout where a field begins, for fields at a fixed place. Raises KeyError for others."""
        at = 0
        for f in self.fields:
            if f.name == name:
                return at
            if f.codec.size is None or f.when is not None:
                break
            at += f.codec.size
        raise KeyError(f"{name} does not lie at a fixed place in {self.layout_name}")

    def size_of(self, name: str) -> int:
        """The length in bytes of a field of fixed size."""
        size = self.by_name[name].codec.size
        if size is None:
            raise KeyError(f"{name} has no fixed size")
        return size

    @property
    def head_size(self) -> int:
        """The bytes of all fields at fixed places: what lies in front of the first one that varies."""
        at = 0
        for f in self.fields:
            if f.codec.size is None or f.when is not None:
                break
            at += f.codec.size
        return at

    def frame(self, source: Source) -> int | None:
        """The length of the layout at the head of a source, from the field that measures it to its end.

        None when the bytes end before that field does. Raises LengthError for a length that cannot be.
        """
        for f in self.fields:
            if f.measures is not None and f.measures[1] is None and isinstance(f.codec, Integer):
                break
        else:
            raise TypeError(f"no field at a fixed place measures {self.layout_name}")
        offset = self.offset_of(f.name)
        if source.left < offset + f.codec.size:
            return None
        at = source.pos + offset
        peek = Source(source.data, source.session, pos=at, end=source.end, origin=source.origin)
        length = f.codec.read(peek, None)
        if length < 0 or (
            f.refuse is not None and f.refuse.holds(construct.Container({f.name: length}))
        ):
            error = LengthError(f"{f.name} is {length}, too small for any {self.layout_name}")
            error.where = source.where(at)
            raise self.at(error, f)
        assert f.measures is not None
        return self.offset_of(f.measures[0]) + length

    # ------------------------------------------------------------ parsing

    def parse(
        self,
        data: Any,
        *,
        file: str | None = None,
        position: int = 0,
        strict: bool = True,
        limits: Limits | None = None,
        findings: list[ParseError] | None = None,
        trace: list[tuple[str, int, int, bool]] | None = None,
    ) -> construct.Container:
        """Parse bytes that are one whole layout.

        ``position`` is where they lie in ``file``; both are for errors. A lenient parse (``strict=False``)
        takes what the schema's freedoms allow, and puts what it noticed into ``findings``.
        Raises :class:`~codecgen.runtime.errors.ParseError`.
        """
        session = Session(strict=strict, limits=limits or Limits(), file=file, trace=trace)
        if findings is not None:
            session.findings = findings
        source = Source(data, session, origin=position)
        obj = self.read(source, None)
        if source.left:
            error = TrailingError(
                f"{source.left} bytes follow the {self.layout_name}", source.where()
            )
            if not self.trailing:
                raise error
            session.tolerate(error)
        return obj

    def read(self, source: Source, this: Any) -> construct.Container:
        source.deeper()
        try:
            frame = _Frame(source)
            for f in self.fields:
                self._field(f, frame)
            self._finish(frame)
            return frame.obj
        finally:
            source.session.depth -= 1

    def open(self, source: Source) -> Opened:
        """Parse all but the array that ends the layout, so that what stands before an error can be had."""
        last = self.fields[-1]
        if not isinstance(last.codec, Array):
            raise TypeError(f"no array ends {self.layout_name}")
        frame = _Frame(source)
        try:
            for f in self.fields[:-1]:
                self._field(f, frame)
            self._begin(last, frame)
        except CodecError as error:
            return Opened(frame.obj, iter(()), error)
        return Opened(frame.obj, self._elements(last, last.codec, frame))

    def _elements(self, f: Field, codec: Array, frame: _Frame) -> Iterator[Any]:
        findings = frame.source.session.findings
        if f.when is None or f.when(frame.obj):
            noticed = len(findings)
            try:
                for item in codec.items(frame.source, frame.obj):
                    for finding in findings[noticed:]:
                        self.at(finding, f)
                    yield item
                    noticed = len(findings)
                for finding in findings[noticed:]:
                    self.at(finding, f)
            except CodecError as error:
                raise self.at(error, f, frame.source) from None
        self._finish(frame)

    def _field(self, f: Field, frame: _Frame) -> None:
        self._begin(f, frame)
        source, obj = frame.source, frame.obj
        if f.when is not None and not f.when(obj):
            obj[f.name] = None
            self._close(f, frame)
            return
        start = source.pos
        session = source.session
        noticed = len(session.findings)
        if session.trace is not None:
            session.prefix.append(f.name)
        try:
            value = f.codec.read(source, obj) if f.tail is None else self._rest(f, frame)
            obj[f.name] = value
            frame.starts[f.name] = (start, source.pos)
            if f.const is not None and value != f.const:
                wrong = ValueRefused(
                    f"{value} stands where only {f.const} may", source.where(start)
                )
                if f.is_version:
                    raise wrong
                session.tolerate(wrong)
            if f.refuse is not None and f.refuse.holds(obj):
                raise ValueRefused(f.refuse.broken(value), source.where(start))
            if f.valid is not None and not f.valid.holds(obj):
                session.tolerate(ValueRefused(f.valid.missed(value), source.where(start)))
            for finding in session.findings[noticed:]:
                self.at(finding, f)
        except CodecError as error:
            raise self.at(error, f, source) from None
        finally:
            if session.trace is not None:
                path = ".".join(session.prefix).replace(".[", "[")
                session.trace.append((path, start, source.pos, source.inner))
                session.prefix.pop()
        self._close(f, frame)

    def _begin(self, f: Field, frame: _Frame) -> None:
        """Open the windows that begin with a field, and verify the checksums over them where the end is known."""
        for measure in f.opened_by:
            n = frame.obj[measure.name]
            if n is None:
                continue
            around = frame.source
            try:
                frame.source = around.window(n, measure.name)
            except LengthError as error:
                error.where = around.where(frame.starts[measure.name][0])
                raise self.at(error, measure) from None
            frame.windows.append(
                (around, measure.measures is not None and measure.measures[1] is None)
            )
            frame.opened[measure.name] = True
        for check in f.checked_by:
            if check.covers is not None and check.covers[1] is None and frame.ends_known:
                self._verify(check, frame, frame.source.pos, frame.source.end)

    def _close(self, f: Field, frame: _Frame) -> None:
        for _ in range(f.closes):
            if frame.windows and not frame.windows[-1][1]:
                self._leave(frame)

    def _leave(self, frame: _Frame) -> None:
        window = frame.source
        around, to_end = frame.windows.pop()
        if window.left:
            error = TrailingError(
                f"{window.left} bytes are left of the run that {self.layout_name} measures",
                window.where(),
            )
            if not (self.trailing and to_end):
                raise error.located(schema=self.source_file)
            window.session.tolerate(error)
        frame.source = around

    def _finish(self, frame: _Frame) -> None:
        last = frame.source.pos
        for f in self.fields:
            if (
                f.covers is not None
                and f.name not in frame.verified
                and frame.obj[f.name] is not None
            ):
                first, end = f.covers
                begin = self._start_of(first, frame)
                self._verify(f, frame, begin, self._end_of(end, frame) if end else last)
        while frame.windows:
            self._leave(frame)

    def _start_of(self, name: str, frame: _Frame) -> int:
        names = list(self.by_name)
        for later in names[names.index(name) :]:
            if later in frame.starts:
                return frame.starts[later][0]
        return frame.source.pos

    def _end_of(self, name: str, frame: _Frame) -> int:
        names = list(self.by_name)
        for earlier in reversed(names[: names.index(name) + 1]):
            if earlier in frame.starts:
                return frame.starts[earlier][1]
        return frame.source.pos

    def _verify(self, f: Field, frame: _Frame, begin: int, end: int) -> None:
        frame.verified.add(f.name)
        source = frame.source
        stored = frame.obj.get(f.name)
        if f.checksum is None or stored is None:
            return
        computed = f.checksum(memoryview(source.data)[begin:end])
        if computed != stored:
            reason = f"stored checksum {stored}, computed {computed} over {end - begin} bytes"
            error = ChecksumError(reason, source.where(frame.starts[f.name][0]))
            source.session.tolerate(self.at(error, f))

    def _rest(self, f: Field, frame: _Frame) -> Any:
        """Bytes to the end of the run, less what the fixed fields behind them take."""
        source = frame.source
        behind = 0
        inside_run = any(not to_end for _, to_end in frame.windows) and f.closes
        for later in () if inside_run else f.tail or ():
            if later.when is None or later.when(frame.obj):
                behind += later.codec.size or 0
        n = source.left - behind
        if n < 0:
            raise source.short(behind)
        window = source.window(n, f.name)
        return f.codec.read(window, frame.obj)

    def at(self, error: E, f: Field, source: Source | None = None) -> E:
        """The error with this field in front of its path, and the field's line of YAML if none is known."""
        prefixed(error, f.name)
        error.located(schema=f"{self.source_file}:{f.line}" if f.line else self.source_file)
        if source is not None and error.where.position is None:
            where = source.where()
            error.located(
                position=where.position, stream_position=where.stream_position, file=where.file
            )
        return error

    # ------------------------------------------------------------ building

    def build(self, obj: Any, *, level: int | None = None) -> bytes:
        """Bytes for a mapping with the layout's fields. Lengths, counts, checksums and compression are worked out.

        ``level`` is the compression level. Raises :class:`~codecgen.runtime.errors.BuildError`.
        """
        return self.write(obj, None, Session(level=level))

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        obj = self._given(value)
        parts: list[bytes] = []
        for f in self.fields:
            try:
                parts.append(self._part(f, obj, session))
            except BuildError as error:
                raise self.at(error, f) from None
        self._fill(parts, obj, session)
        return b"".join(parts)

    def _given(self, value: Any) -> construct.Container:
        if not isinstance(value, dict):
            raise BuildError(
                f"a mapping with the fields of {self.layout_name} is needed, not {value!r}"
            )
        for name in value:
            if name not in self.by_name and not str(name).startswith("_"):
                close = difflib.get_close_matches(str(name), self.by_name, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise BuildError(f"{self.layout_name} has no field {name!r}{hint}")
        return construct.Container({name: contain(item) for name, item in value.items()})

    def _part(self, f: Field, obj: construct.Container, session: Session) -> bytes:
        if f.when is not None and not f.when(obj):
            if obj.get(f.name) is not None and f.measures is None:
                raise BuildError("the field is not there in this case, but has a value")
            obj[f.name] = None
            return b""
        if f.measures is not None or f.checksum is not None:
            return b"\0" * (f.codec.size or 0)  # worked out when all else is there
        if f.counts is not None:
            counted = obj.get(f.counts)
            obj[f.name] = len(counted) if isinstance(counted, list | tuple) else 0
        elif f.const is not None:
            obj[f.name] = f.const
        elif f.name not in obj:
            obj[f.name] = self._default(f, obj)
        if isinstance(f.codec, Bits):
            obj[f.name] = f.codec.filled(obj[f.name], obj)
        elif isinstance(f.codec, EnumField):  # so that conditions see the value, however it was given
            member = f.codec.enum.of(obj[f.name])
            obj[f.name] = obj[f.name] if member is None else member
        data = f.codec.write(obj[f.name], obj, session)
        if f.refuse is not None and f.refuse.holds(obj):
            raise BuildError(f.refuse.broken(obj[f.name]))
        if f.valid is not None and not f.valid.holds(obj):
            raise BuildError(f.valid.missed(obj[f.name]))
        return data

    def _default(self, f: Field, obj: construct.Container) -> Any:
        if f.default is not None:
            value = f.default(obj)
            if value is not None:
                return value
        elif isinstance(f.codec, Bits):
            return construct.Container()
        elif isinstance(f.codec, Array) and not f.codec.at_least:
            return construct.ListContainer()
        elif getattr(f.codec, "null", None) is not None:
            return None
        raise BuildError("a value is needed")

    def _fill(self, parts: list[bytes], obj: construct.Container, session: Session) -> None:
        """Lengths from the last to the first, since a run lies behind its length; then checksums, inner ones first."""
        names = [f.name for f in self.fields]
        for i in reversed(range(len(parts))):
            f = self.fields[i]
            if f.measures is not None and (f.when is None or f.when(obj)):
                first, last = f.measures
                run = parts[names.index(first) : names.index(last) + 1 if last else None]
                obj[f.name] = sum(map(len, run))
                try:
                    parts[i] = f.codec.write(obj[f.name], obj, session)
                except BuildError as error:
                    raise self.at(error, f) from None
        checks = [f for f in self.fields if f.checksum is not None]
        for f in sorted(checks, key=lambda f: len(self._covered(f, names))):
            if f.when is None or f.when(obj):
                covered = self._covered(f, names)
                assert f.checksum is not None
                obj[f.name] = f.checksum(b"".join(parts[i] for i in covered))
                parts[names.index(f.name)] = f.codec.write(obj[f.name], obj, session)

    def _covered(self, f: Field, names: list[str]) -> range:
        assert f.covers is not None
        first, last = f.covers
        return range(names.index(first), names.index(last) + 1 if last else len(names))


class Choice(Codec):
    """One of several layouts, by the value of a field that lies at the same byte in all of them."""

    def __init__(self, name: str, by: str, cases: dict[int, Layout], source: str = "") -> None:
        super().__init__()
        self.choice_name = name
        self.by = by
        self.cases = cases
        self.source_file = source
        some = next(iter(cases.values()))
        self.offset = some.offset_of(by)
        self.codec = some.by_name[by].codec
        self.least = min(layout.least for layout in cases.values())
        self.head_size = min(layout.head_size for layout in cases.values())

    def peek(self, source: Source) -> int:
        """The value that decides, for the bytes at the head of a source."""
        at = Source(
            source.data,
            source.session,
            pos=min(source.pos + self.offset, source.end),
            end=source.end,
            origin=source.origin,
            inner=source.inner,
            pending=source.pending,
        )
        try:
            return int(self.codec.read(at, None))
        except CodecError as error:
            raise prefixed(error, self.by).located(schema=self.source_file) from None

    def case(self, source: Source) -> Layout:
        """The layout of the bytes at the head of a source."""
        value = self.peek(source)
        layout = self.cases.get(value)
        if layout is None:
            known = ", ".join(str(case) for case in self.cases)
            error = ValueRefused(
                f"{value} is none of {known}", source.where(source.pos + self.offset)
            )
            raise prefixed(error, self.by).located(schema=self.source_file)
        return layout

    def frame(self, source: Source) -> int | None:
        """See :meth:`Layout.frame`; None also when the byte that decides is not there."""
        if source.left <= self.offset:
            return None
        layout = self.cases.get(self.peek(source)) or next(iter(self.cases.values()))
        return layout.frame(source)

    def read(self, source: Source, this: Any) -> construct.Container:
        return self.case(source).read(source, this)

    def parse(self, data: Any, **options: Any) -> construct.Container:
        """See :meth:`Layout.parse`."""
        session = Session(strict=options.get("strict", True), file=options.get("file"))
        layout = self.case(Source(data, session, origin=options.get("position", 0)))
        return layout.parse(data, **options)

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        layout = self.cases.get(value.get(self.by, -1)) if isinstance(value, dict) else None
        if layout is None:
            known = ", ".join(str(case) for case in self.cases)
            raise BuildError(f"{self.by} must be one of {known}").located(path=self.by)
        return layout.write(value, this, session)

    def build(self, obj: Any, *, level: int | None = None) -> bytes:
        """See :meth:`Layout.build`."""
        return self.write(obj, None, Session(level=level))


def contain(value: Any) -> Any:
    """Mappings as Containers and lists of them likewise, so that expressions can ask for attributes."""
    if isinstance(value, dict) and not isinstance(value, construct.Container):
        return construct.Container({name: contain(item) for name, item in value.items()})
    if isinstance(value, list) and not isinstance(value, construct.ListContainer):
        return construct.ListContainer(contain(item) for item in value)
    return value


def end_of(items: Any, index: int, *names: str) -> Any:
    """A field of the first (0) or the last (-1) element of an array; None when there is none."""
    if not items:
        return None
    value = items[index]
    for name in names:
        value = value.get(name)
    return value


class Lazy(Codec):
    """A codec that is named before it exists: a layout that holds itself."""

    def __init__(self, find: Any) -> None:
        super().__init__()
        self._find = find

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("size", "name", "docs", "flagbuildnone", "parsed"):
            raise AttributeError(name)
        return getattr(self._find(), name)

    def read(self, source: Source, this: Any) -> Any:
        return self._find().read(source, this)

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        data: bytes = self._find().write(value, this, session)
        return data
