from __future__ import annotations

import asyncio
import os
import re
import sys
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import agents
import pydantic_ai as pydantic
import pytest
from conftest import Server
from crewai.flow.flow import Flow, start
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from waggle import Question, Task, Waggle
from waggle.errors import WaggleError
from waggle.integrations import DurableTask, Folder, crewai, durable, langgraph, openai_agents, pydantic_ai
from waggle.integrations._report import verdict

HERE = Path(__file__).parent
EXAMPLES = re.findall(r"```python\n(.*?)```", (HERE.parent / "INTEGRATIONS.md").read_text(), re.DOTALL)


BOOT = """
import logging, runpy, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Worker:
    """A process with an agent, which may be killed and started again."""

    def __init__(self, program: str, url: str, folder: Path, *arguments: str) -> None:
        self.name = f"{Path(program).stem}-{uuid.uuid4().hex[:8]}"
        path = os.pathsep.join([str(HERE.parent / "src"), str(HERE / "standins")])
        self._environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        self._arguments = [str(HERE / "workers" / program), url, self.name, str(folder), *arguments]
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and return once the server knows its agent."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", "-c", BOOT, *self._arguments),
            stdout=asyncio.subprocess.PIPE,
            env=self._environment,
            cwd=self._folder,
        )
        await self.says("is registered")

    async def says(self, line: str) -> None:
        """Wait until it prints a line."""
        assert self._process
        assert self._process.stdout
        while line not in (printed := (await self._process.stdout.readline()).decode()):
            assert printed, "the worker has ended"

    async def kill(self) -> None:
        """End it as kill -9 does."""
        assert self._process
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def working(program: str, url: str, folder: Path, *arguments: str) -> AsyncGenerator[Worker, None]:
    worker = Worker(program, url, folder, *arguments)
    await worker.start()
    try:
        yield worker
    finally:
        await worker.kill()


async def question(task: Task) -> Question:
    """Return the question of the task once it asks one."""
    asked = asyncio.Event()
    leave = task.on_questions(lambda questions: asked.set() if questions else None)
    if not task.questions:
        await asked.wait()
    leave()
    return task.questions[-1]


async def shown(task: Task) -> list[dict[str, Any]]:
    """Return the notifications of a task that has ended."""
    return [dict(e["data"]) async for e in task.events() if e["type"] == "task.notified"]


def states(notifications: list[dict[str, Any]]) -> list[str]:
    return [n["data"]["state"] for n in notifications if "state" in (n.get("data") or {})]


async def test_steps_of_a_killed_process_are_not_done_again(server: Server, tmp_path: Path) -> None:
    async with working("counting.py", server.url, tmp_path, "idempotent") as worker, Waggle(server.url) as w:
        task = await w.tasks.create("count", agent=worker.name)
        await (await question(task)).reply("red")
        await worker.says("in the last step")
        await worker.kill()
        await worker.start()
        assert (await task.result()).result == [1, 2, 3]
        notifications = await shown(task)
    assert (tmp_path / "effects").read_text().split() == ["1", "2", "3", "3"]
    assert states(notifications) == ["resumed"]
    assert "".join(n["data"]["text"] for n in notifications if "text" in n["data"]) == "red numbers"
    assert len([e async for e in task.events() if e["type"] == "task.asked"]) == 1


async def test_a_step_that_may_have_had_effects_is_unknown(server: Server, tmp_path: Path) -> None:
    async with working("counting.py", server.url, tmp_path, "once") as worker, Waggle(server.url) as w:
        task = await w.tasks.create("count", agent=worker.name)
        await (await question(task)).reply("red")
        await worker.says("in the last step")
        await worker.kill()
        await worker.start()
        with pytest.raises(WaggleError, match="check before you repeat") as failure:
            await task.result()
    assert failure.value.code == "TOOL_LOST"
    assert (tmp_path / "effects").read_text().split() == ["1", "2", "3"]


async def test_a_cancellation_reaches_the_work(server: Server, tmp_path: Path) -> None:
    begun, ended = asyncio.Queue[str](), asyncio.Queue[str]()

    async def work(*_: Any) -> Any:
        begun.put_nowait("begun")
        try:
            await asyncio.Event().wait()
        finally:
            ended.put_nowait("ended")

    @durable(name=f"steps-{uuid.uuid4().hex[:8]}", state=tmp_path)
    async def steps(task: DurableTask) -> None:
        await task.step("work", work)

    async def tool(text: str) -> str:
        return await work()

    class Working(Flow):
        @start()
        async def begin(self) -> str:
            return await work()

    clerk = pydantic.Agent("stand-in")
    clerk.tool_plain()(tool)
    name = f"cancelled-{uuid.uuid4().hex[:8]}"
    async with AsyncSqliteSaver.from_conn_string(":memory:") as saver, Waggle(server.url) as w:
        graph = StateGraph(MessagesState).add_node("work", work).add_edge(START, "work").compile(checkpointer=saver)
        for agent in (
            steps,
            langgraph.agent(graph, name=f"{name}-1"),
            openai_agents.agent(
                agents.Agent(name="x", tools=[agents.function_tool()(tool)]), name=f"{name}-2", state=tmp_path
            ),
            pydantic_ai.agent(clerk, name=f"{name}-3", state=tmp_path),
            crewai.agent(Working, name=f"{name}-4", state=tmp_path),
        ):
            async with await agent.connect(server.url):
                task = await w.tasks.create("x", agent=agent.name)
                await begun.get()
                await task.cancel()
                await ended.get()
                with pytest.raises(WaggleError):
                    await task.result()


class Watched(Folder):
    """A folder that tells which states it has removed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.deleted: asyncio.Queue[str] = asyncio.Queue()

    def delete(self, id: str) -> None:
        super().delete(id)
        self.deleted.put_nowait(id)


