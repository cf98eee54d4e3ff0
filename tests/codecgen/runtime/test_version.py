"""What generated modules were made for: each says it, and a runtime that is another says so."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from pathlib import Path

import pytest

from codecgen.runtime import version
from codecgen.runtime.version import LANGUAGE, RELEASE, RUNTIME, MadeForAnother, made_for
from tests.paths import ROOT

MAJOR, MINOR = RUNTIME


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("language", "runtime", "advice"),
    [
        (LANGUAGE, (MAJOR, MINOR + 1), r"install \S+ 9\.8\.7 or a later one$"),
        (LANGUAGE, (MAJOR + 1, 0), r"install \S+ 9\.8\.7 or a later one$"),
        (LANGUAGE + 1, RUNTIME, r"install \S+ 9\.8\.7 or a later one$"),
        (
            LANGUAGE,
            (MAJOR - 1, 7),
            r"generate it again \(codecgen generate\), or install \S+ 9\.8\.7$",
        ),
    ],
)
def test_a_runtime_that_is_another_says_so(
    language: int, runtime: tuple[int, int], advice: str
) -> None:
    with pytest.raises(MadeForAnother, match=advice) as caught:
        made_for("some.codecs", language=language, runtime=runtime, release="9.8.7")
    error = caught.value
    assert isinstance(error, ImportError)
    assert (error.name, error.language, error.runtime) == ("some.codecs", language, runtime)
    here = f"but the runtime here is {MAJOR}.{MINOR} and knows language {LANGUAGE}: "
    made = f"for version {runtime[0]}.{runtime[1]} of the runtime and {language} of the language"
    assert str(error).startswith(f"some.codecs was generated {made}, {here}")
    assert "\n" not in str(error)


def test_a_runtime_with_more_than_is_needed_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "RUNTIME", (1, 4))
    monkeypatch.setattr(version, "LANGUAGE", 3)
    made_for("some.codecs", language=1, runtime=(1, 4), release="1.0")
    made_for("some.codecs", language=3, runtime=(1, 0), release="1.0")
    with pytest.raises(MadeForAnother):
        made_for("some.codecs", language=3, runtime=(1, 5), release="1.0")


def test_every_generated_module_says_what_it_was_made_for() -> None:
    line = (
        f'__made_for__ = {{"language": {LANGUAGE}, "runtime": {RUNTIME}, "release": "{RELEASE}"}}'
    )
    call = f'made_for(__name__, language={LANGUAGE}, runtime={RUNTIME}, release="{RELEASE}")'
    modules = sorted((ROOT / "generated").rglob("*.py"))
    assert len(modules) > 25
    for path in modules:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[-1] == line, path
        assert (call in lines) == (path.name == "__init__.py"), path


@pytest.mark.share(2)
@pytest.mark.parametrize("module", ["kafka_codecs", "kafka_codecs.arrow.records"])
def test_codecs_of_another_runtime_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    shutil.copytree(ROOT / "generated" / "kafka_codecs", tmp_path / "kafka_codecs")
    package = tmp_path / "kafka_codecs" / "__init__.py"
    text = package.read_text(encoding="utf-8")
    package.write_text(text.replace(f"runtime={RUNTIME}", "runtime=(99, 0)"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if re.match(r"kafka_codecs(\.|$)", name)]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MadeForAnother, match=r"^kafka_codecs was generated for version 99\.0"):
        importlib.import_module(module)


def test_the_page_on_what_is_stable_is_true() -> None:
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8").replace("\n", " ")
    assert f"has a version, now {LANGUAGE}: the manifest names it (`language: {LANGUAGE}`)" in page
    assert MadeForAnother.__name__ in page and issubclass(MadeForAnother, ImportError)
