"""Optional packages, and the extra of this distribution that installs each."""

from __future__ import annotations

EXTRAS = {
    "duckdb": "sql",
    "fastavro": "schemas",
    "fsspec": "remote",
    "google": "protobuf",
    "grpc_tools": "protobuf",
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

INSTALL = 'pip install "kafka-codecs[{}]"'
"""The command that installs an extra, as messages print it. It works before a release too: whoever sees a message has the
distribution installed, and pip reads the extras of the installed one. Pages are read before that: until a release they say
``.`` in place of the name."""


def missing(what: str, error: ImportError) -> str | None:
    """Return the message that ``what`` needs the module that ``error`` failed to import, and the
    pip command that installs it. Return None if no extra of kafka-codecs has that module, or the
    error names none.
    """
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    return f"{what} needs {module}: {INSTALL.format(extra)}"
