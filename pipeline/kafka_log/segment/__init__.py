"""One file of batches: their headers, a cursor over them, and their records by either engine."""
