"""YAML blocks of the pages on the schema language, as models."""

from __future__ import annotations

from codecgen.schema.model import Model
from tests.codecgen.language import language_pages
from tests.codecgen.schemas import checked

MANIFEST = "# codecgen.yaml\n"


BLOCKS = [
    (place, text)
    for place, text in language_pages.blocks()
    if not text.startswith("# codecgen.yaml") and "weather." not in text
]


def model_of_block(text: str) -> Model:
    manifests = [block for _, block in language_pages.blocks() if block.startswith(MANIFEST)]
    assert len(manifests) == 1
    return checked({"codecgen.yaml": manifests[0], "block.yaml": text})
