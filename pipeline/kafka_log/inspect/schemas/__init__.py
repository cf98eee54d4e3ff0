"""Schemas of a registry and the topics that use them, as ``kafka-log schemas`` prints them."""
