"""The way to the gateways: addresses, credentials, repeats."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

from ._backoff import Backoff, Pauses, retry_after
from ._errors import CallTimeoutError, UnreachableError, WaggleError, error_of, problem_error, transient

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
Token = str | Callable[[], str | Awaitable[str]]
"""An API key or a JWT; or a function that returns one, which is called again when the server no longer accepts the last one."""

log = logging.getLogger("waggle")


class Default:
    """The type of DEFAULT."""

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT: Final = Default()
"""The time-out of the client."""

Timeout = float | None | Default
"""Seconds that a call may take; None: until the server answers."""

CONNECT = 10.0
"""Seconds until a gateway that does not accept a connection is given up for the next one."""
ATTEMPT = 45.0
"""Seconds without a byte of a response until an attempt is given up: gateways answer a waiting call after 20."""


class Http:
    """Makes requests at one gateway after the other."""

    def __init__(
        self,
        urls: Sequence[str],
        token: Token | None,
        *,
        backoff: Backoff,
        timeout: float | None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._urls = [base_of(u) for u in urls] or [base_of("")]
        self._at = 0
        self._token = token
        self._known: str | None = None
        self._asking: asyncio.Future[str] | None = None
        self._client = client
        self._own = client is None
        self.backoff = backoff
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"Http({', '.join(self._urls)})"  # without the token

    @property
    def base(self) -> str:
        """The address of the gateway that is in use."""
        return self._urls[self._at % len(self._urls)]

    def turn(self) -> None:
        """Turn to the next gateway of the list."""
        self._at += 1

    @property
    def renewable(self) -> bool:
        """Whether another token can be had."""
        return callable(self._token)

    def renew(self) -> None:
        """Forget the token: the server no longer accepts it."""
        self._known = None

    async def credentials(self) -> str:
        """Return the present token, empty without credentials. The provider is asked once for all that wait."""
        if not callable(self._token):
            return self._token or ""
        if self._known is not None:
            return self._known
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask(self._token))
            self._asking.add_done_callback(self._asked)
        return await asyncio.shield(self._asking)

    async def _ask(self, provider: Callable[[], str | Awaitable[str]]) -> str:
        try:
            given = provider()
            token = await given if inspect.isawaitable(given) else given
        except Exception as cause:
            raise UnreachableError("the program's token function failed") from cause
        self._known = token
        return token

    def _asked(self, done: asyncio.Future[str]) -> None:
        self._asking = None
        if not done.cancelled():
            done.exception()  # its waiters have it

    async def headers(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the headers of a request."""
        token = await self.credentials()
        found = dict(more or {})
        if token:
            found["Authorization"] = f"Bearer {token}"
        return found

    def client(self) -> httpx.AsyncClient:
        """Return the HTTP client. It is made, and its library is loaded, when the first request needs it."""
        if self._client is None:
            import httpx

            limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
            self._client = httpx.AsyncClient(limits=limits, follow_redirects=False)
        return self._client

    async def aclose(self) -> None:
        """End the connections of the client, unless the program made it."""
        if self._own and self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        silence: float = ATTEMPT,
    ) -> AsyncGenerator[httpx.Response, None]:
        """Make one request and hand its response out before its body is read. A response that reports an error is raised."""
        import httpx

        more = dict(headers or {})
        content = None
        if body is not None:
            more["Content-Type"] = "application/json"
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        base = self.base
        bounds = httpx.Timeout(silence, connect=CONNECT)
        for renewed in (False, True):
            sent = await self.headers(more)
            try:
                async with self.client().stream(
                    method, base + path, content=content, headers=sent, timeout=bounds
                ) as response:
                    log.debug("%s %s%s: %d", method, base, path, response.status_code)
                    if response.status_code == 401 and self.renewable and not renewed:
                        self.renew()
                        continue
                    if not response.is_success:
                        problem = await response.aread()
                        pause = retry_after(response.headers.get("Retry-After"))
                        raise problem_error(response.status_code, problem, pause)
                    yield response
                    return
            except (httpx.TransportError, httpx.StreamError, OSError) as cause:
                raise UnreachableError(f"{base} cannot be reached: {cause or type(cause).__name__}") from cause

    async def request(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Make one request and return the response with its body."""
        async with self.open(method, path, body, headers=headers) as response:
            await response.aread()
            return response

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        """Make one request and return the document of the response, None if it has none."""
        response = await self.request(method, path, body)
        return parsed(response.content, f"the answer of {self.base}") if response.content else None

    async def persist(self, attempt: Callable[[], Awaitable[T]], timeout: Timeout = DEFAULT) -> T:
        """Make a request that may be repeated, at one gateway after the other, until the server answers it."""
        limit = self.timeout if isinstance(timeout, Default) else timeout
        last: WaggleError | None = None

        async def attempts() -> T:
            nonlocal last
            pauses = Pauses(self.backoff)
            while True:
                try:
                    return await attempt()
                except WaggleError as error:
                    if not is_away(error):
                        raise
                    last = error
                    self.turn()
                    pause = pauses.pause(retry_after=error.retry_after)
                    log.info("request will be repeated in %.2f s: %s", pause, error)
                    await asyncio.sleep(pause)

        try:
            return await _within(attempts(), limit)
        except asyncio.TimeoutError:
            reason = f"; the last failure: {last}" if last else ""
            raise CallTimeoutError(f"no answer within {limit:g} s{reason}") from last

    async def once(self, method: str, path: str, body: Any = None, *, timeout: Timeout = DEFAULT) -> Any:
        """Make a request that is not repeated and return the document of the response."""
        limit = self.timeout if isinstance(timeout, Default) else timeout
        try:
            return await _within(self.json(method, path, body), limit)
        except asyncio.TimeoutError:
            raise CallTimeoutError(f"no answer within {limit:g} s: the request may have been carried out") from None

    async def read(self, path: str, timeout: Timeout = DEFAULT) -> bytes:
        """Fetch a file."""
        return (await self.persist(lambda: self.request("GET", path), timeout)).content

    async def call(self, method: str, path: str, body: Any = None, *, timeout: Timeout = DEFAULT) -> Any:
        """Make a request that may be repeated and return the document of the response."""
        return await self.persist(lambda: self.json(method, path, body), timeout)


async def _within(work: Coroutine[Any, Any, T], limit: float | None) -> T:
    """Wait for work in a task of its own: libraries of older releases take the cancellation of a time-out for another one."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=limit)
        if not task.done():
            raise asyncio.TimeoutError
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def is_away(e: WaggleError) -> bool:
    """Report whether the server is away or busy, and has not refused the request for what it is."""
    return (
        isinstance(e, UnreachableError)
        or e.status >= 500
        or (e.status == 408 and e.code != "INPUT_EXPIRED")
        or e.code in ("RATE_LIMITED", "TOO_MANY_CONNECTIONS", "HTTP_429")
    )


def is_final(e: WaggleError) -> bool:
    """Report whether a stream that was refused so would be refused again."""
    return e.status >= 300 and not transient(e.status)


def parsed(text: str | bytes, of: str) -> Any:
    """Read JSON. Anything else does not come from a gateway, or is cut: it counts as a broken connection."""
    try:
        return json.loads(text)
    except ValueError as cause:
        raise UnreachableError(f"{of} is not JSON") from cause


def given(**members: Any) -> dict[str, Any]:
    """Return the members that have a value."""
    return {n: v for n, v in members.items() if v is not None}


def query(members: Mapping[str, Any]) -> str:
    """Return a query, with its question mark, of the members that have a value."""
    found: dict[str, str] = {}
    for name, value in members.items():
        if value is None or value == "":
            continue
        found[name] = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return f"?{urlencode(found)}" if found else ""


def base_of(url: str) -> str:
    """Return the address of a gateway for HTTP, without a protocol's path."""
    parts = urlsplit(re.sub(r"^ws", "http", url.strip()))
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise error_of("INVALID_FIELD", "url names no gateway: pass one such as http://127.0.0.1:9000", field="url")
    path = re.sub(r"(/ws(/.*)?|/agui)?/*$", "", parts.path)
    return f"{parts.scheme}://{parts.netloc}{path}"
