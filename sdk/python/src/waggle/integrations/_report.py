"""Show in the log of a task how a framework works on it: its text, its calls, its approvals."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any, cast

from .._errors import WaggleError
from .._tools import plain, text_of
from ..swarm import AgentTask

log = logging.getLogger("waggle")

PAUSE = 0.25
"""Seconds for which pieces of a text wait for each other: an event for each token would flood the log."""
PIECE = 2_000
"""Characters after which a piece is sent without waiting, and at which results of calls are cut."""
PATIENCE = 3_600.0
"""Seconds that people have for an answer, unless the adapter says otherwise: as long as a task has."""


class UnknownOutcomeError(WaggleError):
    """Work began in an earlier attempt, its outcome is not known, and it must not be done twice."""


class Report(AgentTask):
    """A task that shows in its log how a framework works on it."""

    def __init__(self, task: AgentTask) -> None:
        self.__dict__.update(task.__dict__)
        self.attempt = int(self.metadata.get("attempt") or 1)
        """1 for the first process that works on the task, one more for each that follows."""
        self._text = ""
        self._timer: asyncio.Task[None] | None = None

    async def stream(self, text: str) -> None:
        """Show a piece of a text. Pieces travel together: several of them are one notification."""
        self._text += text
        if len(self._text) >= PIECE:
            await self.flush()
        elif self._text and self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._later())

    async def _later(self) -> None:
        await asyncio.sleep(PAUSE)
        self._timer = None
        try:
            await self.flush()
        except WaggleError as error:
            log.warning("text of task %s not shown: %s", self.id, error)

    async def flush(self) -> None:
        """Show the pieces that wait."""
        self.close()
        text, self._text = self._text, ""
        if text:
            await self.notify(text, type="progress", data={"text": text})

    def close(self) -> None:
        """Stop waiting for further pieces."""
        if self._timer is not None and self._timer is not asyncio.current_task():
            self._timer.cancel()
        self._timer = None

    async def called(self, tool: str, arguments: Any, call: str) -> None:
        """Show that a tool of the framework is called."""
        await self.flush()
        data = {"tool": tool, "arguments": as_json(arguments), "call_id": call, "state": "called"}
        await self.notify(f"{tool} is called", type="step", data=data)

    async def returned(self, tool: str, result: Any, call: str, *, failed: bool = False) -> None:
        """Show the outcome of a call."""
        state = "failed" if failed else "returned"
        data = {"tool": tool, "result": text_of(as_json(result))[:PIECE], "call_id": call, "state": state}
        await self.notify(f"{tool} {state}", type="step", data=data)

    async def resumed(self, at: str) -> None:
        """Show that this process continues what an earlier one began."""
        await self.notify(f"attempt {self.attempt} resumes {at}", data={"state": "resumed", "at": at})

    async def unknown(self, why: str) -> None:
        """Show that an earlier attempt may have had effects of which nothing is known."""
        await self.notify(f"unknown: {why}", type="warning", data={"state": "unknown"})

    async def approve(self, tool: str, arguments: Any, *, timeout: float = PATIENCE) -> tuple[bool, str]:
        """Ask people whether a call may run. The second value is the reason, for the model."""
        question = {"question": f"May {tool} run?", "tool": tool, "arguments": as_json(arguments)}
        await self.flush()
        return verdict(await self.ask(question, options=["approve", "reject"], timeout=timeout))


def verdict(answer: Any) -> tuple[bool, str]:
    """Read an answer to an approval: true, "approve", or an object with approved or decision, and feedback. Others reject it."""
    if isinstance(answer, Mapping):
        members = cast("Mapping[str, Any]", answer)
        approved, _ = verdict(members.get("approved", members.get("decision")))
        return approved, str(members.get("feedback") or members.get("text") or "")
    if isinstance(answer, str) and answer.strip().lower() not in ("approve", "approved", "reject", "rejected"):
        return False, answer
    return answer is True or (isinstance(answer, str) and answer.strip().lower().startswith("approve")), ""


def as_json(value: Any) -> Any:
    """Return a value of a framework as JSON has it; texts that are JSON are read, and what JSON does not have becomes a text."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return json.loads(json.dumps(plain(value), ensure_ascii=False, default=_dumped))


def _dumped(value: Any) -> Any:
    found = plain(value)
    return str(value) if found is value else found
