"""Repair of flipped bits: the checksum names those that it covers, the batches around name the others."""
