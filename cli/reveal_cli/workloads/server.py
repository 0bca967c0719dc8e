"""A request server: each request of 8 bytes selects a block, the reply is that block of 64 KiB."""

from __future__ import annotations

import asyncio
import os
import struct
import sys
import zlib

PORT = 47_300
BLOCK = 1 << 16
REQUEST = struct.Struct("<Q")
_BLOCKS = 256


async def answer(
    blocks: list[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve one client until it disconnects; compute the checksum of each block."""
    try:
        while True:
            (number,) = REQUEST.unpack(await reader.readexactly(REQUEST.size))
            block = blocks[number % len(blocks)]
            writer.write(REQUEST.pack(zlib.crc32(block)) + block)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(address: str) -> None:
    """Serve forever."""
    blocks = [os.urandom(BLOCK) for _ in range(_BLOCKS)]
    server = await asyncio.start_server(lambda r, w: answer(blocks, r, w), address, PORT)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
