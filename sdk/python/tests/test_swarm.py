from __future__ import annotations

import asyncio
import os
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from conftest import Server

from waggle import Backoff, Waggle
from waggle.errors import InvalidInputError, TaskTimeoutError, WaggleError
from waggle.swarm import AgentTask, Service, SyncTask, ToolCall, agent, tool

FAST = Backoff(0.001, 0.01)


def name_of(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:8]}"


async def test_an_agent_answers_tasks_and_chats(server: Server) -> None:
    @agent(name=name_of("shouter"), capabilities=["shouting"])
    async def shouter(task: AgentTask) -> str:
        """Shout."""
        await task.progress(0.5, "half")
        return f"{task.text.upper()}!"

    async with await shouter.connect(server.url) as serving, Waggle(server.url) as w:
        task = await w.tasks.create({"text": "hello"}, agent=shouter.name, id="t" + serving.id)
        again = await w.tasks.create({"text": "hello"}, agent=shouter.name, id="t" + serving.id)
        assert again.id == task.id
        assert (await task.result()).result == "HELLO!"
        whole = [e async for e in task.events()]
        notified: list[Any] = [e["data"] for e in whole if e["type"] == "task.notified"]
        assert any("half" in str(d) for d in notified)
        assert (await w.session().send("good morning", agent=shouter.name).result()).text == "GOOD MORNING!"
        assert [a["name"] async for a in w.swarm.agents(name=shouter.name)] == [shouter.name]
        while task.id not in [t["task_id"] async for t in w.tasks.list(limit=5)]:
            pass
    assert [a async for a in w.swarm.agents(name=shouter.name, status="online")] == []


async def test_a_function_without_asyncio_works_in_a_thread(server: Server) -> None:
    @agent(name=name_of("thinker"))
    def thinker(task: SyncTask) -> dict[str, Any]:
        assert threading.current_thread() is not threading.main_thread()
        task.progress(0.1)
        return {"colour": task.ask("Which colour?", options=["red", "green"], timeout=60), "data": task.data}

    async with await thinker.connect(server.url), Waggle(server.url) as w:
        task = await w.tasks.create([1, 2], agent=thinker.name)
        asked = asyncio.Event()
        task.on_questions(lambda questions: asked.set() if questions else None)
        await asked.wait()
        question = task.questions[0]
        assert (question.scope, question.text) == ("task", "Which colour?")
        await question.reply("green")
        assert (await task.result()).result == {"colour": "green", "data": [1, 2]}


async def test_a_failure_fails_the_task(server: Server) -> None:
    @agent(name=name_of("failing"))
    async def failing(task: AgentTask) -> None:
        if task.data == "code":
            raise WaggleError("no paper", code="PRINTER_EMPTY", detail={"tray": 2})
        raise ValueError("it broke")

    async with await failing.connect(server.url), Waggle(server.url) as w:
        with pytest.raises(WaggleError, match="it broke"):
            await (await w.tasks.create("x", agent=failing.name)).result()
        task = await w.tasks.create("code", agent=failing.name)
        with pytest.raises(WaggleError, match="no paper"):
            await task.result()


async def test_a_cancellation_reaches_the_function(server: Server) -> None:
    begun, ended = asyncio.Queue[str](), asyncio.Queue[str]()
    loop = asyncio.get_running_loop()

    @agent(name=name_of("slow"))
    async def slow(task: AgentTask) -> None:
        begun.put_nowait(task.id)
        try:
            await asyncio.Event().wait()
        finally:
            ended.put_nowait("cancelled")

    @agent(name=name_of("slow-thread"))
    def slow_thread(task: SyncTask) -> None:
        loop.call_soon_threadsafe(begun.put_nowait, task.id)
        task.wait_cancelled()
        try:
            task.progress(1)
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(ended.put_nowait, "in its thread")

    async with await slow.connect(server.url), await slow_thread.connect(server.url), Waggle(server.url) as w:
        for name, word in ((slow.name, "cancelled"), (slow_thread.name, "in its thread")):
            task = await w.tasks.create("x", agent=name)
            assert await begun.get() == task.id
            await task.cancel("enough")
            assert await ended.get() == word
            with pytest.raises(WaggleError):
                await task.result()
        late = await w.tasks.create("x", agent=slow.name, timeout_ms=2000)
        await begun.get()
        assert await ended.get() == "cancelled"
        with pytest.raises(TaskTimeoutError):
            await late.result()
        run = w.session().send("wait", agent=slow.name)
        await begun.get()
        await run.cancel()
        assert await ended.get() == "cancelled"


