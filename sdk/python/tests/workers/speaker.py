"""Show a session and send it messages, for the test of cut lines in e2e: speaker.py SESSION URL...

Each line of the standard input is a message, sent once the one before has its answer. The output has the events of the
session, and {"answered": MESSAGE} after each answer, as lines of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from waggle import Backoff, Waggle


def tell(of: Any) -> None:
    print(json.dumps(of), flush=True)


async def speak(session: str, urls: list[str]) -> None:
    async with Waggle(urls, backoff=Backoff(0.005, 0.05), timeout=None) as w:
        s = w.session(session, fresh=True)
        s.on(tell)
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer
        )
        while line := (await lines.readline()).decode().strip():
            await s.send(line).result()
            tell({"answered": line})


asyncio.run(speak(sys.argv[1], sys.argv[2:]))
