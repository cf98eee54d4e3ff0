"""A read-only look at log directories in a web browser, on loopback."""
