"""The command ``codecgen``, and ``python -m codecgen``."""

from __future__ import annotations

import sys

from codecgen.runtime.extras import missing


def main() -> int:
    """Run the command that ``sys.argv`` names and return its exit code, as
    :func:`codecgen.cli.main` does: 0, 1 for findings, 2 if it could not run. If a package that the
    command needs, such as PyYAML or Jinja2, is missing, print what to install to standard error and
    return 2. Raise ModuleNotFoundError for other missing modules; SystemExit for ``--help`` and
    ``--version``.
    """
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
