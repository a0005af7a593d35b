"""The twelve tasks of docs/SDKS.md, as the page shows them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Server

from waggle import Waggle

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "sdk/python/examples"))
import tasks  # noqa: E402

CONTRACT: list[dict[str, Any]] = json.loads((ROOT / "proto-schemas/sdk/tasks.json").read_text())


@asynccontextmanager
async def serving(work: Callable[[str], Awaitable[None]], url: str) -> AsyncGenerator[None, None]:
    """Run an agent or a service until the block ends."""
    running = asyncio.ensure_future(work(url))
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until(seek: Callable[[], AsyncGenerator[Any, None]], fits: Callable[[Any], bool]) -> None:
    """Return once a list has a fitting entry: it is as of a second ago."""
    while not [x async for x in seek() if fits(x)]:
        pass


async def run(name: str, client: Waggle, url: str) -> None:
    if name == "resume":
        await tasks.resume(url)
    elif name == "answer":
        session = client.session()
        session.send("list the files, and read notes.md", mode="plan", confirm_plan=True)
        await until(lambda: client.questions.list(log=session.id), lambda _: True)
        await tasks.answer(client, session.id)
    elif name == "task":
        async with serving(tasks.write_agent, url):
            await until(client.swarm.agents, lambda a: a.get("name") == "shouter")
            await tasks.task(client)
    elif name == "write_agent":
        async with serving(tasks.write_agent, url):
            await until(client.swarm.agents, lambda a: a.get("name") == "shouter")
            print((await client.session().send("bees", agent="shouter").result()).text)
    elif name == "write_tools":
        async with serving(tasks.write_tools, url):
            await until(client.swarm.services, lambda s: s.get("name") == "calculator")
            print((await client.call_tool("calculator", "add", {"a": 2, "b": 3})).get("result"))
    elif name == "sessions":
        session = client.session()
        await session.send("what does notes.md say?").result()
        await until(lambda: client.sessions.list(q="notes"), lambda s: s["session_id"] == session.id)
        await tasks.sessions(client)
    else:
        await getattr(tasks, name)(client)


@pytest.mark.parametrize("task", CONTRACT, ids=lambda t: t["name"])
async def test_a_task_prints_what_it_should(
    task: dict[str, Any], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.workspace.mkdir(exist_ok=True)
    (server.workspace / "notes.md").write_text("buy milk\n")
    async with Waggle(server.url) as client:
        await run(task["name"], client, server.url)
    text = capsys.readouterr().out.lower()
    for wanted in task["prints"]:
        assert wanted.lower() in text
