"""An agent of a framework with two tools. The first process stops in the second one until it is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import agents
import pydantic_ai as pydantic
from crewai.flow.flow import Flow, listen, start

from waggle.integrations import crewai, openai_agents, pydantic_ai

url, name, folder, framework = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]
state = folder / "state"


async def look(text: str) -> str:
    with (folder / "effects").open("a") as effects:
        effects.write("look\n")
    return "seen"


async def act(text: str) -> str:
    with (folder / "effects").open("a") as effects:
        effects.write("act\n")
    if (folder / "effects").read_text().count("act") == 1:
        print("in the last tool", flush=True)
        await asyncio.Event().wait()
    return "done"


class LookAndAct(Flow):
    @start()
    async def look(self) -> str:
        return await look("")

    @listen(look)
    async def act(self, seen: str) -> str:
        return f"{seen}; {await act(seen)}"


def worker() -> Any:
    options: dict[str, Any] = {"name": name, "id": f"{name}-1", "state": state}
    if "idempotent" in sys.argv:
        options["idempotent"] = {"act"}
    if framework == "crewai":
        return crewai.agent(LookAndAct, **options)
    if framework == "openai_agents":
        tools = [agents.function_tool()(look), agents.function_tool(needs_approval=True)(act)]
        return openai_agents.agent(agents.Agent(name="Worker", tools=tools), **options)
    agent = pydantic.Agent("stand-in", output_type=[str, pydantic.DeferredToolRequests])
    agent.tool_plain()(look)
    agent.tool_plain(requires_approval=True)(act)
    return pydantic_ai.agent(agent, **options)


worker().run(url)
