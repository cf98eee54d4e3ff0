"""Files of a store that are read more than once: what was read last is kept, and a small file is read whole, by one request."""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress

from kafka_log.segment.remote_files import BLOCK, Block, RemoteFile
from kafka_log.segment.remote_paths import RemotePath

HELD = 4
"""Files of which bytes are kept: a segment, and those beside it."""


class HeldBlocks:
    """The last block that was read of each of a few files. One thread uses it."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[tuple[str, int], Block] = OrderedDict()

    def get(self, file: RemoteFile) -> Block | None:
        """Return the block of a file, if one was read when it had the same size."""
        return self._blocks.get((os.fspath(file.name), file.size))

    def keep(self, file: RemoteFile, block: Block) -> None:
        """Keep the block of a file. Of more than HELD files, drop the one that was read the longest ago."""
        key = os.fspath(file.name), file.size
        self._blocks[key] = block
        self._blocks.move_to_end(key)
        if len(self._blocks) > HELD:
            self._blocks.popitem(last=False)


class HeldPath(RemotePath):
    """A path of which bytes are kept that were read, as are those of all that are made of it, like its parent's children."""

    def __init__(self, path: RemotePath, blocks: HeldBlocks) -> None:
        super().__init__(os.fspath(path), path.storage_options)
        self._blocks = blocks
        self._info, self._listing = path._info, path._listing
        self._above = None if path._above is None else HeldPath(path._above, blocks)

    def _join(self, rest: str) -> RemotePath:
        return HeldPath(super()._join(rest), self._blocks)

    def _file(self) -> RemoteFile:
        return _HeldFile(self, self._blocks)


class _HeldFile(RemoteFile):
    def __init__(self, path: RemotePath, blocks: HeldBlocks) -> None:
        super().__init__(path)
        self._blocks = blocks

    def _block_at(self, position: int, wanted: int) -> Block:
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
