"""Server-sent events."""

from __future__ import annotations

import codecs
from dataclasses import dataclass


@dataclass
class SseMessage:
    """A message of a stream, or a comment line (comment alone)."""

    data: str | None = None
    id: str | None = None
    event: str | None = None
    comment: str | None = None


class SseParser:
    """Takes a stream of server-sent events apart. Give it the bytes as they come, in pieces of any size."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._parts: list[str] = []
        self._skip = False  # a line ended with CR: its LF may follow
        self._data: list[str] = []
        self._id: str | None = None
        self._event: str | None = None

    def push(self, piece: bytes) -> list[SseMessage]:
        """Return the messages that end in the next piece."""
        text = self._decoder.decode(piece)
        if self._skip and text:
            text, self._skip = text.removeprefix("\n"), False
        if "\n" not in text and "\r" not in text:
            self._parts.append(text)
            return []
        if "\r" in text:
            self._skip = text.endswith("\r")
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        *lines, rest = "".join([*self._parts, text]).split("\n")
        self._parts = [rest]
        out: list[SseMessage] = []
        for line in lines:
            self._line(line, out)
        return out

    def _line(self, line: str, out: list[SseMessage]) -> None:
        if line == "":
            if self._data:
                out.append(SseMessage("\n".join(self._data), self._id, self._event))
            self._data, self._id, self._event = [], None, None
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "":
            out.append(SseMessage(comment=value))
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        elif name == "event":
            self._event = value
