"""Reading of logs as streams of Arrow rows: selection of records, read plans, row formats and views of internal topics."""
