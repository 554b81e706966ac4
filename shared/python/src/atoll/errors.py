"""Exceptions: one class for each status that programs handle."""
from __future__ import annotations


class Error(Exception):
    """A call has failed. Without a class of its own, the status is in `name`."""

    def __init__(self, message: str, status: int = 0, name: str = "") -> None:
        super().__init__(message)
        self.status = status
        """Value of atoll_status (atoll_client.h)."""
        self.name = name
        """Name of the status, for example "user_abort"."""


class NotFound(Error):
    """There is no record with this key. A `get` returns None instead."""


class AlreadyExists(Error):
    """There is a record with this key."""


class InvalidArgument(Error):
    """An argument is wrong, too long or out of range."""


class NotSupported(Error):
    """The storage, or this version, does not have the operation."""


class StorageNotFound(Error):
    """There is no storage with this name."""


class ProcedureNotFound(Error):
    """There is no procedure with this name."""


class Aborted(Error):
    """A check of a batch failed, or a procedure aborted. Nothing was committed."""


class Conflict(Error):
    """Nothing was committed, because of other transactions. Run the transaction again."""


class Unavailable(Error):
    """The request was not run: no node serves it. Call `reconnect`, or try again later."""


class Recovering(Unavailable):
    """The cluster recovers. Until then it runs only reads of snapshots."""


class PermissionDenied(Error):
    """The request was not run: the client's key lacks a right. The message names the right."""


class OutcomeUnknown(Error):
    """The session ended, or the timeout passed, during the request. It may have committed: read the
    data to find out."""


class SnapshotNotFound(Error):
    """There is no snapshot with this id, or no snapshot at all."""


class ReadOnly(Error):
    """The transaction only reads, and the call writes."""


class Closed(Error):
    """The connection was closed, or the transaction has ended."""


class ConnectFailed(Error):
    """The node has another version, or another owner. A later attempt does not help."""


_CLASSES: dict[str, type[Error]] = {
    "not_found": NotFound,
    "already_exists": AlreadyExists,
    "out_of_range": InvalidArgument,
    "key_too_long": InvalidArgument,
    "payload_too_long": InvalidArgument,
    "invalid_argument": InvalidArgument,
    "transaction_too_large": InvalidArgument,
    "operation_not_supported": NotSupported,
    "storage_not_found": StorageNotFound,
    "procedure_not_found": ProcedureNotFound,
    "user_abort": Aborted,
    "unavailable": Unavailable,
    "recovering": Recovering,
    "permission_denied": PermissionDenied,
    "outcome_unknown": OutcomeUnknown,
    "snapshot_not_found": SnapshotNotFound,
    "read_only_transaction": ReadOnly,
    "closed": Closed,
    "connect_failed": ConnectFailed,
}


def error_class(name: str, is_conflict: bool) -> type[Error]:
    """The class of a status."""
    if is_conflict:
        return Conflict
    return _CLASSES.get(name, Error)
