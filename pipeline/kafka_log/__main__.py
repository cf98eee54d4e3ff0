"""``python -m kafka_log``: the command kafka-log."""

from __future__ import annotations

import sys

from kafka_log.cli import main

if __name__ == "__main__":
    sys.exit(main())
