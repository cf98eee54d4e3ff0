"""The command ``codecgen``, and ``python -m codecgen``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run a command. Without PyYAML and Jinja2, which reading Kafka's bytes does not need, say what to install."""
    try:
        from codecgen.cli import main as run

        return run()
    except ModuleNotFoundError as error:
        if error.name not in ("yaml", "jinja2"):
            raise
        sys.stderr.write(
            f"codecgen: {error.name} is not installed: pip install 'kafka-codecs[generate]'\n"
        )
        return 2


if __name__ == "__main__":
    sys.exit(main())
