"""Connections, snapshots, batches and scans."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

from . import many
from ._library import as_bytes, bytes_from, check, data_of, ffi, lib, name_of
from .errors import SnapshotNotFound
from .options import (Acknowledge, Bytes, Commit, Isolation, Number, Range, ReadableSnapshot, Row,
                      Rows, delta_of, options_of)

_OK = 0
_NOT_FOUND = 1
_END_OF_SCAN = 3


def commit_of(result: Any) -> Commit:
    return Commit(lib.atoll_result_commit_epoch(result), lib.atoll_result_commit_version(result),
                  lib.atoll_result_incarnation(result), lib.atoll_result_is_durable(result) != 0)


class Outcome:
    """Holds the result of one call: `with Outcome() as outcome: status = call(outcome.place)`."""

    def __init__(self) -> None:
        self.place = ffi.new("atoll_result **")

    def __enter__(self) -> Outcome:
        return self

    def __exit__(self, *_: object) -> None:
        lib.atoll_result_free(self.place[0])

    @property
    def result(self) -> Any:
        return self.place[0]

    def value(self) -> bytes:
        return bytes_from(lib.atoll_result_value(self.result))


class Scan:
    """Iterator over the rows of a range. It reads page by page. Use it in one thread at a time."""

    def __init__(self, handle: Any, owner: Any) -> None:
        self._owner = owner  # a scan reads only while its connection or transaction exists
        self._handle = ffi.gc(handle, lib.atoll_scan_free)
        self._key = ffi.new("atoll_bytes *")
        self._value = ffi.new("atoll_bytes *")
        self._version = ffi.new("uint64_t *")

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        status = lib.atoll_scan_next(self._handle, self._key, self._value, self._version)
        if status == _END_OF_SCAN:
            raise StopIteration
        check(status)
        return Row(bytes_from(self._key), bytes_from(self._value), self._version[0])


class Batch:
    """Operations that run as one transaction: all of them, or none.

    Each method adds an operation and returns the batch. `run` sends them. A batch has at most 256
    operations and 64 KiB.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        place = ffi.new("atoll_batch **")
        check(lib.atoll_batch_new(place))
        self._handle = ffi.gc(place[0], lib.atoll_batch_free)
        self._kinds: list[str] = []  # of each operation: "value", "rows", or "" without a result
        self.commit: Commit | None = None
        """What `run` has committed."""

    def _added(self, status: int, kind: str = "") -> Batch:
        check(status)
        self._kinds.append(kind)
        return self

    def __len__(self) -> int:
        return int(lib.atoll_batch_count(self._handle))

    def get(self, storage: str, key: Bytes) -> Batch:
        """The result is the value, or None."""
        key = data_of(key, "key")
        status = lib.atoll_batch_get(self._handle, name_of(storage, "storage"), as_bytes(key))
        return self._added(status, "value")

    def put(self, storage: str, key: Bytes, value: Bytes, offset: int = 0) -> Batch:
        """Inserts or overwrites a record; see `Connection.put`."""
        key, value = data_of(key, "key"), data_of(value, "value")
        status = lib.atoll_batch_put_at(self._handle, name_of(storage, "storage"), as_bytes(key),
                                        offset, as_bytes(value))
        return self._added(status)

    def insert(self, storage: str, key: Bytes, value: Bytes) -> Batch:
        """The batch fails with AlreadyExists if there is a record."""
        key, value = data_of(key, "key"), data_of(value, "value")
        status = lib.atoll_batch_insert(self._handle, name_of(storage, "storage"), as_bytes(key),
                                        as_bytes(value))
        return self._added(status)

    def delete(self, storage: str, key: Bytes) -> Batch:
        """The batch fails with NotFound if there is no record."""
        key = data_of(key, "key")
        status = lib.atoll_batch_delete(self._handle, name_of(storage, "storage"), as_bytes(key))
        return self._added(status)

    def add(self, storage: str, key: Bytes, delta: int | float, number: Number = "i64",
            offset: int = 0, returns_value: bool = False) -> Batch:
        """Adds to a number. With `returns_value`, the result is its new value, as bytes."""
        key = data_of(key, "key")
        kind, pointer = delta_of(number, delta)
        status = lib.atoll_batch_add(self._handle, name_of(storage, "storage"), as_bytes(key), kind,
                                     pointer, offset, returns_value)
        return self._added(status, "value" if returns_value else "")

    def append(self, storage: str, value: Bytes) -> Batch:
        """Appends a record to a sequential storage."""
        value = data_of(value, "value")
        status = lib.atoll_batch_append(self._handle, name_of(storage, "storage"), as_bytes(value))
        return self._added(status)

    def check(self, storage: str, key: Bytes, value: Bytes | None) -> Batch:
        """The batch fails with Aborted unless the record has this value; None: unless it is absent.
        """
        key = data_of(key, "key")
        name = name_of(storage, "storage")
        if value is None:
            return self._added(lib.atoll_batch_check_absent(self._handle, name, as_bytes(key)))
        value = data_of(value, "value")
        status = lib.atoll_batch_check(self._handle, name, as_bytes(key), as_bytes(value))
        return self._added(status)

    def scan(self, storage: str, low: Bytes | None = None, high: Bytes | None = None, *,
             prefix: Bytes | None = None, limit: int = 0, reverse: bool = False,
             keys_only: bool = False) -> Batch:
        """The result is a `Rows`. All scans of a batch return at most 32 KiB together: `has_more`
        says whether rows of the range are missing."""
        keys = Range(low, high, prefix, limit, reverse, keys_only)
        status = lib.atoll_batch_scan(self._handle, name_of(storage, "storage"), keys.pointer)
        return self._added(status, "rows")

    def run(self, *, timeout: float | None = None, acknowledge: Acknowledge | None = None,
            isolation: Isolation | None = None, snapshot: int = 0) -> list[Any]:
        """Runs the operations. Returns their results: None for those without a value."""
        options = options_of(timeout, acknowledge, isolation, snapshot)
        with Outcome() as outcome:
            check(lib.atoll_batch_run(self._connection.handle, self._handle, options,
                                      outcome.place))
            self.commit = commit_of(outcome.result)
            return [_result_at(outcome.result, index, kind)
                    for index, kind in enumerate(self._kinds)]


