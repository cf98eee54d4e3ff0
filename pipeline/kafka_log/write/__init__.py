"""Rows to the bytes of a log."""
