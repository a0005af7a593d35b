"""The base of all errors, and those that need no answer of a server."""

from __future__ import annotations

import json
from typing import Any, ClassVar, cast


class WaggleError(Exception):
    """An error of the server, or of the way to it. Each code of the error catalogue has a subclass."""

    default_code: ClassVar[str] = "UNKNOWN"
    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int = 0,
        field: str | None = None,
        detail: Any = None,
        retryable: bool | None = None,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.code: str = code or self.default_code
        """A code of the error catalogue, such as SESSION_NOT_FOUND."""
        self.message: str = message
        self.status: int = status
        """Of an HTTP response, else 0."""
        self.field: str | None = field
        """The member of the request that is wrong, if one is named."""
        self.detail: Any = detail
        """The whole problem document or event."""
        self.retryable: bool = self.default_retryable if retryable is None else retryable
        """Whether the same request may succeed later."""
        self.retry_after: float = retry_after
        """The seconds that the server asked to wait, or 0."""

    def __str__(self) -> str:
        place = f" (at {self.field})" if self.field else ""
        return f"{self.code}: {self.message}{place}"


class UnreachableError(WaggleError):
    """No gateway answered."""

    default_code = "UNREACHABLE"
    default_retryable = True


class CallTimeoutError(WaggleError, TimeoutError):
    """A call took longer than its time-out. Its cause is the last failure, if a server failed."""

    default_code = "CALL_TIMEOUT"
    default_retryable = True


class ClosedError(WaggleError):
    """The program has closed the client, or the object."""

    default_code = "CLOSED"


class GapError(WaggleError):
    """The server left out positions of a log. The client connects again by itself."""

    default_code = "GAP"
    default_retryable = True

    @classmethod
    def between(cls, after: int, first: int, last: int) -> GapError:
        """Return the error of a reader that knows the events up to after, and got those from first to last."""
        return cls(f"the events after position {after} continue with {first} to {last}")


def transient(status: int) -> bool:
    """Report whether a server that answers with the status may accept the same request later."""
    return status in (408, 429) or status >= 500


def error_of(code: str, message: str, **more: Any) -> WaggleError:
    """Return the error of a code, of its class in the catalogue if it has one."""
    from .errors import CLASSES

    return CLASSES.get(code, WaggleError)(message, code=code, **more)


def problem_error(status: int, body: bytes, retry_after: float = 0.0) -> WaggleError:
    """Read a problem document (RFC 9457)."""
    try:
        parsed: Any = json.loads(body)
    except ValueError:
        parsed = None
    problem = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    title, detail = problem.get("title"), problem.get("detail")
    if not isinstance(title, str) or not isinstance(detail, str):
        text = body[:2000].decode(errors="replace")
        return WaggleError(
            f"the server answered with status {status}",
            code=f"HTTP_{status}",
            status=status,
            detail=text,
            retryable=transient(status),
            retry_after=retry_after,
        )
    return error_of(title, detail, status=status, field=problem.get("field"), detail=problem, retry_after=retry_after)
