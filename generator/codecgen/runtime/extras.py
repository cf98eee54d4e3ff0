"""Packages that only some need: which extra of this distribution brings one that is missing."""

from __future__ import annotations

EXTRAS = {
    "fsspec": "remote",
    "numpy": "arrow",
    "pyarrow": "arrow",
    "numba": "fast",
    "isal": "fast",
    "pyspark": "spark",
    "deltalake": "delta",
    "pyiceberg": "iceberg",
    "yaml": "generate",
    "jinja2": "generate",
}
"""The extra of ``kafka-codecs`` that has a module."""


def missing(what: str, error: ImportError) -> str | None:
    """A line that says what ``what`` needs and how to get it; None when the module that is missing is of no extra."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    return f'{what} needs {module}: pip install "kafka-codecs[{extra}]"'
