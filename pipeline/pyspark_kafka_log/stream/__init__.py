"""Streams over log directories that brokers write to: ``spark.readStream.format("kafka-log").load(path)``.

``offsets`` is what a checkpoint keeps, ``admission`` how much a micro-batch takes, ``polling`` what is there and what is gone, ``planning``
the tasks of a micro-batch, ``reader`` the Python source. The columnar connector asks the same through its workers.
"""
