"""Rows of tables appended to the logs of a directory, as a broker has them: staged by tasks, then committed together."""
