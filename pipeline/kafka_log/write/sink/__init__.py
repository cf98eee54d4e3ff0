"""Appending rows of tables to the logs of a directory: tasks stage segments, and one commit adds all of them."""
