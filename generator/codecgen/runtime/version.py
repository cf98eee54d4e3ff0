"""Versions of the schema language and of the runtime, and the check that a generated module fits this runtime."""

from __future__ import annotations

LANGUAGE = 1
"""The version of the schema language."""

RUNTIME = (3, 0)
"""The version of what generated modules import. The first number changes when modules that were generated before do
not work any more, the second when modules that are generated from now on need more than there was."""

RELEASE = "0.1.0"
"""The version of this release, as in pyproject.toml. Each release changes it and generates all modules again, which name it."""


class MadeForAnother(ImportError):
    """Raised when a generated module does not fit the installed runtime.

    Attributes:
        name: The module.
        language: Version of the schema language that the module was generated from.
        runtime: Version of the runtime that it was generated for.
        release: Release that the module was generated with.
    """

    def __init__(
        self, module: str, language: int, runtime: tuple[int, int], release: str, advice: str
    ) -> None:
        made, here = (".".join(map(str, version)) for version in (runtime, RUNTIME))
        super().__init__(
            f"{module} was generated for version {made} of the runtime and {language} of the language, but the runtime "
            f"here is {here} and knows language {LANGUAGE}: {advice}",
            name=module,
        )
        self.language = language
        self.runtime = runtime
        self.release = release


def made_for(module: str, *, language: int, runtime: tuple[int, int], release: str) -> None:
    """Return None if this runtime can run a module generated for ``language`` (not above ours) and
    ``runtime`` (same first number, second not above ours). Otherwise raise MadeForAnother, an
    ImportError, whose message says to install ``release`` or to generate the module again.
    """
    if language <= LANGUAGE and runtime[0] == RUNTIME[0] and runtime[1] <= RUNTIME[1]:
        return
    later = language > LANGUAGE or runtime > RUNTIME
    advice = f"install {_distribution()} {release}" + (" or a later one" if later else "")
    if not later:
        advice = f"generate it again (codecgen generate), or {advice}"
    raise MadeForAnother(module, language, runtime, release, advice)


def version_of(package: str) -> str:
    """Return the version of the installed distribution that is called like the generated package.
    Raise AttributeError if none is installed.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        reason = f"module {package!r} has no attribute '__version__': no distribution {package!r} is installed"
        raise AttributeError(reason) from None


def _distribution() -> str:
    """Return the name of the installed distribution that provides this runtime, or the name of its
    top package if none is installed.
    """
    from importlib.metadata import packages_distributions

    package = __name__.partition(".")[0]
    return packages_distributions().get(package, [package])[0]
