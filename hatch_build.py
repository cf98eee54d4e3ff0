"""Metadata that depend on where the repository is: project URLs, and the links of README.md on PyPI."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class RepositoryMetadata(MetadataHookInterface):
    """Fills in `urls` and `readme` from the option `repository`, the URL of the repository without a slash at its end.

    Links of README.md become links to the files of the release's tag. If `repository` is empty, there are no URLs, and README.md
    stays as it is.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Add both to the metadata of the project."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        repository = self.config["repository"]
        metadata["urls"] = {}
        if repository:
            tag = f"v{metadata['version']}"
            files = f"{repository}/blob/{tag}"
            text = re.sub(r"\]\((?![a-z]+:|#)", f"]({files}/", text)
            text = re.sub(r'\bsrc="(?![a-z]+:)', f'src="{repository}/raw/{tag}/', text)
            metadata["urls"] = {
                "Source": repository,
                "Documentation": f"{files}/docs/README.md",
                "Changelog": f"{files}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
