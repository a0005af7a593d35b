"""Feedback that a flow waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class PendingFeedbackContext:
    flow_id: str
    method_name: str
    method_output: Any
    message: str
    emit: list[str] | None = None


class HumanFeedbackPending(Exception):  # noqa: N818
    def __init__(self, context: PendingFeedbackContext) -> None:
        super().__init__(context.message)
        self.context = context
