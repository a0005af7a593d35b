"""Flows of CrewAI as agents of the swarm: they continue after the last method that ended, and their human feedback is a question."""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from ..swarm import Agent
from ._durable import DurableTask, durable
from ._report import PATIENCE, as_json


def agent(
    flow: Any,
    *,
    name: str,
    state: str | os.PathLike[str],
    inputs: Callable[[DurableTask], dict[str, Any]] | None = None,
    timeout: float = PATIENCE,
    **options: Any,
) -> Agent:
    """Make an agent of a class of flows. Wrap a crew in a flow with one method.

    state: a folder, for checkpoints of the flows, too. inputs: of the flow, for a task; default: its data, or {"text": ...}. timeout:
    seconds for feedback. Other options: of waggle.swarm.agent. Methods with @human_feedback need no provider of their own: the adapter
    sets the one of flow_config, unless the program has.
    """

    async def work(task: DurableTask) -> Any:
        return await _Run(flow, task, Path(state), timeout).output(inputs(task) if inputs else _inputs(task))

    return durable(state=state, name=name, **options)(work)


def _inputs(task: DurableTask) -> dict[str, Any]:
    data: object = task.data
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {"text": task.text}


class _Run:
    def __init__(self, flow: Any, task: DurableTask, folder: Path, timeout: float) -> None:
        self._types: Any = importlib.import_module("crewai.flow.async_feedback.types")
        self._config: Any = importlib.import_module("crewai").CheckpointConfig
        self._flow = flow
        self._task = task
        self._timeout = timeout
        self._folder = folder / "flows" / sha256(task.id.encode()).hexdigest()[:32]
        self._folder.mkdir(parents=True, exist_ok=True)
        task.on_delivered(partial(shutil.rmtree, self._folder, ignore_errors=True))
        persistence = importlib.import_module("crewai.flow.persistence").SQLiteFlowPersistence
        self._persistence: Any = persistence(str(self._folder / "pending.db"))
        self._checkpoints: dict[str, Any] = {
            "location": str(self._folder / "checkpoints"),
            "on_events": ["method_execution_finished"],
        }
        settings: Any = importlib.import_module("crewai.flow.flow_config").flow_config
        if settings.hitl_provider is None:
            settings.hitl_provider = _People(self._types.HumanFeedbackPending)

    async def output(self, inputs: dict[str, Any]) -> Any:
        """Run the flow from where an earlier attempt left it, and return its output."""
        id: str | None = cast("dict[str, Any]", self._task.state or {}).get("flow")
        pending = self._persistence.load_pending_feedback(id) if id else None
        result = await self._feedback(id, pending[1]) if pending else await self._begin(inputs)
        while isinstance(result := await self._drained(result), self._types.HumanFeedbackPending):
            await self._task.checkpoint({"flow": result.context.flow_id})
            result = await self._feedback(result.context.flow_id, result.context)
        return as_json(getattr(result, "raw", result))

    async def _begin(self, inputs: dict[str, Any]) -> Any:
        flow = self._flow(persistence=self._persistence, checkpoint=self._config(**self._checkpoints))
        newest = _newest(Path(self._checkpoints["location"]))
        if newest is None:
            if self._task.attempt > 1:
                await self._task.unknown("the flow has no checkpoint: it starts anew")
            return await flow.kickoff_async(inputs=inputs)
        await self._task.unknown("the method that ran when the process ended may have had effects, and runs again")
        restore = self._config(**self._checkpoints, restore_from=str(newest))
        return await flow.kickoff_async(inputs=inputs, from_checkpoint=restore)

    async def _feedback(self, id: str | None, context: Any) -> Any:
        """Ask people for the feedback that the flow waits for, and continue it."""
        await self._task.flush()
        question = {"question": context.message, "output": as_json(context.method_output)}
        answer = await self._task.ask(question, options=context.emit, timeout=self._timeout)
        checkpoint = self._config(**self._checkpoints)
        flow = self._flow.from_pending(id, self._persistence, checkpoint=checkpoint)
        return await flow.resume_async(answer if isinstance(answer, str) else json.dumps(answer))

    async def _drained(self, result: Any) -> Any:
        """Show the pieces of a flow with stream = True, and return its result."""
        if not hasattr(result, "__aiter__"):
            return result
        async for frame in result:
            if frame.content:
                await self._task.stream(frame.content)
        return result.result


class _People:
    """Pauses a flow that wants feedback: the adapter asks people, and continues it, in this process or a later one."""

    def __init__(self, pending: type[Exception]) -> None:
        self._pending: Any = pending

    def request_feedback(self, context: Any, flow: Any) -> str:
        raise self._pending(context=context)


def _newest(folder: Path) -> Path | None:
    """Return the newest checkpoint that is whole: a process may have ended while it wrote one."""
    for file in sorted(folder.glob("**/*.json"), key=lambda f: f.stat().st_mtime_ns, reverse=True):
        try:
            json.loads(file.read_text("utf-8"))
        except ValueError:
            continue
        return file
    return None
