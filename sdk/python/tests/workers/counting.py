"""An agent of three steps. The first process stops in the last one until it is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from waggle.integrations import DurableTask, durable

url, name, folder, idempotent = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4] == "idempotent"


async def effect(task: DurableTask, n: int) -> int:
    with (folder / "effects").open("a") as effects:
        effects.write(f"{n}\n")
    if n == 3 and task.attempt == 1:
        print("in the last step", flush=True)
        await asyncio.Event().wait()
    return n


@durable(name=name, id=f"{name}-1", state=folder / "state")
async def counting(task: DurableTask) -> list[int]:
    """Count to three."""
    colour = await task.ask("Which colour?", options=["red", "green"])
    found = [await task.step("effect", effect, task, n, idempotent=idempotent) for n in (1, 2, 3)]
    await task.stream(f"{colour} ")
    await task.stream("numbers")
    return found


counting.run(url)
