"""Arguments of calls: options, ranges, numbers."""
from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ._library import as_bytes, data_of, ffi

Bytes = bytes | bytearray | memoryview
Acknowledge = Literal["durable", "visible", "accepted"]
Isolation = Literal["serializable", "snapshot", "snapshot_read_only"]
Number = Literal["i32", "i64", "u32", "u64", "f64"]

_ACKNOWLEDGE = {None: 0, "durable": 1, "visible": 2, "accepted": 3}
_ISOLATION = {None: 0, "serializable": 1, "snapshot": 2, "snapshot_read_only": 3}
_NUMBERS = {"i32": (1, "int32_t *"), "i64": (2, "int64_t *"), "u32": (3, "uint32_t *"),
            "u64": (4, "uint64_t *"), "f64": (5, "double *")}


class Row(NamedTuple):
    """A row of a scan."""

    key: bytes
    value: bytes
    version: int


class Rows(list[Row]):
    """The rows of a scan of a batch."""

    has_more = False
    """Whether rows of the range are missing, because of its limit or that of the batch."""


class Commit(NamedTuple):
    """What a committed transaction has got."""

    epoch: int
    """Epoch of the commit; without writes, the latest epoch that the transaction depends on."""
    version: int
    """Version of the written records; 0 if nothing was written."""
    incarnation: int
    """Incarnation of the cluster. It changes with every start of the cluster."""
    is_durable: bool
    """Whether no failure of the cluster can undo the commit."""


class ReadableSnapshot(NamedTuple):
    """A snapshot that can be read: the newest one, or a pinned one."""

    id: int
    epoch: int
    """The snapshot has all commits up to this epoch, and no later ones."""


def choice_of(choices: dict[Any, Any], value: Any, what: str) -> Any:
    if value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{what}: {value!r} is not one of {allowed}")
    return choices[value]


def options_of(timeout: float | None = None, acknowledge: Acknowledge | None = None,
               isolation: Isolation | None = None, snapshot: int = 0) -> Any:
    """An atoll_options *, or NULL if all options have their defaults."""
    if timeout is None and acknowledge is None and isolation is None and snapshot == 0:
        return ffi.NULL
    options = ffi.new("atoll_options *")
    options.struct_size = ffi.sizeof("atoll_options")
    if timeout is not None:
        if timeout <= 0:
            raise ValueError(f"timeout: {timeout} is not positive: None has no limit")
        options.timeout_ms = max(1, round(timeout * 1000))
    options.acknowledge = choice_of(_ACKNOWLEDGE, acknowledge, "acknowledge")
    options.isolation = choice_of(_ISOLATION, isolation, "isolation")
    options.snapshot = snapshot
    return options


def delta_of(number: Number, delta: int | float) -> tuple[int, Any]:
    """The type of a number, and a pointer to the number."""
    kind, pointer = choice_of(_NUMBERS, number, "number")
    return kind, ffi.new(pointer, delta)


def end_of_prefix(prefix: bytes) -> bytes | None:
    """The first key past all keys with this prefix, or None if there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


class Range:
    """An atoll_range in `pointer`, and the keys that it points to."""

    def __init__(self, low: Bytes | None, high: Bytes | None, prefix: Bytes | None, limit: int,
                 reverse: bool, keys_only: bool) -> None:
        if prefix is not None:
            if low is not None or high is not None:
                raise ValueError("prefix: cannot be given with low or high")
            low = data_of(prefix, "prefix")
            high = end_of_prefix(low)
        self._low = None if low is None else data_of(low, "low")
        self._high = None if high is None else data_of(high, "high")
        self.pointer = ffi.new("atoll_range *")
        self.pointer.struct_size = ffi.sizeof("atoll_range")
        if self._low is not None:
            self.pointer.low = as_bytes(self._low)
        if self._high is not None:
            self.pointer.high = as_bytes(self._high)
        self.pointer.limit = limit
        self.pointer.reverse = reverse
        self.pointer.keys_only = keys_only
