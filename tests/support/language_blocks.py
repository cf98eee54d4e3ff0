"""Code blocks of the page on the schema language, as models."""

from __future__ import annotations

from codecgen.schema.model import Model
from tests.codecgen.language import language_page
from tests.codecgen.schemas import checked

MANIFEST = "# codecgen.yaml\n"


BLOCKS = [
    (line, text)
    for line, text in language_page.blocks()
    if not text.startswith("# codecgen.yaml") and "weather." not in text
]


def model_of_block(text: str) -> Model:
    manifests = [block for _, block in language_page.blocks() if block.startswith(MANIFEST)]
    assert len(manifests) == 1
    return checked({"codecgen.yaml": manifests[0], "block.yaml": text})
