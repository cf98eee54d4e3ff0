"""What generated codecs stand on: small, bounded, tested; imports nothing else of this project."""
