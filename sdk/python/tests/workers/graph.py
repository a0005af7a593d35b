"""A graph that asks between two nodes. The first process stops in the last node until it is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph, say
from langgraph.types import interrupt

from waggle.integrations import langgraph

url, name, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])


def effect(what: str) -> None:
    with (folder / "effects").open("a") as effects:
        effects.write(f"{what}\n")


async def draft(state: dict[str, Any]) -> dict[str, Any]:
    effect("draft")
    call = {"name": "lookup", "args": {"word": "bee"}, "id": "call-1"}
    return {
        "messages": [
            {**say("A draft", " about bees."), "tool_calls": [call]},
            {"type": "tool", "name": "lookup", "content": "an insect", "tool_call_id": "call-1"},
        ]
    }


async def review(state: dict[str, Any]) -> dict[str, Any]:
    return {"verdict": interrupt({"question": "Is the draft good?"})}


async def publish(state: dict[str, Any]) -> dict[str, Any]:
    effect("publish")
    if (folder / "effects").read_text().count("publish") == 1:
        print("in the last node", flush=True)
        await asyncio.Event().wait()
    return {"messages": [say(f"Published, {state['verdict']}.")]}


async def main() -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("draft", draft).add_node("review", review).add_node("publish", publish)
    builder.add_edge(START, "draft").add_edge("draft", "review").add_edge("review", "publish")
    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        graph = builder.compile(checkpointer=saver)
        await langgraph.agent(graph, name=name, id=f"{name}-1").serve(url)


asyncio.run(main())
