"""Readers by NumPy, for where there is no compiler."""
