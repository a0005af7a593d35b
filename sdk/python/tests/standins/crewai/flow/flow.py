"""Flows whose methods run one after the other."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .async_feedback.types import HumanFeedbackPending, PendingFeedbackContext
from .flow_config import flow_config

Method = Callable[..., Any]


def start() -> Callable[[Method], Method]:
    return listen(None)


def listen(before: Method | None) -> Callable[[Method], Method]:
    def mark(f: Method) -> Method:
        f.__dict__["before"] = before
        return f

    return mark


@dataclass
class HumanFeedbackResult:
    output: Any
    feedback: str


class Flow:
    def __init__(self, *, persistence: Any = None, checkpoint: Any = None) -> None:
        self._persistence = persistence
        self._checkpoint = checkpoint
        self._done: list[list[Any]] = []
        self.state: dict[str, Any] = {"id": uuid.uuid4().hex}

    @classmethod
    def from_pending(cls, id: str, persistence: Any, *, checkpoint: Any = None) -> Any:
        flow = cls(persistence=persistence, checkpoint=checkpoint)
        flow.state, _ = persistence.load_pending_feedback(id)
        flow._done = flow.state.pop("done")
        return flow

    async def kickoff_async(self, inputs: dict[str, Any], from_checkpoint: Any = None) -> Any:
        if from_checkpoint is None:
            self.state.update(inputs)
        else:
            self._checkpoint = from_checkpoint
            self._restore(Path(from_checkpoint.restore_from))
        return await self._run()

    def _restore(self, file: Path) -> None:
        stored = json.loads(file.read_text())
        self.state, self._done = stored["state"], stored["done"]

    async def resume_async(self, feedback: str) -> Any:
        self._persistence.clear_pending_feedback(self.state["id"])
        name, output = self._done.pop()
        self._finished(name, HumanFeedbackResult(output, feedback))
        return await self._run()

    def _finished(self, name: str, output: Any) -> None:
        self._done.append([name, output])
        folder = Path(self._checkpoint.location) / "main"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{len(self._done)}.json").write_text(
            json.dumps({"state": self.state, "done": self._done}, default=asdict)
        )

    async def _run(self) -> Any:
        methods = [f for f in type(self).__dict__.values() if hasattr(f, "before")]
        for f in methods[len(self._done) :]:
            output = await (f(self, self._done[-1][1]) if f.before else f(self))
            if hasattr(f, "feedback"):
                message, emit = f.feedback
                try:
                    output = flow_config.hitl_provider.request_feedback(
                        PendingFeedbackContext(self.state["id"], f.__name__, output, message, emit), self
                    )
                except HumanFeedbackPending as pending:
                    state = {**self.state, "done": [*self._done, [f.__name__, output]]}
                    self._persistence.save_pending_feedback(self.state["id"], pending.context, state)
                    return pending
            self._finished(f.__name__, output)
        return self._done[-1][1]
