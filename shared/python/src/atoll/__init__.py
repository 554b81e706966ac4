"""Client of the Atoll database: sessions with a running cluster on this machine.

    import atoll

    with atoll.connect("atoll:bank") as db:
        db.put("people", b"alice", b"100")
        print(db.get("people", b"alice"))

Keys and values are bytes; `atoll.codec` has encodings. `atoll.aio` is the client for asyncio. A
call blocks its thread, but not other threads. A signal is handled after the call.
"""
from __future__ import annotations

from . import codec
from ._library import lib as _lib
from ._library import text_of as _text_of
from .client import Batch, Connection, Scan, Snapshot, Transaction
from .errors import (Aborted, AlreadyExists, Closed, Conflict, ConnectFailed, Error,
                     InvalidArgument, NotFound, NotSupported, OutcomeUnknown, PermissionDenied,
                     ProcedureNotFound, ReadOnly, Recovering, SnapshotNotFound, StorageNotFound,
                     Unavailable)
from .options import Commit, ReadableSnapshot, Row, Rows
from .retry import retry

__version__: str = _text_of(_lib.atoll_client_version())
"""Version of the C library."""

__all__ = [
    "Aborted", "AlreadyExists", "Batch", "Closed", "Commit", "Conflict", "ConnectFailed",
    "Connection", "Error", "InvalidArgument", "NotFound", "NotSupported", "OutcomeUnknown",
    "PermissionDenied", "ProcedureNotFound", "ReadOnly", "ReadableSnapshot", "Recovering", "Row",
    "Rows", "Scan", "Snapshot", "SnapshotNotFound", "StorageNotFound", "Transaction", "Unavailable", "codec",
    "connect", "retry",
]


def connect(where: str) -> Connection:
    """Connects to a node of a running cluster.

    `where` is "atoll:NAME" for a cluster in its default run folder, "atoll:///run/folder", or
    "atoll+tcp://HOST:PORT?server_key=KEY&key_file=FILE" for a node on the network. It may end in
    parameters: "?node=1&connect_timeout_ms=5000&acknowledge=visible". Raises Unavailable if no node
    runs requests within the timeout, and ConnectFailed if the node refuses the keys.
    """
    return Connection(where)
