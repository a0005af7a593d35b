"""The questions that wait for people."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from .events import CanonicalEvent, Step

ABSENT: Any = object()
"""A member that is not there, where None is a value."""


@dataclass(frozen=True)
class Reply:
    """An answer to a question."""

    approved: bool
    feedback: str | None = None
    """The reason, for the model."""
    steps: Sequence[Step] | None = None
    """Of a plan: executed instead of the proposed steps."""
    modified: dict[str, dict[str, Any]] | None = None
    """Of a plan: changed members of steps, by their ids."""
    arguments: dict[str, Any] | None = None
    """Of a tool call whose question has parameters: the call runs with these instead."""
    message: Any = ABSENT
    """To an agent that asks: the answer, any JSON."""
    result: str | None = None
    """Of a tool of the program itself: what it returned."""

    def body(self) -> dict[str, Any]:
        """Return the answer as the HTTP API takes it."""
        modified = None if self.modified is None else [{**m, "id": id} for id, m in self.modified.items()]
        members = {
            "decision": self.decision,
            "feedback": self.feedback,
            "steps": self.steps,
            "modified_steps": modified,
            "arguments": self.arguments,
            "result": self.result,
        }
        found: dict[str, Any] = {n: v for n, v in members.items() if v is not None}
        if self.message is not ABSENT:
            found["message"] = self.message
        return found

    @property
    def decision(self) -> str:
        """The word of the log for it."""
        if not self.approved:
            return "reject"
        if self.message is not ABSENT:
            return "answer"
        changed = self.steps is not None or self.modified is not None or self.arguments is not None
        return "modify" if changed else "approve"


@dataclass(frozen=True)
class Question:
    """A decision that people are asked for."""

    id: str
    inbox: str
    """Its id among the questions of all logs."""
    scope: str
    """plan, tool, budget, client_tool or agent; in the log of a task: task."""
    run: str | None
    """The run that waits, if any."""
    text: str
    """For people: the question."""
    route: tuple[str, ...]
    """Of a team: the names of the members on the way to the one that asks."""
    data: dict[str, Any] = field(repr=False)
    """The whole question as it is in the log."""
    _answer: Callable[[Question, Reply], Awaitable[None]] | None = field(default=None, repr=False, compare=False)

    @property
    def digest(self) -> str | None:
        """Of exactly this call: an answer counts for no other one."""
        return self.data.get("digest")

    async def approve(self, feedback: str | None = None) -> None:
        """Approve it. Raises InputAnsweredError if another answer counts."""
        await self.answer(Reply(True, feedback))

    async def reject(self, feedback: str | None = None) -> None:
        """Reject it, with a reason for the model."""
        await self.answer(Reply(False, feedback))

    async def modify(
        self,
        *,
        steps: Sequence[Step] | None = None,
        modified: dict[str, dict[str, Any]] | None = None,
        arguments: dict[str, Any] | None = None,
    ) -> None:
        """Approve a plan with other steps, or a tool call with other arguments."""
        await self.answer(Reply(True, steps=steps, modified=modified, arguments=arguments))

    async def reply(self, message: Any) -> None:
        """Answer an agent that asks, with any JSON."""
        await self.answer(Reply(True, message=message))

    async def answer(self, reply: Reply | bool) -> None:
        """Give an answer. Raises InputAnsweredError if another answer counts."""
        if self._answer is None:
            raise RuntimeError(
                "this question belongs to no session, team or task: answer it with client.questions.answer"
            )
        await self._answer(self, Reply(reply) if isinstance(reply, bool) else reply)


def unwrap(e: CanonicalEvent) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return an event of a member or of a nested team as itself, with the names on the way to its member."""
    route: list[str] = []
    event = cast("dict[str, Any]", e)
    while True:
        data = event["data"]
        if event["type"] == "team.member_event":
            route.append(data["member_name"])
            event = data["event"]
        elif event["type"] == "team.sub_team_event":
            route.append(data["sub_team_node_name"])
            event = data["sub_team_event"]
        else:
            return event, tuple(route)


class Questions:
    """The open questions of a log, made of its events."""

    def __init__(self, answer: Callable[[Question, Reply], Awaitable[None]] | None = None) -> None:
        self._open: dict[str, Question] = {}
        self._answer = answer

    @property
    def open(self) -> list[Question]:
        """The open questions, the oldest first."""
        return [*self._open.values()]

    def get(self, id: str) -> Question | None:
        """Return the open question with the id."""
        return self._open.get(id)

    def take(self, e: CanonicalEvent) -> bool:
        """Take the next event and report whether the open questions changed."""
        event, route = unwrap(e)
        data: dict[str, Any] = event["data"]
        kind: str = event["type"]
        if kind in ("input.requested", "task.asked"):
            self._open[data["input_id"]] = question_of(event, route, self._answer)
            return True
        if kind in ("input.answered", "input.expired", "task.ask_expired", "task.messaged"):
            return self._open.pop(data.get("input_id", ""), None) is not None
        if kind in ("run.completed", "run.failed", "run.cancelled"):
            return self._drop(lambda q: q.run == data.get("run_id"))
        if kind in ("task.finished", "session.deleted", "team.closed"):
            return self._drop(lambda _: True)
        return False

    def _drop(self, fits: Callable[[Question], bool]) -> bool:
        gone = [q.id for q in self._open.values() if fits(q)]
        for id in gone:
            del self._open[id]
        return bool(gone)


def question_of(
    event: dict[str, Any],
    route: tuple[str, ...] = (),
    answer: Callable[[Question, Reply], Awaitable[None]] | None = None,
) -> Question:
    """Return the question of an event that asks one: input.requested or task.asked."""
    data: dict[str, Any] = event["data"]
    inbox = ".".join([*str(event.get("subject", "")).split(".")[1:], data["input_id"]])
    if event["type"] == "task.asked":
        message = data.get("message")
        text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
        return Question(data["input_id"], inbox, "task", None, text, route, data, answer)
    return Question(data["input_id"], inbox, data["scope"], data["run_id"], _text_of(data), route, data, answer)


def _text_of(d: dict[str, Any]) -> str:
    if d["scope"] == "plan":
        return f"Execute this plan of {len(d.get('steps') or [])} steps?"
    if d.get("tool"):
        return f"May {d['tool']} run?"
    if d["scope"] == "budget":
        return "The budget of the run is used up. Continue?"
    return str(d.get("description") or d.get("summary") or d["scope"])
