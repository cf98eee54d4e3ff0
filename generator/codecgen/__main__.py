"""The command ``codecgen``, and ``python -m codecgen``."""

from __future__ import annotations

import sys

from codecgen.runtime.extras import missing


def main() -> int:
    """Run a command. Without PyYAML and Jinja2, which reading Kafka's bytes does not need, say what to install."""
    try:
        from codecgen.cli import main as run

        return run()
    except ModuleNotFoundError as error:
        advice = missing("codecgen", error)
        if advice is None:
            raise
        sys.stderr.write(f"{advice}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
