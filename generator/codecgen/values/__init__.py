"""Values of any bytes, and bytes of any values: what the commands parse and build do."""
