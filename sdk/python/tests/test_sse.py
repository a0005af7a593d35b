from __future__ import annotations

import random

import pytest

from waggle._backoff import Backoff, Pauses, retry_after
from waggle._errors import GapError
from waggle._sse import SseMessage, SseParser
from waggle._stream import Position

STREAM = (
    '\ufeffretry: 1000\n\nid: 1\nevent: a\ndata: {"text":"äö"}\n\n: hb 1\n\r\nid: 2\r\ndata:one\r\ndata: two\r\n\r\n'
    "data\rdata: x: y\r\r: waggle DRAINING\nid: 3\n\n"
).encode()
MESSAGES = [
    SseMessage('{"text":"äö"}', "1", "a"),
    SseMessage(comment="hb 1"),
    SseMessage("one\ntwo", "2"),
    SseMessage("\nx: y"),
    SseMessage(comment="waggle DRAINING"),
]


@pytest.mark.parametrize("seed", range(200))
def test_a_stream_in_any_pieces_has_the_same_messages(seed: int) -> None:
    chance = random.Random(seed)
    cuts = sorted(chance.randrange(len(STREAM) + 1) for _ in range(chance.randrange(40)))
    parser = SseParser()
    found: list[SseMessage] = []
    for start, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        found += parser.push(STREAM[start:end])
    assert found == MESSAGES


def test_large_events_are_read_piece_by_piece() -> None:
    parser = SseParser()
    text = "x" * 3_000_000
    assert [
        m
        for i in range(0, len(text), 1000)
        for m in parser.push(("data: " if i == 0 else "").encode() + text[i : i + 1000].encode())
    ] == []
    assert parser.push(b"\n\n") == [SseMessage(text)]


def test_a_position_takes_each_event_once_and_in_order() -> None:
    p = Position(3)
    assert not p.reach(2, 3)
    assert p.reach(4, 4)
    assert p.reach(5, 9)
    assert not p.reach(5, 9)
    with pytest.raises(GapError):
        p.reach(11, 11)
    with pytest.raises(GapError):
        p.reach(9, 11)
    p.skip(20)
    p.skip(4)
    assert p.reach(21, 21)


def test_pauses_double_up_to_the_longest() -> None:
    p = Pauses(Backoff(1, 8), chance=lambda: 0.5)
    assert [p.pause() for _ in range(5)] == [0.75, 1.5, 3, 6, 6]
    assert p.pause(retry_after=10) == 16
    p.reset()
    assert p.pause(goodbye=True) == 0.5
    assert p.pause(goodbye=True) == 1.5


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0), ("", 0), ("7", 7), (" 7 ", 7), ("-1", 0), ("soon", 0), ("99999", 300), ("٣", 0),
        ("Thu, 01 Jan 1970 00:01:10 GMT", 10), ("Thu, 01 Jan 1970 00:00:50 GMT", 0),
    ],
)  # fmt: skip
def test_retry_after(header: str | None, seconds: float) -> None:
    assert retry_after(header, now=60) == seconds
