"""Report changes of the schemas that break old readers or old data: a step of `make check`.

The schemas are compared with those of the last release (the newest tag `v*` before HEAD). While there is no release they
are compared with those of the last landed commit. A break needs an entry under `accepted_breaks` in the manifest.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from codecgen.cli import COULD_NOT_RUN, GOOD, main
from tests.changes import changed_files, find_landed, find_release
from tests.paths import ROOT


def compare(root: Path = ROOT) -> int:
    """Compare `schemas` below `root` with the earlier state, and print the result.

    Returns:
        0 if nothing breaks, all breaks are accepted, git knows no earlier state, or the schemas of the last landed commit
        are no valid schemas any more because the language has changed; 1 if something breaks; 2 if the schemas of the last
        release cannot be read.
    """
    release = find_release(root)
    state = release or find_landed(root, os.environ.get("LANDED"))
    if state is None:
        print(
            "not compared: git knows neither a release nor an earlier commit; in a shallow clone run"
            " `git fetch --unshallow --tags`"
        )
        return GOOD
    changed = changed_files(root, state)
    if not any(name.startswith("schemas/") and name.endswith(".yaml") for name in changed):
        print(f"no schema file has changed since {state}")
        return GOOD
    code = main(["breaking", "--against", state, "--schemas", str(root / "schemas")])
    if code == COULD_NOT_RUN and release is None:
        print("not compared: the schema language has changed since the last landed commit")
        return GOOD
    return code


if __name__ == "__main__":
    sys.exit(compare())
