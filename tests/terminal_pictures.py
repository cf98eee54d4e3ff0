"""Pictures of a terminal for README and how-tos: real commands on the samples, and what they print.

``python -m tests.terminal_pictures`` draws them anew: look at those that change before you keep them.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.console_pages import run_session
from tests.paths import ROOT

FOLDER = ROOT / "docs" / "pictures"
WIDTH = 60
"""Columns of the terminal, which a phone can show."""
PROMPT, COMMAND, MARK = "bold #3fb950", "bold", "bold #0d1117 on #f2cc60"
THEME = TerminalTheme((13, 17, 23), (230, 237, 243), [(0, 0, 0)] * 8, [(0, 0, 0)] * 8)
"""Only the colors of the paper and of plain text: the commands print no others."""
FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" width="600" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title desc">
<style>
.{unique_id}-matrix {{
  font: {char_height}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
}}
.{unique_id}-title {{ font: bold 17px system-ui, -apple-system, "Segoe UI", sans-serif }}
{styles}
</style>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own format without its fonts, which it loads from the network, and without clipping."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a session.

    Attributes:
        name: Name of the file without ``.svg``.
        title: Title of the window.
        commands: What is typed. A line that ends with a backslash goes on.
        marks: Parts of what the commands print that are marked as with a pen.
        before: Commands that run before, and are not shown.
    """

    name: str
    title: str
    commands: Sequence[str]
    marks: Sequence[str] = ()
    before: Sequence[str] = ()

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.svg"

    def run(self) -> Iterator[Text]:
        """Run the commands and yield the lines of the terminal, of any length, with their colors.

        Raises:
            ValueError: if no command prints one of the marks.
        """
        printed = run_session([*self.before, *self.commands], WIDTH)[len(self.before) :]
        missing = [mark for mark in self.marks if mark not in "".join(printed)]
        if missing:
            raise ValueError(f"{self.name}: nothing prints {missing}")
        for command, text in zip(self.commands, printed, strict=True):
            first, *more = command.splitlines()
            yield Text.assemble(("$ ", PROMPT), (first, COMMAND))
            yield from (Text(line, COMMAND) for line in more)
            for line in text.splitlines():
                shown = Text(line)
                if self.marks:  # rich marks every position for none
                    shown.highlight_words(self.marks, MARK)
                yield shown

    def draw(self) -> str:
        """Run the commands and return the picture as SVG."""
        console = Console(
            file=io.StringIO(),
            record=True,
            width=WIDTH,
            force_terminal=True,
            color_system="truecolor",
            legacy_windows=False,
            _environ={},
        )
        lines = [*self.run()]
        for line in lines:
            for part in line.divide(range(WIDTH, max(len(line), 1), WIDTH)):
                console.print(part, no_wrap=True, overflow="ignore", crop=False)
        drawn = console.export_svg(
            title=self.title, theme=THEME, code_format=FORMAT, unique_id=self.name
        )
        head, _, rest = re.sub(r' clip-path="[^"]*"', "", drawn).partition("\n")
        transcript = escape("\n".join(line.plain for line in lines), quote=False)
        said = (
            f'<title id="title">{escape(self.title)}</title>\n<desc id="desc">{transcript}</desc>'
        )
        return f"{head}\n{said}\n{rest}"


PICTURES = (
    Picture(
        "bytes-beside-fields",
        "A batch with a wrong length",
        [
            "kafka-log hexdump orders-0/00000000000000000042.log \\\n    --byte 383 --records 0",
            "kafka-log salvage orders-0 --out again",
        ],
        marks=["6f 6f 70 73", "1869574259", "nothing is lost"],
        before=[
            "cp -r samples/kafka-4.x/segments.small-0 orders-0",
            "printf oops | dd of=orders-0/00000000000000000042.log bs=1 seek=391 conv=notrunc status=none",
        ],
    ),
    Picture(
        "hidden-offsets",
        "What a hanging transaction hides from consumers",
        [
            "kafka-log dump disk --topic transactions --partition 2 \\\n"
            "    --isolation read_committed --columns offset,key",
            "kafka-log dump disk --topic transactions --partition 2 \\\n    --columns offset,key",
            "kafka-log txn disk --topic transactions --state hanging",
        ],
        marks=[
            *(f'"hanging-key-{n}"' for n in range(3)),
            *(f'"after hanging-key-{n}"' for n in range(2)),
        ],
        before=[
            "cp -r samples/kafka-4.x disk",
            "truncate -s 13571 disk/__transaction_state-0/00000000000000000000.log",
        ],
    ),
    Picture(
        "decoded-values",
        "Values of a schema registry: as bytes, and decoded",
        [
            "kafka-log dump samples/schema-registry \\\n    --topic clicks --columns offset,value",
            "kafka-log schemas samples/schema-registry --topic clicks",
            "kafka-log dump samples/schema-registry \\\n"
            "    --topic clicks --columns offset,value --decode auto",
        ],
    ),
)


def main() -> None:
    """All pictures, or those that the arguments name."""
    FOLDER.mkdir(exist_ok=True)
    for picture in PICTURES:
        if not sys.argv[1:] or picture.name in sys.argv[1:]:
            picture.path.write_text(picture.draw(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
