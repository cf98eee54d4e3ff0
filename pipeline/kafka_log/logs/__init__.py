"""What lies on a disk: directories, index files, and the transactions of a partition."""
