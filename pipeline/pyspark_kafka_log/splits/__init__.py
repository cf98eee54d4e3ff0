"""Planning: from options and filters to the splits of each task.

``stores`` opens object stores, ``logs`` finds partitions and their segments, ``query_logs`` keeps them for all scans of a query, ``offset_ranges`` resolves
the offsets that options select, ``filters`` turns pushed filters into ranges, ``cuts`` cuts segments, and ``plan`` makes the tasks.
"""
