"""``python -m kafka_log``: the command kafka-log."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command in a process of its own. Returns the exit code."""
    # pyarrow imports pandas where it is installed, and no command needs it: half a second.
    sys.modules.setdefault("pandas", None)  # type: ignore[arg-type]
    from kafka_log.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
