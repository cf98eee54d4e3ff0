"""Configuration of the documentation site, which ``make site`` builds with Sphinx.

The pages are the Markdown files of the repository as they are. This file adds what only a site needs: the list of contents,
and links that lead to the interactive format pages, which ``codecgen`` writes beside the guides.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
FORMATS = "formats"
"""Folder of the site with the pages that the target ``html`` writes."""
FORMAT_PAGES = "generated/docs"
"""Folder of the repository with the same pages in Markdown, to which the guides link."""
CONTENTS = {
    "Logs without a broker": ["docs/tasks", "docs/how-to/*", "docs/log-directory", "docs/policies", "docs/repair", "docs/faq"],
    "Commands": ["docs/tool/README", "docs/tool/*"],
    "Tables and Python": ["docs/arrow", "docs/topics", "docs/api/README", "docs/api/*"],
    "Spark": ["docs/spark", "docs/spark/*"],
    "Formats": ["docs/parse-and-build", "docs/schema-language/README", "docs/new-format-version", "docs/evolving-a-schema", "docs/schema-language/*", "docs/import-kafka-json", "docs/templates", "docs/template-reference", "docs/diagnostics", "docs/breaking-rules"],
    "Project": ["docs/README", "docs/performance", "docs/evidence", "docs/stability", "docs/architecture", "docs/glossary", "docs/release", "CONTRIBUTING", "SECURITY", "CHANGELOG", "docs/decisions/*", "benchmarks/results/*", "samples/README", "tests/**/README"],
}  # fmt: skip
"""The list of contents at the side of each page: groups of pages, of which a pattern names those that no group has named before."""

project = "kafka-codecs"
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
html_title = f"{project} {release}"
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
root_doc = "README"
extensions = ["myst_parser"]
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/**/*.md",
    "benchmarks/results/*.md",
    "samples/README.md",
    "tests/*/README.md",
]
exclude_patterns = ["build", ".venv", "**/.*"]
myst_heading_anchors = 6
myst_enable_extensions = ["html_image"]
myst_url_schemes = {
    "http": None,
    "https": None,
    "mailto": None,
    FORMATS: "{{path}}",
    f"{FORMATS}-part": "{{path}}#{{fragment}}",
}
myst_links_external_new_tab = False
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

LINK = re.compile(
    r"(?<!!)\[(?P<text>[^\]\n]*(?:\n[^\]\n]*)?)\]\((?P<path>[^)\s:#]+)(?P<anchor>#[^)\s]*)?\)"
)


def setup(app: Sphinx) -> None:
    """Register the change of links; Sphinx calls this."""
    app.connect("source-read", change_links)


def change_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to format pages lead to the interactive ones, and links to folders to their README or to no page."""
    folder = posixpath.dirname(page)

    def changed(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["path"]))
        if path.startswith(f"{FORMAT_PAGES}/"):
            there = path.removeprefix(f"{FORMAT_PAGES}/")
            html = re.sub(r"(^|/)README\.md$", r"\1index.html", there).removesuffix(".md")
            html = html if html.endswith(".html") else f"{html}.html"
            target = posixpath.relpath(f"{FORMATS}/{html}", folder or ".")
            scheme = f"{FORMATS}-part" if link["anchor"] else FORMATS
            return f"[{link['text']}]({scheme}:{target}{link['anchor'] or ''})"
        if (ROOT / path).is_dir():
            readme = posixpath.join(link["path"], "README.md")
            return (
                f"[{link['text']}]({readme})"
                if (ROOT / path / "README.md").is_file()
                else link["text"]
            )
        return link[0]

    source[0] = LINK.sub(changed, source[0])
    if page == root_doc:
        source[0] += contents()


def contents() -> str:
    """Return the hidden lists of contents, in MyST."""
    lists = []
    for title, names in CONTENTS.items():
        lists += ["", "```{toctree}", ":hidden:", ":glob:", f":caption: {title}", "", *names, "```"]
    return "\n".join(lists)
