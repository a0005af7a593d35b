from __future__ import annotations

import sys
from collections.abc import Generator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from websockets.exceptions import InvalidHandshake

from waggle._link import _RefusedError, open_socket
from waggle.errors import InternalError
from waggle.swarm import Service


class Refusal(InvalidHandshake):
    """As the newer interface has it."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.response = SimpleNamespace(status_code=status)


class Connecting:
    """What is used of the newer interface of websockets, which Debian does not have."""

    status = 200
    given: dict[str, Any]

    def __init__(self, url: str, **given: Any) -> None:
        Connecting.given = {"url": url, **given}

    def process_redirect(self, failure: Exception) -> Exception | str:
        return "ws://elsewhere/"

    def __await__(self) -> Generator[Any, None, str]:
        if self.status == 200:
            return "a socket"
        yield from ()
        failure = Refusal(self.status)
        found = self.process_redirect(failure)
        assert not isinstance(found, str), "a redirect is followed"
        raise found


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    package, module = ModuleType("websockets.asyncio"), ModuleType("websockets.asyncio.client")
    module.__dict__["connect"] = Connecting
    monkeypatch.setitem(sys.modules, "websockets.asyncio", package)
    monkeypatch.setitem(sys.modules, "websockets.asyncio.client", module)


@pytest.mark.usefixtures("newer")
async def test_the_newer_interface_of_websockets_is_used_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await open_socket("ws://h/", {"Authorization": "Bearer k"}) == "a socket"
    assert Connecting.given["additional_headers"] == {"Authorization": "Bearer k"}
    assert "extra_headers" not in Connecting.given
    for status in (302, 401, 503):
        monkeypatch.setattr(Connecting, "status", status)
        with pytest.raises(_RefusedError) as caught:
            await open_socket("ws://h/", {})
        assert (caught.value.status, caught.value.is_final) == (status, status != 503)


async def test_a_failure_that_no_new_connection_repairs_ends_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> None:
        raise ModuleNotFoundError("No module named 'websockets'")

    monkeypatch.setattr("waggle._link.open_socket", fail)
    with pytest.raises(InternalError, match="No module named 'websockets'") as caught:
        await Service("calculator").serve("http://127.0.0.1:1")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
