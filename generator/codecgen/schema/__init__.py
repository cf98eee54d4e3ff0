"""YAML with positions -> a frozen model."""
