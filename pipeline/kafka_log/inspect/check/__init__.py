"""Findings about damage in log directories, as ``kafka-log check`` prints them. Files are never changed."""