def _result_at(result: Any, index: int, kind: str) -> Any:
    """The result of one operation of a batch."""
    if kind == "rows":
        return _rows_at(result, index)
    if kind != "value" or lib.atoll_result_status_at(result, index) != _OK:
        return None
    return bytes_from(lib.atoll_result_value_at(result, index))


def _rows_at(result: Any, index: int) -> Rows:
    key, value = ffi.new("atoll_bytes *"), ffi.new("atoll_bytes *")
    version, has_more = ffi.new("uint64_t *"), ffi.new("int *")
    rows = Rows()
    count = lib.atoll_result_rows_at(result, index, has_more)
    rows.has_more = has_more[0] != 0
    for row in range(count):
        check(lib.atoll_result_row(result, index, row, key, value, version))
        rows.append(Row(bytes_from(key), bytes_from(value), version[0]))
    return rows


class Snapshot:
    """A read-only view of one snapshot, the newest or a pinned one.

    With id None, each call reads the snapshot that is the newest at that time.
    """

    def __init__(self, connection: Connection, snapshot: int | None) -> None:
        self._connection = connection
        self._id = snapshot or 0

    def get(self, storage: str, key: Bytes, *, timeout: float | None = None) -> bytes | None:
        """The value of a record, or None."""
        return self._connection.get(storage, key, timeout=timeout, isolation="snapshot_read_only",
                                    snapshot=self._id)

    def scan(self, storage: str, low: Bytes | None = None, high: Bytes | None = None, *,
             prefix: Bytes | None = None, limit: int = 0, reverse: bool = False,
             keys_only: bool = False) -> Scan:
        """The rows of a range. With an id, all of them are of one time."""
        return self._connection.scan(storage, low, high, prefix=prefix, limit=limit,
                                     reverse=reverse, keys_only=keys_only,
                                     isolation="snapshot_read_only", snapshot=self._id)


