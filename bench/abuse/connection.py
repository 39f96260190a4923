"""Connections that show what is sent and what comes back, byte by byte."""

import asyncio
import itertools
import socket
import struct
from typing import NamedTuple

ADDRESSES = itertools.cycle(f"127.0.0.{i}" for i in range(1, 200))  # more ports than one address has


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes


class Connection:
    """To the end of an `async with`. Its end is a reset, so that no port waits."""

    def __init__(self, port: int):
        self.port = port

    async def __aenter__(self) -> "Connection":
        self.reader, self.writer = await asyncio.open_connection(
            "127.0.0.1", self.port, local_addr=(next(ADDRESSES), 0), limit=1 << 20
        )
        return self

    async def __aexit__(self, *_) -> None:
        self.close(reset=True)

    def close(self, reset: bool) -> None:
        if reset:
            linger = struct.pack("ii", 1, 0)
            self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort() if reset else self.writer.close()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, head_only: bool = False) -> Answer | None:
        """None where the server closes the connection before a whole answer. Throws ValueError for what is no HTTP."""
        try:
            status, headers = await self.head()
            while status == 100:
                status, headers = await self.head()
            if head_only or status == 204:
                return Answer(status, headers, b"")
            if headers.get("transfer-encoding") == "chunked":
                return Answer(status, headers, await self.chunks())
            if headers.get("connection") == "close" and "content-length" not in headers:  # a stream for HTTP/1.0
                return Answer(status, headers, await self.reader.read())
            return Answer(status, headers, await self.reader.readexactly(int(headers["content-length"])))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        version, status, _ = (lines[0] + "  ").split(" ", 2)
        if not version.startswith("HTTP/1."):
            raise ValueError(f"no status line: {lines[0][:100]!r}")
        return int(status), {n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:])}

    async def chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readuntil(b"\r\n")
        return body


async def ask(port: int, path: str, body: str) -> Answer | None:
    """POST of a JSON text. Throws OSError where nobody listens."""
    data = body.encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    async with Connection(port) as connection:
        await connection.send(head.encode() + data)
        return await connection.answer()
