"""First look at logs: sizes, times, a quick check of the ends of each log, and what to ask next."""
