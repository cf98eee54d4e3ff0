"""The release checklist: `python -m tests.release` (docs/release.md)."""
