"""Pictures of bytes and of bits as SVG: drawn from the plan, readable on light and on dark pages."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.plan.type_text import element_words, size_words
from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import ArrayType, BitMember, BytesType
from codecgen.targets.escaping import printable

PER_ROW = 8
CELL, ROW, LEFT, TOP = 84, 46, 44, 26
CHAR = 0.62
"""Width of a letter of a monospaced font, as a part of its size."""

STYLE = """
.page{fill:#ffffff}.box{fill:#f6f8fa;stroke:#57606a}.soft{fill:#ffffff;stroke:#57606a;stroke-dasharray:4 3}
.name{fill:#1f2328}.note{fill:#59636e}.line{stroke:#57606a;fill:none}
.s0{fill:#0969da}.s1{fill:#bc4c00}.s2{fill:#1a7f37}.s3{fill:#8250df}
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117}.box{fill:#151b23;stroke:#9198a1}.soft{fill:#0d1117;stroke:#9198a1}
.name{fill:#f0f6fc}.note{fill:#9198a1}.line{stroke:#9198a1}
.s0{fill:#4493f8}.s1{fill:#f0883e}.s2{fill:#3fb950}.s3{fill:#ab7df8}
}
""".strip()


@dataclass(frozen=True, slots=True)
class Shape:
    """A part of a picture as SVG. ``name`` is its field or bits, or ``""``."""

    name: str
    svg: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, with a title and a description for readers who cannot see it."""

    width: int
    height: int
    title: str
    description: str
    shapes: tuple[Shape, ...]


def svg_file(picture: Picture, mark: str) -> str:
    """Return a picture as the text of an SVG file with title, description, and colors for light and
    dark pages. ``mark`` is a comment in it and is not escaped.
    """
    width, height = picture.width, picture.height
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-labelledby="title description">',
            f"<!-- {mark} -->",
            f'<title id="title">{escape(printable(picture.title))}</title>',
            f'<desc id="description">{escape(printable(picture.description))}</desc>',
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
            *(shape.svg for shape in picture.shapes),
            "</svg>",
            "",
        ]
    )


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 12,
    css: str = "name",
    at: str = "middle",
    room: float = 0,
) -> str:
    """Return an SVG text element at ``x``, ``y``, with escaped words in the font size ``size`` and
    the CSS class ``css``. ``at`` is the text anchor (start, middle or end). With ``room`` (in
    pixels, 0: unlimited), words that are estimated to be wider are squeezed into that width.
    """
    fit = ""
    if room and len(words) * size * CHAR > room:
        fit = f' textLength="{_n(room)}" lengthAdjust="spacingAndGlyphs"'
    return (
        f'<text class="{css}" x="{_n(x)}" y="{_n(y)}" font-size="{size}" text-anchor="{at}"{fit}>'
        f"{escape(printable(words))}</text>"
    )


def _n(x: float) -> str:
    """Return a coordinate with at most one decimal."""
    return f"{x:.1f}".rstrip("0").rstrip(".")


def _label(x: float, y: float, width: float, words: list[str], below: str) -> list[str]:
    """Return the SVG elements, with escaped text, for the name ``words`` (joined by ``_``) in the
    middle of a box of height ROW whose upper left corner is ``x``, ``y``: on one line, or on two if
    it is wider than the box and has several words. The smaller line ``below`` is under it unless
    that is empty. Lines that are still too wide are squeezed.
    """
    lines = _break_name(words, width - 8, 12)
    height = 14 * len(lines) + (11 if below else 0)
    top = y + (ROW - 4 - height) / 2 + 11
    out = [text(x + width / 2, top + 14 * i, line, room=width - 8) for i, line in enumerate(lines)]
    if below:
        out.append(
            text(
                x + width / 2, top + 14 * len(lines) - 2, below, size=9, css="note", room=width - 6
            )
        )
    return out


def _break_name(words: list[str], room: float, size: int) -> list[str]:
    """Return the words joined by ``_`` as one line; as two lines of similar length, the first
    ending in ``_``, if one line is wider than ``room`` pixels at the font size ``size`` and there
    are several words.
    """
    whole = "_".join(words)
    if len(whole) * size * CHAR <= room or len(words) == 1:
        return [whole]
    best = min(
        range(1, len(words)), key=lambda i: max(len("_".join(words[:i])), len("_".join(words[i:])))
    )
    return ["_".join(words[:best]) + "_", "_".join(words[best:])]


# ---------------------------------------------------------------- bytes


@dataclass(frozen=True, slots=True)
class _Segment:
    """A part of a field in one row of the picture: cells ``first`` to ``last`` (excluded)."""

    field: FieldPlan
    row: int
    first: float
    last: float
    main: bool
    fixed: bool


def byte_picture(layout: LayoutPlan, title: str) -> Picture:
    """Return the Picture of a layout's bytes, 8 per row: fields at fixed offsets to scale, then the
    fields after them, of estimated width. Stripes mark the ranges of lengths and checksums. Tagged
    fields are not shown.
    """
    segments, row_offsets = _segments(layout)
    stripes = _stripes(layout)
    rows = len(row_offsets)
    width = LEFT + PER_ROW * CELL + 12
    bottom = TOP + rows * ROW + 8
    height = bottom + 18 * len(stripes) + (6 if stripes else 0)
    body: list[Shape] = []

    def add(*parts: str, name: str = "") -> None:
        """Append SVG elements that belong to a field."""
        body.extend(Shape(name, part) for part in parts)

    if row_offsets and row_offsets[0] is not None:
        for i in range(PER_ROW):
            add(text(LEFT + (i + 0.5) * CELL, TOP - 8, f"+{i}", size=10, css="note"))
    for row, offset in enumerate(row_offsets):
        label = "…" if offset is None else str(offset)
        add(text(LEFT - 8, TOP + row * ROW + 25, label, size=11, css="note", at="end"))
    for segment in segments:
        add(*_draw(segment, stripes), name=segment.field.name)
    for i, (words, _) in enumerate(stripes):
        y = bottom + 18 * i + 8
        add(f'<rect class="s{i % 4}" x="{LEFT}" y="{y - 4}" width="28" height="4"/>')
        add(text(LEFT + 36, y + 2, words, size=11, css="note", at="start"))
    return Picture(width, height, title, byte_description(layout), tuple(body))


def _segments(layout: LayoutPlan) -> tuple[list[_Segment], list[int | None]]:
    """Return the boxes to draw, and the byte offset of each row (None after the fixed fields). A
    fixed field gets a box in each row that it touches, none if it has no bytes; from the first
    optional or variable field on, fields get boxes of estimated width.
    """
    segments: list[_Segment] = []
    end = 0
    loose: list[FieldPlan] = []
    for fp in layout.in_order:
        if fp.offset is None or fp.size is None or fp.field.when is not None or loose:
            loose.append(fp)
            continue
        start, end = fp.offset, fp.offset + fp.size
        parts = []
        while start < end:
            stop = min(end, (start // PER_ROW + 1) * PER_ROW)
            parts.append((start // PER_ROW, start % PER_ROW, start % PER_ROW + stop - start))
            start = stop
        widest = max(parts, key=lambda part: part[2] - part[1], default=None)
        segments += [_Segment(fp, *part, part == widest, True) for part in parts]
    rows: list[int | None] = [row * PER_ROW for row in range(-(-end // PER_ROW))]
    column: float = PER_ROW
    for fp in loose:
        wide = _loose_width(fp)
        if column + wide > PER_ROW:
            rows.append(None)
            column = 0
        segments.append(_Segment(fp, len(rows) - 1, column, column + wide, True, False))
        column += wide
    return segments, rows


def _loose_width(fp: FieldPlan) -> float:
    """Return the width, in cells of one byte, of the box of a field without a fixed place: a whole
    row (8) for an array, otherwise 1.5 to 8, in half cells, as its texts need.
    """
    if isinstance(fp.field.type, ArrayType):
        return PER_ROW
    words = max(len(fp.name) * 12, len(_small_line(fp)) * 9) * CHAR + 16
    cells = max(1.5, -(-words // (CELL / 2)) / 2)
    return min(PER_ROW, cells)


def _small_line(fp: FieldPlan) -> str:
    """Return the text under the name of a field without a fixed place: its size in words, for an
    array its count or length and its elements; with ", not always" if the field is conditional.
    """
    words = size_words(fp)
    if isinstance(fp.field.type, ArrayType):
        prefix, between, _ = words.rpartition(", + ")
        words = f"{element_words(fp.field.type.element)}, one after the other"
        if between:
            what = "count" if fp.field.type.count is not None else "length"
            words = f"{what} of {prefix} byte{'' if prefix == '1' else 's'}, then {words}"
        if fp.field.type.compression is not None:
            words += ", perhaps compressed"
    elif words[-1].isdigit():
        words += " bytes" if words != "1" else " byte"
    elif isinstance(fp.field.type, BytesType):
        words = words.replace(", + length", " bytes, + length")
        words += " bytes" if words.endswith("or more") else ""
    return words + (", not always" if fp.field.when is not None else "")


def _draw(s: _Segment, stripes: list[tuple[str, frozenset[str]]]) -> list[str]:
    """Return the SVG elements of a segment (the part of a field in one row): a box, dashed if the
    field has no fixed place, and a stripe for each of ``stripes`` (captions with field names) that
    contains the field. The widest segment of a field shows its name, others ``…``.
    """
    x, y = LEFT + s.first * CELL, TOP + s.row * ROW
    width = (s.last - s.first) * CELL
    css = "box" if s.fixed else "soft"
    out = [f'<rect class="{css}" x="{_n(x)}" y="{y}" width="{_n(width)}" height="{ROW - 4}"/>']
    if s.main:
        below = "" if s.fixed else _small_line(s.field)
        lift = 1.5 * sum(1 for _, names in stripes if s.field.name in names)
        out += _label(x, y - lift, width, s.field.name.split("_"), below)
    else:
        out.append(text(x + width / 2, y + 25, "…", css="note"))
    mine = [i for i, (_, names) in enumerate(stripes) if s.field.name in names]
    for place, i in enumerate(mine):
        top = y + ROW - 8 - 4 * place
        out.append(f'<rect class="s{i % 4}" x="{_n(x)}" y="{top}" width="{_n(width)}" height="3"/>')
    return out


def _stripes(layout: LayoutPlan) -> list[tuple[str, frozenset[str]]]:
    """Return a caption and the names of the fields for the range that each length measures, and for
    all ranges together that each checksum covers; ``[]`` if there are none.
    """
    out = []
    for fp in layout.fields:
        measured = () if fp.measures is None else layout.field_range(fp.measures)
        for fields, words in (
            (measured, "the length of"),
            (layout.covered(fp), "the checksum of"),
        ):
            if fields:
                names = frozenset(f.name for f in fields)
                out.append((f"{fp.name}: {words} these bytes", names))
    return out


def byte_description(layout: LayoutPlan) -> str:
    """Return the picture of a layout's bytes as a sentence for readers who cannot see it: name and
    size of each field in order, without tagged fields.
    """
    parts = []
    for fp in layout.in_order:
        size = size_words(fp)
        unit = "" if not size[-1].isdigit() else " byte" if size == "1" else " bytes"
        parts.append(f"{fp.name}: {size}{unit}")
    return "In the order of the bytes: " + "; ".join(parts) + "."


# ---------------------------------------------------------------- bits


def bit_picture(base: str, members: tuple[BitMember, ...], title: str, description: str) -> Picture:
    """Return the Picture of the bits of an integer of the type ``base``, most significant bit on
    the left, with a line from each member to its bits and name. Reserved members are drawn dashed.
    Raise KeyError if ``base`` is no scalar type.
    """
    count = SCALARS[base].bits
    cell = min(40.0, 640 / count)
    left, top, box = 16.0, 26.0, 26.0
    ordered = sorted(members, key=lambda m: m.low)
    names = [_bit_words(m) for m in ordered]
    label_x = left + count * cell + 14
    width = int(label_x + max((len(n) for n in names), default=0) * 12 * CHAR + 16)
    height = int(top + box + 22 * len(ordered) + 14)
    body: list[Shape] = []

    def add(*parts: str, name: str = "") -> None:
        """Append SVG elements that belong to a member."""
        body.extend(Shape(name, part) for part in parts)

    for m in ordered:
        x = left + (count - 1 - m.high) * cell
        css = "soft" if m.reserved else "box"
        add(
            f'<rect class="{css}" x="{_n(x)}" y="{_n(top)}" width="{_n(m.width * cell)}" height="{_n(box)}"/>',
            name=m.name,
        )
        for bit in range(m.low + 1, m.high + 1):
            at = left + (count - bit) * cell
            add(
                f'<path class="line" opacity="0.4" d="M{_n(at)} {_n(top)}v{_n(box)}"/>', name=m.name
            )
    for bit in range(count):
        edge = any(bit in (m.low, m.high) for m in ordered)
        if cell >= 18 or edge:
            x = left + (count - bit - 0.5) * cell
            add(text(x, top - 8, str(bit), size=10, css="note"))
    for i, (m, name) in enumerate(zip(ordered, names, strict=True)):
        x = left + (count - (m.low + m.high + 1) / 2) * cell
        y = top + box + 22 * i + 16
        add(
            f'<path class="line" d="M{_n(x)} {_n(top + box)}V{_n(y)}H{_n(label_x - 6)}"/>',
            text(label_x, y + 4, name, at="start", css="note" if m.reserved else "name"),
            name=m.name,
        )
    return Picture(width, height, title, description, tuple(body))


def _bit_words(m: BitMember) -> str:
    """Return the bits and the name of a member."""
    bits = str(m.low) if m.low == m.high else f"{m.low}–{m.high}"
    return f"{bits}  {m.name}"
