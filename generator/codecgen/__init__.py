"""codecgen: binary formats as YAML in, codecs and documents out."""
