"""Explain declarations, diagnostics and generated programs as text for a terminal."""