async def test_a_checkpoint_ends_the_steps_before_it(server: Server, tmp_path: Path) -> None:
    store = Watched(tmp_path)

    def double(n: int) -> int:
        return n * 2

    @durable(name=f"loop-{uuid.uuid4().hex[:8]}", state=store)
    async def loop(task: DurableTask) -> list[Any]:
        found = [task.state]
        for n in range(3):
            found.append(await task.step("double", double, n))
            await task.checkpoint(n)
        return [*found, task.state]

    @durable(name=f"odd-{uuid.uuid4().hex[:8]}", state=store)
    async def odd(task: DurableTask) -> Any:
        with pytest.raises(ValueError, match="not yet"):
            await task.step("fail", lambda: (_ for _ in ()).throw(ValueError("not yet")))
        return await task.step("again", lambda: verdict({"decision": "approve", "text": "fine"}))

    async with await loop.connect(server.url), await odd.connect(server.url), Waggle(server.url) as w:
        first, second = await w.tasks.create("x", agent=loop.name), await w.tasks.create("x", agent=odd.name)
        assert (await first.result()).result == [None, 0, 2, 4, 2]
        assert (await second.result()).result == [True, "fine"]
        assert {await store.deleted.get(), await store.deleted.get()} == {first.id, second.id}
    assert [*store.path.iterdir()] == []


@pytest.mark.parametrize(
    ("answer", "approved"),
    [
        (True, True),
        ("approve", True),
        (" Approved ", True),
        ({"approved": True}, True),
        ("reject", False),
        (None, False),
        ("later", False),
    ],
)
def test_verdicts(answer: Any, approved: bool) -> None:
    assert verdict(answer)[0] is approved