class Connection:
    """A connection to one node of a cluster. Any number of threads may use it.

    Each call is one transaction. Options of calls: `timeout` in seconds, after which a call raises
    OutcomeUnknown; `acknowledge`, "durable", "visible" or "accepted" (the call returns when the
    request is on its way, and the outcome is not told); `isolation`; `snapshot`, the id of one.
    """

    def __init__(self, where: str) -> None:
        place = ffi.new("atoll_connection **")
        check(lib.atoll_connect(name_of(where, "where"), place))
        self.handle = ffi.gc(place[0], lib.atoll_connection_free)
        """The atoll_connection of the C library."""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session. Later calls raise Closed."""
        lib.atoll_close(self.handle)

    @property
    def is_open(self) -> bool:
        """Whether the node serves the session."""
        return bool(lib.atoll_is_open(self.handle))

    @property
    def incarnation(self) -> int:
        """Incarnation of the cluster. It changes with every start of the cluster."""
        return int(lib.atoll_incarnation(self.handle))

    @property
    def node(self) -> int:
        """The node of the session."""
        return int(lib.atoll_node(self.handle))

    def reconnect(self, timeout: float = 10) -> bool:
        """Starts a new session if the current one has ended. Returns whether the cluster was
        started since: then check the calls that raised OutcomeUnknown."""
        has_changed = ffi.new("int *")
        check(lib.atoll_reconnect(self.handle, round(timeout * 1000), has_changed))
        return bool(has_changed[0])

    def get(self, storage: str, key: Bytes, *, timeout: float | None = None,
            isolation: Isolation | None = None, snapshot: int = 0) -> bytes | None:
        """The value of a record, or None."""
        key = data_of(key, "key")
        options = options_of(timeout, None, isolation, snapshot)
        with Outcome() as outcome:
            status = lib.atoll_get(self.handle, name_of(storage, "storage"), as_bytes(key),
                                   options, outcome.place)
            if status == _NOT_FOUND:
                return None
            check(status)
            return outcome.value()

    def put(self, storage: str, key: Bytes, value: Bytes, offset: int = 0, *,
            timeout: float | None = None, acknowledge: Acknowledge | None = None) -> Commit:
        """Inserts or overwrites a record. On an array, or with an offset other than 0, overwrites
        bytes of the record from the offset on."""
        key, value = data_of(key, "key"), data_of(value, "value")
        options = options_of(timeout, acknowledge)
        with Outcome() as outcome:
            check(lib.atoll_put_at(self.handle, name_of(storage, "storage"), as_bytes(key), offset,
                                   as_bytes(value), options, outcome.place))
            return commit_of(outcome.result)

    def get_many(self, storage: str, keys: Iterable[Bytes], *, isolation: Isolation | None = None,
                 snapshot: int = 0) -> list[bytes | None]:
        """The values of records, or None, in the order of the keys. Reads up to 256 records, and up
        to 64 KiB, in one transaction. The records of different ones may be of different times."""
        return many.get_many(self.handle, storage, keys,
                             options_of(None, None, isolation, snapshot))

    def put_many(self, storage: str, records: Iterable[tuple[Bytes, Bytes]], *,
                 acknowledge: Acknowledge | None = None) -> list[Commit]:
        """Inserts or overwrites the records of pairs (key, value). Writes up to 256 records, and up
        to 64 KiB, in one transaction, and returns the commits of the transactions. They run at the
        same time, so a key should occur once. If one fails, its exception is raised after the
        others have ended; these may have committed."""
        return many.put_many(self.handle, storage, records, options_of(None, acknowledge),
                             commit_of)

    def insert(self, storage: str, key: Bytes, value: Bytes, *, timeout: float | None = None,
               acknowledge: Acknowledge | None = None) -> Commit:
        """Inserts a record. Raises AlreadyExists if there is one."""
        key, value = data_of(key, "key"), data_of(value, "value")
        options = options_of(timeout, acknowledge)
        with Outcome() as outcome:
            check(lib.atoll_insert(self.handle, name_of(storage, "storage"), as_bytes(key),
                                   as_bytes(value), options, outcome.place))
            return commit_of(outcome.result)

    def delete(self, storage: str, key: Bytes, *, timeout: float | None = None,
               acknowledge: Acknowledge | None = None) -> bool:
        """Deletes a record. Returns whether there was one."""
        key = data_of(key, "key")
        options = options_of(timeout, acknowledge)
        status = lib.atoll_delete(self.handle, name_of(storage, "storage"), as_bytes(key), options,
                                  ffi.NULL)
        if status == _NOT_FOUND:
            return False
        check(status)
        return True

    def add(self, storage: str, key: Bytes, delta: int | float, number: Number = "i64",
            offset: int = 0, *, timeout: float | None = None,
            acknowledge: Acknowledge | None = None) -> Commit:
        """Adds to the number at byte `offset` of a record. Additions do not conflict with each
        other. Raises NotFound if there is no record."""
        key = data_of(key, "key")
        kind, pointer = delta_of(number, delta)
        options = options_of(timeout, acknowledge)
        with Outcome() as outcome:
            check(lib.atoll_add(self.handle, name_of(storage, "storage"), as_bytes(key), kind,
                                pointer, offset, options, outcome.place))
            return commit_of(outcome.result)

    def append(self, storage: str, value: Bytes, *, timeout: float | None = None,
               acknowledge: Acknowledge | None = None) -> Commit:
        """Appends a record to a sequential storage."""
        value = data_of(value, "value")
        options = options_of(timeout, acknowledge)
        with Outcome() as outcome:
            check(lib.atoll_append(self.handle, name_of(storage, "storage"), as_bytes(value),
                                   options, outcome.place))
            return commit_of(outcome.result)

    def call(self, procedure: str, input: Bytes = b"", *,  # noqa: A002
             timeout: float | None = None, acknowledge: Acknowledge | None = None,
             isolation: Isolation | None = None, snapshot: int = 0) -> bytes:
        """Runs a procedure of the cluster. Returns its output."""
        input = data_of(input, "input")  # noqa: A001
        options = options_of(timeout, acknowledge, isolation, snapshot)
        with Outcome() as outcome:
            check(lib.atoll_call(self.handle, name_of(procedure, "procedure"), as_bytes(input),
                                 options, outcome.place))
            return outcome.value()

    def scan(self, storage: str, low: Bytes | None = None, high: Bytes | None = None, *,
             prefix: Bytes | None = None, limit: int = 0, reverse: bool = False,
             keys_only: bool = False, timeout: float | None = None,
             isolation: Isolation | None = None, snapshot: int = 0) -> Scan:
        """The rows of a Master-tree from `low` to before `high`, or those with a prefix. `limit` 0:
        all. The rows of different pages of 32 KiB may be of different times."""
        keys = Range(low, high, prefix, limit, reverse, keys_only)
        options = options_of(timeout, None, isolation, snapshot)
        place = ffi.new("atoll_scan **")
        check(lib.atoll_scan_start(self.handle, name_of(storage, "storage"), keys.pointer, options,
                                   place))
        return Scan(place[0], self)

    def batch(self) -> Batch:
        """A new batch: `db.batch().put("t", b"a", b"1").get("t", b"b").run()`."""
        return Batch(self)

    def snapshots(self) -> list[ReadableSnapshot]:
        """The snapshots that can be read, the oldest first."""
        lines = self.call("kv.snapshots").decode().splitlines()
        return [ReadableSnapshot(*map(int, line.split())) for line in lines]

    def snapshot(self, id: int | None = None, *,  # noqa: A002
                 epoch: int | None = None) -> Snapshot:
        """A read-only view of a snapshot: of the one with this id, or of the latest one without a
        commit after this epoch. Without both: the newest one at the time of each call. Raises
        SnapshotNotFound if all readable snapshots are later than the epoch."""
        if epoch is None:
            return Snapshot(self, id)
        if id is not None:
            raise ValueError("epoch: cannot be given with id")
        known = [each.id for each in self.snapshots() if each.epoch <= epoch]
        if not known:
            raise SnapshotNotFound(f"no snapshot of epoch {epoch} or before can be read: pin "
                                   "snapshots that are read later", name="snapshot_not_found")
        return Snapshot(self, known[-1])

    def transaction(self, *, acknowledge: Acknowledge | None = None,
                    snapshot: int = 0) -> Transaction:
        """A transaction over several calls, for `with`. With the id of a snapshot it only reads."""
        return Transaction(self, acknowledge, snapshot)


class Transaction:
    """Reads and writes over several calls. `with` commits at its end, and aborts on an exception.

    Writes stay in the client until the commit, which raises Conflict if something that was read has
    changed. See `retry`. Use it in one thread at a time.
    """

    def __init__(self, connection: Connection, acknowledge: Acknowledge | None = None,
                 snapshot: int = 0) -> None:
        options = options_of(None, acknowledge, "snapshot_read_only" if snapshot else None,
                             snapshot)
        place = ffi.new("atoll_transaction **")
        check(lib.atoll_begin(connection.handle, options, place))
        self._handle = ffi.gc(place[0], lib.atoll_transaction_free)
        self._has_ended = False
        self.committed: Commit | None = None
        """What `commit` has committed."""

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._has_ended:
            return
        if kind is None:
            self.commit()
        else:
            self.abort()

    def commit(self) -> Commit:
        """Ends the transaction. Raises Conflict if nothing was committed, and OutcomeUnknown if it
        may have committed."""
        self._has_ended = True
        with Outcome() as outcome:
            check(lib.atoll_commit(self._handle, outcome.place))
            self.committed = commit_of(outcome.result)
            return self.committed

    def abort(self) -> None:
        """Ends the transaction without a commit."""
        self._has_ended = True
        lib.atoll_abort(self._handle)

    def get(self, storage: str, key: Bytes) -> bytes | None:
        """The value of a record as the transaction sees it, or None."""
        key = data_of(key, "key")
        with Outcome() as outcome:
            status = lib.atoll_transaction_get(self._handle, name_of(storage, "storage"),
                                               as_bytes(key), outcome.place)
            if status == _NOT_FOUND:
                return None
            check(status)
            return outcome.value()

    def put(self, storage: str, key: Bytes, value: Bytes) -> None:
        """Inserts or overwrites a whole record. On an array, the value has the record's size."""
        key, value = data_of(key, "key"), data_of(value, "value")
        check(lib.atoll_transaction_put(self._handle, name_of(storage, "storage"), as_bytes(key),
                                        as_bytes(value)))

    def put_at(self, storage: str, key: Bytes, offset: int, value: Bytes) -> None:
        """Overwrites bytes of an existing record, after a read."""
        key, value = data_of(key, "key"), data_of(value, "value")
        check(lib.atoll_transaction_put_at(self._handle, name_of(storage, "storage"),
                                           as_bytes(key), offset, as_bytes(value)))

    def insert(self, storage: str, key: Bytes, value: Bytes) -> None:
        """Inserts a record. Raises AlreadyExists if there is one."""
        key, value = data_of(key, "key"), data_of(value, "value")
        check(lib.atoll_transaction_insert(self._handle, name_of(storage, "storage"),
                                           as_bytes(key), as_bytes(value)))

    def delete(self, storage: str, key: Bytes) -> bool:
        """Deletes a record. Returns whether there was one."""
        key = data_of(key, "key")
        status = lib.atoll_transaction_delete(self._handle, name_of(storage, "storage"),
                                              as_bytes(key))
        if status == _NOT_FOUND:
            return False
        check(status)
        return True

    def add(self, storage: str, key: Bytes, delta: int | float, number: Number = "i64",
            offset: int = 0) -> None:
        """Adds to a number, and reads nothing. The commit raises NotFound if there is no record."""
        key = data_of(key, "key")
        kind, pointer = delta_of(number, delta)
        check(lib.atoll_transaction_add(self._handle, name_of(storage, "storage"), as_bytes(key),
                                        kind, pointer, offset))

    def append(self, storage: str, value: Bytes) -> None:
        """Appends a record to a sequential storage."""
        value = data_of(value, "value")
        check(lib.atoll_transaction_append(self._handle, name_of(storage, "storage"),
                                           as_bytes(value)))

    def scan(self, storage: str, low: Bytes | None = None, high: Bytes | None = None, *,
             prefix: Bytes | None = None, limit: int = 0, reverse: bool = False,
             keys_only: bool = False) -> Scan:
        """The rows of a range, merged with the transaction's own writes."""
        keys = Range(low, high, prefix, limit, reverse, keys_only)
        place = ffi.new("atoll_scan **")
        check(lib.atoll_transaction_scan(self._handle, name_of(storage, "storage"), keys.pointer,
                                         place))
        return Scan(place[0], self)
