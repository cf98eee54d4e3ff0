"""SQL over logs with DuckDB."""
