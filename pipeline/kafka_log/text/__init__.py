"""Values, rows and tables as text for people, and as JSON, CSV, Parquet and Arrow for programs."""
