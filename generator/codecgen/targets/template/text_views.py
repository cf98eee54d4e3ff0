"""What templates see of texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from codecgen.targets.template.schema_text import Words
from codecgen.targets.template.view_types import Expression, Place, Since


@dataclass(frozen=True, slots=True)
class TextValue:
    """A value of a text."""

    name: Annotated[str, "Its name."]
    doc: Annotated[Words, "What it is."]
    kind: Annotated[str, "`decimal`, `string` or `uuid`."]
    of: Annotated[str, "The integer type of a `decimal`, `word` or `rest`, the form of a `uuid`."]
    key: Annotated[Words, "The key in the file, of a property."]
    label: Annotated[Words, "The word before it."]
    separator: Annotated[Words, "What stands after the label."]
    const: Annotated[int | None, "The number that always stands here."]
    counts: Annotated[str | None, "The lines that it counts."]
    default: Annotated[Expression | None, "What is written when nothing is given."]
    valid: Annotated[
        Expression | None, "What the format wants of it; a lenient reader goes on without."
    ]
    refuse: Annotated[Expression | None, "When this holds, every reader refuses."]
    accepts: Annotated[tuple[str, ...], "The freedoms that lenient readers take here, sorted."]
    unit: Annotated[Words, "The unit of its number."]
    since: Annotated[Since | None, "When it came."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a text, or lines of the same values."""

    name: Annotated[str, "Its name."]
    doc: Annotated[Words, "What it is."]
    value: Annotated[TextValue | None, "Its value, if there is one line."]
    each: Annotated[tuple[TextValue, ...], "The values of each line, if there are many."]
    separator: Annotated[Words, "What stands between them."]
    counted_by: Annotated[str | None, "The line before that counts them; None: all that are left."]
    accepts: Annotated[tuple[str, ...], "The freedoms that lenient readers take here, sorted."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class Text:
    """A file of text: lines, or properties."""

    name: Annotated[str, "Its name."]
    doc: Annotated[Words, "What it is."]
    module: Annotated[str, "The module that declares it."]
    lines: Annotated[tuple[TextLine, ...], "Its lines."]
    properties: Annotated[tuple[TextValue, ...], "The keys that are known."]
    accepts: Annotated[tuple[str, ...], "The freedoms that lenient readers take, sorted."]
    may_be_empty: Annotated[bool, "Whether there may be no line at all."]
    final_newline: Annotated[bool, "Whether a line feed ends the last line too."]
    keep_unknown: Annotated[bool, "Whether other keys are values too."]
    since: Annotated[Since | None, "When it came."]
    place: Annotated[Place, "Where it is declared."]
