"""``python -m codecgen``."""

import sys

from codecgen.cli import main

if __name__ == "__main__":
    sys.exit(main())