async def test_a_task_gives_a_child_task(server: Server) -> None:
    @agent(name=name_of("worker"))
    async def worker(task: AgentTask) -> int:
        return task.data["n"] * 2

    @agent(name=name_of("boss"))
    async def boss(task: AgentTask) -> list[Any]:
        found = [await task.child({"n": n}, agent=worker.name) for n in range(3)]
        with pytest.raises(WaggleError):
            await task.child({"no": "n"}, agent=worker.name)
        return found

    async with await worker.connect(server.url), await boss.connect(server.url), Waggle(server.url) as w:
        assert (await (await w.tasks.create("go", agent=boss.name)).result()).result == [0, 2, 4]


async def test_lines_and_servers_that_break_lose_no_result(own_server: Server) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    @agent(name="steady", id="steady-1")
    async def steady(task: AgentTask) -> str:
        begun.set()
        await go.wait()
        return "done"

    async with await steady.connect(own_server.url, backoff=FAST) as serving, Waggle(own_server.url, backoff=FAST) as w:
        first = await w.tasks.create("x", agent="steady")
        await begun.wait()
        await serving.cut()
        go.set()
        assert (await first.result()).result == "done"

        begun.clear()
        go.clear()
        second = await w.tasks.create("x", agent="steady")
        await begun.wait()
        own_server.kill()
        go.set()
        own_server.start()
        assert (await second.result()).result == "done"


async def test_a_program_that_fails_ends_though_a_function_of_its_agent_waits(server: Server) -> None:
    here = Path(__file__).parent
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, str(here / "workers" / "failing.py"), server.url),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(here.parent / "src")},
    )
    try:
        _, said = await program.communicate()
        assert program.returncode == 1
        assert "RuntimeError: the program has failed" in said.decode()
    finally:
        if program.returncode is None:
            program.kill()


async def test_tools_of_a_service_are_called(server: Server) -> None:
    held = asyncio.Event()

    @tool(idempotent=True)
    def add(a: int, b: int = 1) -> int:
        """Add numbers."""
        return a + b

    async def slow(call: ToolCall) -> None:
        """Wait."""
        await call.notify("begun")
        held.set()
        await asyncio.Event().wait()

    service = Service(name_of("calc"), [add, slow])

    @agent(name=name_of("user"))
    async def user(task: AgentTask) -> Any:
        return await task.call_service(serving.id, "add", {"a": task.data})

    async with await service.connect(server.url) as serving, await user.connect(server.url), Waggle(server.url) as w:
        found = await w.call_tool(serving.id, "add", {"a": 2, "b": 3})
        assert (found["status"], found.get("result")) == ("success", 5)
        with pytest.raises(InvalidInputError):
            await w.call_tool(serving.id, "add", {"a": 2, "b": 3, "c": 4})
        assert (await (await w.tasks.create(41, agent=user.name)).result()).result == 42
        tools = [t async for t in w.swarm.tools(provider=serving.id)]
        assert sorted(t["name"] for t in tools) == ["add", "slow"]
        detail = await w.swarm.tool(serving.id, "add")
        assert detail["input_schema"]["required"] == ["a"]
        late = await w.call_tool(serving.id, "slow", timeout_ms=2000)
        assert held.is_set()
        assert late["status"] in ("error", "unknown")


async def test_large_results_are_whole(server: Server) -> None:
    text = "x" * 400_000

    @agent(name=name_of("large"))
    async def large(task: AgentTask) -> str:
        return task.data["text"] + "y"

    async with await large.connect(server.url), Waggle(server.url) as w:
        task = await w.tasks.create({"text": text[:200_000]}, agent=large.name)
        assert (await task.result()).result == text[:200_000] + "y"


async def test_a_server_that_refuses_an_agent_says_why(server: Server) -> None:
    @agent(id="not an id \x00" + "x" * 300)
    async def odd(task: AgentTask) -> None: ...

    with pytest.raises(WaggleError):
        await odd.connect(server.url)
