"""The server of the cases of proto-schemas/sdk, which says what a program must see."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

CONTRACT = Path(__file__).parents[3] / "proto-schemas"


def cases() -> list[dict[str, Any]]:
    """Return all cases."""
    files = sorted((CONTRACT / "sdk" / "cases").glob("*.json"))
    return [case for file in files for case in json.loads(file.read_text())["cases"]]


class Judge:
    """sdk/go/internal/judge in its own process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="waggle-judge-")
        program = Path(self._folder.name) / "conform"
        subprocess.run(
            ["go", "build", "-o", program, "./internal/judge/conform"], cwd=CONTRACT.parent / "sdk" / "go", check=True
        )
        binary = os.environ.get("WAGGLE_E2E_BINARY") or str(CONTRACT.parent / "bin" / "waggle")
        self._process = subprocess.Popen(
            [program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "WAGGLE_E2E_BINARY": binary},
        )
        assert self._process.stdout
        self._url = self._process.stdout.readline().strip()

    def stop(self) -> None:
        """End it, with the real server."""
        self._process.communicate()
        self._folder.cleanup()

    async def post(self, path: str, body: Any) -> Any:
        """Make a request to the judge."""
        return await asyncio.to_thread(self._post, path, body)

    def _post(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(f"{self._url}/cases/{path}", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request) as response:
            return json.load(response)
