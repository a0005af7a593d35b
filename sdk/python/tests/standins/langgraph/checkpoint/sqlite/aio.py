"""A checkpointer in a file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any


class AsyncSqliteSaver:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        db.execute("create table if not exists threads (id text primary key, state text)")
        db.commit()

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, path: str) -> AsyncGenerator[AsyncSqliteSaver, None]:
        db = sqlite3.connect(path)
        try:
            yield cls(db)
        finally:
            db.close()

    def get(self, thread: str) -> dict[str, Any] | None:
        row = self._db.execute("select state from threads where id = ?", (thread,)).fetchone()
        return json.loads(row[0]) if row else None

    def put(self, thread: str, state: dict[str, Any]) -> None:
        self._db.execute("insert or replace into threads values (?, ?)", (thread, json.dumps(state)))
        self._db.commit()
