"""Fail while a function of an agent waits in its thread: failing.py URL."""

from __future__ import annotations

import asyncio
import sys
import threading

from waggle import Waggle
from waggle.swarm import SyncTask, agent

begun = threading.Event()


@agent(id="waits-for-ever")
def waiting(_: SyncTask) -> None:
    begun.set()
    threading.Event().wait()


async def main() -> None:
    async with await waiting.connect(sys.argv[1]) as serving, Waggle(sys.argv[1]) as w:
        await w.tasks.create("wait", agent_id=serving.id)
        await asyncio.to_thread(begun.wait)
        raise RuntimeError("the program has failed")


asyncio.run(main())
