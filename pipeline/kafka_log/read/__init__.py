"""Rows: which columns there are, which records become rows, and logs as streams of Arrow."""
