"""Logs on a disk or in an object store: discovery, names, indexes, checkpoints, transactions, tiers and replicas."""
