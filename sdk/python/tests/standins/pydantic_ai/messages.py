"""Messages: requests with prompts and results of tools, responses with calls and texts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Message:
    kind: str
    parts: list[dict[str, Any]]


class ModelMessagesTypeAdapter:
    @staticmethod
    def dump_json(messages: list[Message]) -> bytes:
        return json.dumps([asdict(m) for m in messages]).encode()

    @staticmethod
    def validate_json(text: str) -> list[Message]:
        return [Message(**m) for m in json.loads(text)]
