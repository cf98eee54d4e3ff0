"""Read, check and repair Kafka log directories without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_log.logs.discovery import discover
from kafka_log.logs.partitions import DirectoryError, Partition, Segment
from kafka_log.segment.model import Batch, Control, End, Lost, Policy, Problem, Record
from kafka_log.segment.paths import make_path
from kafka_log.segment.reader import SegmentReader

if TYPE_CHECKING:
    from kafka_log.log_directory import LogDirectory
    from kafka_log.read.scanning import read_table, scan, scan_batches
    from kafka_log.read.selection import Selection
    from kafka_log.write.encoding import encode, write_segment
    from kafka_log.write.sink.log_format import FormatError
    from kafka_log.write.sink.rows import SinkError
    from kafka_log.write.sink.write_log import write_log

__all__ = [
    "Batch",
    "Control",
    "DirectoryError",
    "End",
    "FormatError",
    "LogDirectory",
    "Lost",
    "Partition",
    "Policy",
    "Problem",
    "Record",
    "Segment",
    "SegmentReader",
    "Selection",
    "SinkError",
    "discover",
    "encode",
    "make_path",
    "read_table",
    "scan",
    "scan_batches",
    "write_log",
    "write_segment",
]

_LAZY_MODULES = {
    "LogDirectory": "kafka_log.log_directory",
    **dict.fromkeys(("read_table", "scan", "scan_batches"), "kafka_log.read.scanning"),
    "Selection": "kafka_log.read.selection",
    **dict.fromkeys(("encode", "write_segment"), "kafka_log.write.encoding"),
    "write_log": "kafka_log.write.sink.write_log",
    "FormatError": "kafka_log.write.sink.log_format",
    "SinkError": "kafka_log.write.sink.rows",
    **dict.fromkeys(("load_ipython_extension", "unload_ipython_extension"), "kafka_log.notebook"),
}
"""Names that are imported on first access, because their modules load pyarrow, numpy or codecs."""


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a name on first access. Raise ModuleNotFoundError with the extra to install if a dependency is missing."""
        if name not in _LAZY_MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        from codecgen.runtime.extras import missing

        try:
            found = globals()[name] = getattr(import_module(_LAZY_MODULES[name]), name)
        except ModuleNotFoundError as error:
            advice = missing(f"kafka_log.{name}", error)
            if advice is None:
                raise
            raise ModuleNotFoundError(advice, name=error.name) from None
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
