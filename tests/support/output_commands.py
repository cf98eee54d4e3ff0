"""Commands that write into an output directory."""

from __future__ import annotations

COMMANDS = {
    "parquet": ["export", "--format", "parquet"],
    "arrow": ["export", "--format", "arrow"],
    "jsonl": ["export", "--format", "jsonl"],
    "csv": ["export", "--format", "csv"],
    "salvage": ["salvage"],
    "cut": ["cut", "--offsets", "0:"],
    "reindex": ["reindex"],
    "convert": ["convert", "--codec", "zstd"],
}
"""Each command that writes files, in each format."""
