"""Kernels that encode: Arrow tables into entries."""
