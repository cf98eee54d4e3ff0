"""Kernels that decode: entries and rows into Arrow buffers."""
