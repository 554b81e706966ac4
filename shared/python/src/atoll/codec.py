"""Keys and values of records as bytes.

>>> U64_KEY.encode(258)
b'\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x02'
>>> I64.decode(I64.encode(-1))
-1
"""
from __future__ import annotations

import json
import struct
from typing import Any, Callable, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Codec(NamedTuple, Generic[T]):
    """A pair of functions: from a value to bytes, and back."""

    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]


def packed(layout: str) -> Codec[tuple[Any, ...]]:
    """Several numbers or texts in the layout of the module `struct`, for example "<qd"."""
    form = struct.Struct(layout)
    return Codec(lambda values: form.pack(*values), form.unpack)


def _number(layout: str) -> Codec[Any]:
    form = struct.Struct(layout)
    return Codec(form.pack, lambda data: form.unpack(data)[0])


_SIGN = 1 << 63
_U64_KEY = struct.Struct(">Q")

U64_KEY: Codec[int] = _number(">Q")
"""Keys in the order of the numbers, and keys of arrays: 8 bytes, big-endian."""

I64_KEY: Codec[int] = Codec(
    lambda number: _U64_KEY.pack(number + _SIGN),
    lambda data: int(_U64_KEY.unpack(data)[0]) - _SIGN,
)
"""Keys in the order of the numbers, also of negative ones."""

I32: Codec[int] = _number("<i")
I64: Codec[int] = _number("<q")
"""Values that `add` changes: little-endian."""
U32: Codec[int] = _number("<I")
U64: Codec[int] = _number("<Q")
F64: Codec[float] = _number("<d")

TEXT: Codec[str] = Codec(lambda text: text.encode("utf-8"), lambda data: data.decode("utf-8"))
JSON: Codec[Any] = Codec(
    lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8"),
    json.loads,
)
