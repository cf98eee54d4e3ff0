"""HTML pages as a strict reader sees them: elements that are all closed in order, their attributes, and the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "br", "hr", "img", "input", "link", "base", "col", "embed", "source"})


@dataclass
class Page(HTMLParser):
    """A page. ``ids`` are fragments, ``links`` what ``href`` names, ``texts`` the texts in order, of styles left out,
    ``rows`` the texts of the cells of each row of a table."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    style: str = ""
    comments: int = 0

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    @classmethod
    def read(cls, data: bytes) -> Page:
        page = cls()
        page.feed(data.decode("utf-8"))
        page.close()
        assert page.open == [], page.open
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), names
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
        else:
            self.texts.append(data)
            if "td" in self.open or "th" in self.open:
                self.rows[-1][-1] += data

    def handle_comment(self, data: str) -> None:
        self.comments += 1

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    @property
    def links(self) -> list[str]:
        return [attributes["href"] for _, attributes in self.tags if "href" in attributes]
