"""Write docs/breaking-rules.md, and the table of rules in docs/evolving-a-schema.md.

``python -m tests.codecgen.evolution.evolution_page`` takes the texts from the catalog and the examples from the pairs of the
tests.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from codecgen.evolution.rules import RULES
from tests.codecgen.evolution.pairs import PAIRS
from tests.paths import ROOT

GUIDE = ROOT / "docs" / "evolving-a-schema.md"
REFERENCE = ROOT / "docs" / "breaking-rules.md"
BEGIN = "<!-- The table: written by `python -m tests.codecgen.evolution.evolution_page`; a test compares. -->\n"
END = "<!-- End of the table. -->\n"
HEAD = """\
# Rules of `codecgen breaking`

<!-- Written by `python -m tests.codecgen.evolution.evolution_page`; a test compares. -->

[Evolving a schema](evolving-a-schema.md) says when to use them. The id of a rule never changes its meaning. Each rule has the
smallest schema that shows it: the released state, a change that breaks, and a neighbor that is allowed. `codecgen explain B006`
prints a rule in a terminal.
"""


def pages() -> dict[Path, str]:
    """Return the text of both pages."""
    head, _, rest = GUIDE.read_text("utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    rows = [
        f"| [{rule}](breaking-rules.md#{_anchor(rule)}) | {entry.title} |"
        for rule, entry in RULES.items()
    ]
    table = "\n".join(["| rule | change |", "| --- | --- |", *rows])
    return {
        GUIDE: f"{head}{BEGIN}\n{table}\n\n{END}{tail}",
        REFERENCE: "\n".join([HEAD, *map(_section, RULES)]),
    }


def _anchor(rule: str) -> str:
    """Return the anchor of the section of a rule, as GitHub makes it."""
    title = f"{rule}: {RULES[rule].title}".lower()
    return "".join(c for c in title.replace(" ", "-") if c.isalnum() or c == "-")


def _section(rule: str) -> str:
    """Return the section of a rule, with its pair of schemas if there is one."""
    entry = RULES[rule]
    parts = [
        f"## {rule}: {entry.title}",
        textwrap.fill(entry.explanation, 120),
        textwrap.fill(f"**Remedy:** {entry.remedy}", 120),
    ]
    for pair in PAIRS:
        if pair.rule == rule:
            blocks = (("before", pair.old), ("breaks", pair.broken), ("is allowed", pair.allowed))
            lines = [f"# {title}\n{text.rstrip()}\n" for title, text in blocks]
            parts.append("```text\n" + "\n".join(lines) + "```")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write the pages."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