async def test_a_graph_continues_after_its_process_is_killed(server: Server, tmp_path: Path) -> None:
    async with working("graph.py", server.url, tmp_path) as worker, Waggle(server.url) as w:
        task = await w.tasks.create("write about bees", agent=worker.name)
        first = await question(task)
        assert first.data["message"] == {"question": "Is the draft good?"}
        await worker.kill()  # while people think
        await worker.start()
        second = asyncio.Event()
        task.on_questions(lambda questions: second.set() if any(q.id != first.id for q in questions) else None)
        await second.wait()
        await task.questions[-1].reply("very good")
        await worker.says("in the last node")
        await worker.kill()  # while it works
        await worker.start()
        assert (await task.result()).result == "Published, very good."
        notifications = await shown(task)
    assert (tmp_path / "effects").read_text().split() == ["draft", "publish", "publish"]
    drafted, reviewed, published = "begun called returned begun", "resumed begun begun", "begun resumed unknown begun"
    assert " ".join(states(notifications)) == f"{drafted} {reviewed} {published}"
    assert [n["data"]["tool"] for n in notifications if "tool" in n["data"]] == ["lookup", "lookup"]
    assert notifications[1]["data"] == {"text": "A draft about bees."}


@pytest.mark.parametrize(
    ("n", "name", "answers", "expected"),
    [
        (0, "counter", ["words"], "3 words"),
        (1, "reviewer", ["good"], "The verdict is good."),
        (2, "writer", ["approve"], "one two three is published."),
        (2, "writer", [{"approved": False, "feedback": "Not today."}], "Not today."),
        (3, "clerk", [True], "one two three is deleted."),
        (3, "clerk", [{"decision": "reject", "feedback": "Keep it."}], "Keep it."),
        (4, "reporter", ["good"], "A report about one two three: good"),
    ],
)
async def test_the_examples_run(
    server: Server, tmp_path: Path, n: int, name: str, answers: list[Any], expected: str
) -> None:
    program = tmp_path / "example.py"
    program.write_text(EXAMPLES[n].replace("http://127.0.0.1:9000", server.url))
    async with working(str(program), server.url, tmp_path), Waggle(server.url) as w:
        task = await w.tasks.create("one two three", agent=name)
        for answer in answers:
            await (await question(task)).reply(answer)
        assert (await task.result()).result == expected
    assert (
        len([line for line in EXAMPLES[n].splitlines() if line.strip() and not line.startswith(("import", "from"))])
        <= 12
    )


@pytest.mark.parametrize("framework", ["openai_agents", "pydantic_ai", "crewai"])
async def test_a_framework_continues_after_its_process_is_killed(
    server: Server, tmp_path: Path, framework: str
) -> None:
    arguments = [framework] if framework == "crewai" else [framework, "idempotent"]
    async with working("tools.py", server.url, tmp_path, *arguments) as worker, Waggle(server.url) as w:
        task = await w.tasks.create("x", agent=worker.name)
        if framework != "crewai":
            assert (await question(task)).data["message"]["tool"] == "act"
            await task.questions[0].reply("approve")
        await worker.says("in the last tool")
        await worker.kill()
        await worker.start()
        assert (await task.result()).result == "seen; done"
        notifications = await shown(task)
        assert len([e async for e in task.events() if e["type"] == "task.asked"]) == len(arguments) - 1
    assert (tmp_path / "effects").read_text().split() == ["look", "act", "act"]
    expected = {
        "openai_agents": "called returned called resumed returned",
        "pydantic_ai": "called returned called called resumed called returned",
        "crewai": "resumed unknown",
    }
    assert " ".join(states(notifications)) == expected[framework]
    if framework != "crewai":
        assert "".join(n["data"]["text"] for n in notifications if "text" in n["data"]) == "seen; done"


@pytest.mark.parametrize("framework", ["openai_agents", "pydantic_ai"])
async def test_a_tool_that_may_have_had_effects_is_unknown(server: Server, tmp_path: Path, framework: str) -> None:
    async with working("tools.py", server.url, tmp_path, framework) as worker, Waggle(server.url) as w:
        task = await w.tasks.create("x", agent=worker.name)
        await (await question(task)).reply("approve")
        await worker.says("in the last tool")
        await worker.kill()
        await worker.start()
        with pytest.raises(WaggleError, match="ended during act") as failure:
            await task.result()
    assert failure.value.code == "TOOL_LOST"
    assert (tmp_path / "effects").read_text().split() == ["look", "act"]
