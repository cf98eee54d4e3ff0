"""``python -m kafka_log``: the command kafka-log."""

from __future__ import annotations

import sys
from typing import Any


class _WithoutPandas:
    """pyarrow imports pandas where it is installed, and no command needs it: half a second."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("kafka-log does without it", name=name)


def main() -> int:
    """Run the command in a process of its own. Returns the exit code."""
    sys.meta_path.insert(0, _WithoutPandas())
    from kafka_log.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
