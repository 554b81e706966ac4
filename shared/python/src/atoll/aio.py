"""The client for asyncio: the same calls, run by a small pool of threads.

    async with await atoll.aio.connect("atoll:bank") as db:
        await db.put("people", b"alice", b"100")
"""
from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from . import client
from .errors import Closed
from .options import Acknowledge, Bytes, Commit, ReadableSnapshot, Row

T = TypeVar("T")
_ROWS_PER_CALL = 256


class _Threads:
    """Runs calls of the blocking client in threads."""

    def __init__(self, threads: int) -> None:
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="atoll")
        self.has_ended = False

    def end(self) -> None:
        """Ends the threads after the calls that run. Later calls raise Closed."""
        self.has_ended = True
        self.pool.shutdown(wait=False)

    async def run(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return await self._start(call, *args, **kwargs)

    def _start(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> asyncio.Future[T]:
        if self.has_ended:
            raise Closed("the connection was closed: open another one")
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self.pool, functools.partial(call, *args, **kwargs))

    async def run_to_end(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Does the same for an object that one thread at a time may use. If the task is cancelled
        meanwhile, it waits for the end of the call."""
        future = self._start(call, *args, **kwargs)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([future])
            if not future.cancelled():
                future.exception()  # read, so that asyncio does not report it as lost
            raise


async def connect(where: str, *, threads: int = 4) -> Connection:
    """Connects as `atoll.connect`. At most `threads` calls run at the same time; others wait."""
    pool = _Threads(threads)
    try:
        return Connection(await pool.run(client.Connection, where), pool)
    except BaseException:
        pool.end()
        raise


async def _rows(threads: _Threads, scan: client.Scan) -> AsyncIterator[Row]:
    def take() -> list[Row]:
        return list(itertools.islice(scan, _ROWS_PER_CALL))

    while rows := await threads.run_to_end(take):
        for row in rows:
            yield row


class Connection:
    """A connection whose calls are awaited. Its methods are those of `atoll.Connection`.

    If a task is cancelled during a call, the call still runs to its end. Within a transaction, a
    batch or a scan, the task waits for it; a `timeout` of the call limits that wait.
    """

    def __init__(self, blocking: client.Connection, threads: _Threads) -> None:
        self.blocking = blocking
        """The same connection with blocking calls."""
        self._threads = threads

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the session. Calls that run raise OutcomeUnknown."""
        if not self._threads.has_ended:
            self.blocking.close()  # waits for no thread and for no node
        self._threads.end()

    async def reconnect(self, timeout: float = 10) -> bool:
        """See `atoll.Connection.reconnect`."""
        return await self._threads.run(self.blocking.reconnect, timeout)

    async def get(self, storage: str, key: Bytes, **options: Any) -> bytes | None:
        """The value of a record, or None."""
        return await self._threads.run(self.blocking.get, storage, key, **options)

    async def put(self, storage: str, key: Bytes, value: Bytes, offset: int = 0,
                  **options: Any) -> Commit:
        """Inserts or overwrites a record."""
        return await self._threads.run(self.blocking.put, storage, key, value, offset, **options)

    async def get_many(self, storage: str, keys: Iterable[Bytes],
                       **options: Any) -> list[bytes | None]:
        """The values of records, or None: see `atoll.Connection.get_many`."""
        return await self._threads.run(self.blocking.get_many, storage, keys, **options)

    async def put_many(self, storage: str, records: Iterable[tuple[Bytes, Bytes]],
                       **options: Any) -> list[Commit]:
        """Inserts or overwrites records: see `atoll.Connection.put_many`."""
        return await self._threads.run(self.blocking.put_many, storage, records, **options)

    async def insert(self, storage: str, key: Bytes, value: Bytes, **options: Any) -> Commit:
        """Inserts a record. Raises AlreadyExists if there is one."""
        return await self._threads.run(self.blocking.insert, storage, key, value, **options)

    async def delete(self, storage: str, key: Bytes, **options: Any) -> bool:
        """Deletes a record. Returns whether there was one."""
        return await self._threads.run(self.blocking.delete, storage, key, **options)

    async def add(self, storage: str, key: Bytes, delta: int | float, **options: Any) -> Commit:
        """Adds to a number of a record."""
        return await self._threads.run(self.blocking.add, storage, key, delta, **options)

    async def append(self, storage: str, value: Bytes, **options: Any) -> Commit:
        """Appends a record to a sequential storage."""
        return await self._threads.run(self.blocking.append, storage, value, **options)

    async def call(self, procedure: str, input: Bytes = b"", **options: Any) -> bytes:  # noqa: A002
        """Runs a procedure of the cluster. Returns its output."""
        return await self._threads.run(self.blocking.call, procedure, input, **options)

    def batch(self) -> client.Batch:
        """A new batch. `await db.run(batch)` runs it."""
        return self.blocking.batch()

    async def run(self, batch: client.Batch, **options: Any) -> list[Any]:
        """Runs a batch of this connection. Returns the results of its operations."""
        return await self._threads.run_to_end(batch.run, **options)

    def scan(self, storage: str, low: Bytes | None = None, high: Bytes | None = None,
             **options: Any) -> AsyncIterator[Row]:
        """The rows of a range, for `async for`."""
        return _rows(self._threads, self.blocking.scan(storage, low, high, **options))

    async def snapshots(self) -> list[ReadableSnapshot]:
        """The snapshots that can be read, the oldest first."""
        return await self._threads.run(self.blocking.snapshots)

    async def snapshot(self, id: int | None = None, *,  # noqa: A002
                       epoch: int | None = None) -> Snapshot:
        """A read-only view of a snapshot: see `atoll.Connection.snapshot`."""
        return Snapshot(await self._threads.run(self.blocking.snapshot, id, epoch=epoch),
                        self._threads)

    def transaction(self, *, acknowledge: Acknowledge | None = None,
                    snapshot: int = 0) -> Transaction:
        """A transaction, for `async with`."""
        return Transaction(self.blocking.transaction(acknowledge=acknowledge, snapshot=snapshot),
                           self._threads)


class Snapshot:
    """A read-only view of a snapshot whose calls are awaited. See `atoll.Snapshot`."""

    def __init__(self, blocking: client.Snapshot, threads: _Threads) -> None:
        self._blocking = blocking
        self._threads = threads

    async def get(self, storage: str, key: Bytes, **options: Any) -> bytes | None:
        """The value of a record, or None."""
        return await self._threads.run(self._blocking.get, storage, key, **options)

    def scan(self, storage: str, low: Bytes | None = None, high: Bytes | None = None,
             **options: Any) -> AsyncIterator[Row]:
        """The rows of a range, for `async for`."""
        return _rows(self._threads, self._blocking.scan(storage, low, high, **options))


class Transaction:
    """A transaction whose calls are awaited one after the other. See `atoll.Transaction`."""

    def __init__(self, blocking: client.Transaction, threads: _Threads) -> None:
        self._blocking = blocking
        self._threads = threads
        self._turn = asyncio.Lock()  # the blocking transaction is used by one thread at a time

    async def __aenter__(self) -> Transaction:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self._run(self._blocking.__exit__, kind, error, trace)

    async def _run(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        async with self._turn:
            return await self._threads.run_to_end(call, *args, **kwargs)

    async def commit(self) -> Commit:
        """Ends the transaction. Raises Conflict if nothing was committed."""
        return await self._run(self._blocking.commit)

    async def abort(self) -> None:
        """Ends the transaction without a commit."""
        await self._run(self._blocking.abort)

    async def get(self, storage: str, key: Bytes) -> bytes | None:
        """The value of a record as the transaction sees it, or None."""
        return await self._run(self._blocking.get, storage, key)

    async def put(self, storage: str, key: Bytes, value: Bytes) -> None:
        """Inserts or overwrites a whole record."""
        await self._run(self._blocking.put, storage, key, value)

    async def insert(self, storage: str, key: Bytes, value: Bytes) -> None:
        """Inserts a record. Raises AlreadyExists if there is one."""
        await self._run(self._blocking.insert, storage, key, value)

    async def delete(self, storage: str, key: Bytes) -> bool:
        """Deletes a record. Returns whether there was one."""
        return await self._run(self._blocking.delete, storage, key)

    async def add(self, storage: str, key: Bytes, delta: int | float, **options: Any) -> None:
        """Adds to a number of a record."""
        await self._run(self._blocking.add, storage, key, delta, **options)

    async def append(self, storage: str, value: Bytes) -> None:
        """Appends a record to a sequential storage."""
        await self._run(self._blocking.append, storage, value)

    async def scan(self, storage: str, low: Bytes | None = None, high: Bytes | None = None,
                   **options: Any) -> list[Row]:
        """The rows of a range, merged with the transaction's own writes, as a list."""
        return await self._run(
            lambda: list(self._blocking.scan(storage, low, high, **options)))
