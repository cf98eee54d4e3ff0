"""Streams over log directories that brokers write to: ``spark.readStream.format("kafka-log").load(path)``.

``offsets`` is the form in checkpoints, ``admission`` limits a micro-batch, ``polling`` finds new and lost records and plans the tasks, ``reader`` is
the Python source. The columnar connector uses the same through its workers.
"""
