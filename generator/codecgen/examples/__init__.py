"""Examples of schemas, tried with the codecs that are generated from them."""
