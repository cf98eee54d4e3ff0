"""What the columnar codecs stand on: the kernels' primitives, the description of a view, and the driver."""
