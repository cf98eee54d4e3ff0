"""Metadata of a cluster as of an offset, and its changes, as ``kafka-log metadata`` prints them."""
