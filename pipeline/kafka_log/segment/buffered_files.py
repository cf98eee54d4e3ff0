"""Cache for files of a store that are read more than once: the last block of each file is cached, and a small file is read by one request."""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress

from kafka_log.segment.remote_files import BLOCK, Block, RemoteFile
from kafka_log.segment.remote_paths import RemotePath

HELD = 4
"""Number of files with a cached block: a segment and its index files."""


class BufferedBlocks:
    """Cache of the last block of each of the four files that were cached last. It is not thread-safe."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[tuple[str, int], Block] = OrderedDict()

    def get(self, file: RemoteFile) -> Block | None:
        """Return the cached block of a file; None if there is none, or if the file had another size
        when it was cached.
        """
        return self._blocks.get((os.fspath(file.name), file.size))

    def keep(self, file: RemoteFile, block: Block) -> None:
        """Cache a block of a file in place of its former one. If there are more than four files
        then, drop the block of the file for which this was called the longest ago; reading a cached
        block does not count.
        """
        key = os.fspath(file.name), file.size
        self._blocks[key] = block
        self._blocks.move_to_end(key)
        if len(self._blocks) > HELD:
            self._blocks.popitem(last=False)


class BufferedPath(RemotePath):
    """Remote path whose files use a cache of blocks. Paths made from it (parent, children) share the cache."""

    def __init__(self, path: RemotePath, blocks: BufferedBlocks) -> None:
        """Copy ``path`` with what it knows of its store, and use ``blocks`` as the cache."""
        super().__init__(os.fspath(path), path.storage_options)
        self._blocks = blocks
        self._info, self._listing = path._info, path._listing
        self._above = None if path._above is None else BufferedPath(path._above, blocks)

    def _join(self, rest: str) -> RemotePath:
        """Return another path of the store that uses the same cache."""
        return BufferedPath(super()._join(rest), self._blocks)

    def _file(self) -> RemoteFile:
        """Open the file with the cache."""
        return _BufferedFile(self, self._blocks)


class _BufferedFile(RemoteFile):
    """Remote file that looks into a cache of blocks before it asks the store."""

    def __init__(self, path: RemotePath, blocks: BufferedBlocks) -> None:
        super().__init__(path)
        self._blocks = blocks

    def _block_at(self, position: int, wanted: int) -> Block:
        """Return the block with the byte at ``position``: the current one, the cached one, or one
        from the store. A file of at most 4 MiB is requested as a whole first. The block is cached.
        Raise OSError if the store cannot read it.
        """
        if self._block.start <= position < self._block.end:
            return self._block
        held = self._blocks.get(self)
        is_new = not self._block.data and not self._bad
        if held is None and is_new and self.size <= BLOCK:
            # Where that fails, a smaller part may be had.
            with suppress(Exception):
                held = self._complete_block(0, self.size, self._fetch(0, self.size))
        if held is not None and held.start <= position < held.end:
            self._block = held
        elif position:
            super()._block_at(position, wanted)
        else:
            super()._block_at(position, BLOCK)
            self._step = BLOCK  # whoever begins at the first byte walks over all of the file
        self._blocks.keep(self, self._block)
        return self._block
