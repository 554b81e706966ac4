"""Reads and writes of many records: the bodies of `get_many` and `put_many` of a connection.

They write `kv.txn` requests themselves (shared/kv/README.md). One call of the C library carries 256
records then, instead of three calls for each record.
"""
from __future__ import annotations

import itertools
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from ._library import as_bytes, bytes_from, check, data_of, error_of, ffi, lib, name_of
from .errors import Error, InvalidArgument
from .options import Bytes, Commit

MAX_OPERATIONS = 256
"""Operations of one request, which is one transaction."""
MAX_REQUEST_BYTES = 64 << 10
_IN_FLIGHT = 16
"""Requests of one call. 16 calls at the same time fit into the 256 requests of a network session."""
_VERSION = 1
_GET, _PUT = 1, 2
_MAX_NAME, _MAX_KEY, _MAX_VALUE = 63, 1024, 2048
_HEADER = struct.Struct("<IIQ")     # version, count, incarnation
_HEAD = struct.Struct("<BBBBHHIIQQ")  # see KvOperation
_REPLY_BYTES = 8
_RESULT = struct.Struct("<BBHIQ")   # status, flags, rows, bytes, version
_OK = 0
_NOT_FOUND = 1
_TOO_LONG = "payload_too_long"


class _Heads:
    """Heads of the operations on one storage. All keys of one length have the same head."""

    def __init__(self, code: int, storage: str) -> None:
        name = name_of(storage, "storage")
        if not 1 <= len(name) <= _MAX_NAME:
            raise InvalidArgument(f"storage: its name has {len(name)} bytes, allowed are 1 to "
                                  f"{_MAX_NAME}", name="invalid_argument")
        self._code, self._name = code, name
        self._known: dict[tuple[int, int], bytes] = {}

    def head(self, key_bytes: int, value_bytes: int = 0) -> bytes:
        known = self._known.get((key_bytes, value_bytes))
        if known is not None:
            return known
        if key_bytes > _MAX_KEY:
            raise InvalidArgument(f"key: {key_bytes} bytes are more than {_MAX_KEY}",
                                  name="key_too_long")
        if value_bytes > _MAX_VALUE:
            raise InvalidArgument(f"value: {value_bytes} bytes are more than {_MAX_VALUE}",
                                  name=_TOO_LONG)
        made = _HEAD.pack(self._code, 0, len(self._name), 0, key_bytes, 0, value_bytes, 0, 0,
                          0) + self._name
        self._known[key_bytes, value_bytes] = made
        return made


def _request(parts: list[bytes], count: int) -> bytes:
    return _HEADER.pack(_VERSION, count, 0) + b"".join(parts)


def _groups(heads: _Heads, records: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, int]]:
    """Requests of as many operations as fit, with their numbers of operations."""
    parts: list[bytes] = []
    count, size = 0, _HEADER.size
    for key, value in records:
        head = heads.head(len(key), len(value))
        more = len(head) + len(key) + len(value)
        if count == MAX_OPERATIONS or size + more > MAX_REQUEST_BYTES:
            yield _request(parts, count), count
            parts, count, size = [], 0, _HEADER.size
        parts += (head, key, value)
        count += 1
        size += more
    if count:
        yield _request(parts, count), count


class _Pending:
    """A request in flight."""

    def __init__(self, connection: Any, request: bytes, count: int, options: Any) -> None:
        self.request, self.count = request, count
        place = ffi.new("atoll_pending **")
        check(lib.atoll_submit_call(connection, b"kv.txn", as_bytes(request), options, ffi.NULL,
                                    ffi.NULL, place))
        self._handle = ffi.gc(place[0], lib.atoll_pending_free)

    def wait(self) -> Any:
        """The result. Raises the exception of its status."""
        place = ffi.new("atoll_result **")
        status = lib.atoll_pending_wait(self._handle, -1, place)
        result = ffi.gc(place[0], lib.atoll_result_free)
        check(status)
        return result


def _values(reply: bytes, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    unpack, head = _RESULT.unpack_from, _RESULT.size
    at = _REPLY_BYTES
    for _ in range(count):
        status, _, _, size, _ = unpack(reply, at)
        at += head
        if status not in (_OK, _NOT_FOUND):
            raise error_of(status)
        values.append(reply[at:at + size] if status == _OK else None)
        at += size
    return values


def get_many(connection: Any, storage: str, keys: Iterable[Bytes],
             options: Any) -> list[bytes | None]:
    """See `Connection.get_many`."""
    heads = _Heads(_GET, storage)
    groups = _groups(heads, ((data_of(key, "key"), b"") for key in keys))
    values: list[bytes | None] = []
    waiting: deque[_Pending] = deque()

    def take() -> None:
        pending = waiting.popleft()
        values.extend(_read(connection, heads, pending, options))

    for request, count in groups:
        if len(waiting) == _IN_FLIGHT:
            take()
        waiting.append(_Pending(connection, request, count, options))
    while waiting:
        take()
    return values


def _read(connection: Any, heads: _Heads, pending: _Pending,
          options: Any) -> list[bytes | None]:
    """The values of a request. Reads them in halves if they do not fit into one reply."""
    try:
        result = pending.wait()
    except Error as error:
        if error.name != _TOO_LONG or pending.count == 1:
            raise
    else:
        return _values(bytes_from(lib.atoll_result_value(result)), pending.count)
    keys = _keys(pending.request, pending.count, len(heads.head(0)))
    middle = len(keys) // 2
    values: list[bytes | None] = []
    for half in (keys[:middle], keys[middle:]):
        for request, count in _groups(heads, ((key, b"") for key in half)):
            values += _read(connection, heads, _Pending(connection, request, count, options),
                            options)
    return values


def _keys(request: bytes, count: int, head_bytes: int) -> list[bytes]:
    """The keys of a request of gets."""
    keys = []
    at = _HEADER.size
    for _ in range(count):
        size = _HEAD.unpack_from(request, at)[4]
        at += head_bytes + size
        keys.append(request[at - size:at])
    return keys


def put_many(connection: Any, storage: str, records: Iterable[tuple[Bytes, Bytes]], options: Any,
             commit_of: Any) -> list[Commit]:
    """See `Connection.put_many`."""
    heads = _Heads(_PUT, storage)
    groups = _groups(heads, ((data_of(key, "key"), data_of(value, "value"))
                             for key, value in records))
    commits: list[Commit] = []
    failures: list[Exception] = []
    waiting: deque[_Pending] = deque()
    # After a failure no more requests are sent, but those in flight end first: they may commit.
    while True:
        room = 0 if failures else _IN_FLIGHT - len(waiting)
        try:
            for request, count in itertools.islice(groups, room):
                waiting.append(_Pending(connection, request, count, options))
            if not waiting:
                break
            commits.append(commit_of(waiting.popleft().wait()))
        except Exception as error:  # a wrong record, or a request that has failed
            failures.append(error)
    if failures:
        raise failures[0]
    return commits
