"""Records as rows with columns, and as tables of Arrow or pandas.

A schema file of `atoll export` says which columns the records of a Master-tree have; see
ops/export/README.md. `Table.rows` needs no other package. `to_arrow` needs pyarrow, and `to_pandas`
needs pandas.
"""
from __future__ import annotations

import datetime
import decimal
import itertools
import os
import re
import struct
import tomllib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .options import Row

ROWS_PER_BATCH = 65_536
"""Rows of a record batch unless the caller names another number."""

_INTEGERS = {"i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q",
             "u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q"}
_REALS = {"f32": "<f", "f64": "<d"}
_SIZED = re.compile(r"(char|varchar|bytes|decimal)\((\d+)(?:,(\d+))?\)")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: str
    """As in the schema file: "u32", "decimal(12,2)", "varchar(20)"."""
    is_key: bool
    read: Callable[[bytes], Any]
    """The value of the column in a key, or in a payload."""


def _text(data: bytes, encoding: str, column: str) -> str:
    if b"\0" in data:
        raise ValueError(f"{column}: the text has a zero byte: use bytes(n) in the schema")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(f'{column}: the text is not {encoding}: use encoding = "latin1" in the '
                         "schema, or bytes(n)") from error


def _read_text(entry: dict[str, Any], kind: str, size: int, encoding: str) -> Callable[..., Any]:
    name, offset = entry["name"], entry.get("offset", 0)
    length_offset, length_bytes = entry.get("length_offset"), entry.get("length_bytes", 1)

    def padded(data: bytes) -> str:
        return _text(data[offset:offset + size].rstrip(b"\0"), encoding, name)

    def rest(data: bytes) -> str:
        if len(data) - offset > size:
            raise ValueError(f"{name}: the text has {len(data) - offset} bytes, the limit is "
                             f"{size}")
        return _text(data[offset:], encoding, name)

    def with_length(data: bytes) -> str:
        length = int.from_bytes(data[length_offset:length_offset + length_bytes], "little")
        if length > size:
            raise ValueError(f"{name}: its length is {length}, the limit is {size}")
        return _text(data[offset:offset + length], encoding, name)

    if kind == "char":
        return padded
    return rest if length_offset is None else with_length


def _read_number(entry: dict[str, Any], layout: str,
                 convert: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
    form, offset, null = struct.Struct(layout), entry["offset"], entry.get("null")

    def read(data: bytes) -> Any:
        number = form.unpack_from(data, offset)[0]
        if null is not None and number == null:
            return None
        return number if convert is None else convert(number)

    return read


def _read_key_number(entry: dict[str, Any]) -> Callable[..., Any]:
    type_bits = int(entry["type"][1:])
    offset, shift = entry["offset"], entry.get("shift", 0)
    size = entry.get("size", type_bits // 8)
    mask = (1 << entry.get("bits", min(type_bits, 8 * size - shift))) - 1
    return lambda key: int.from_bytes(key[offset:offset + size], "big") >> shift & mask


def _reader(entry: dict[str, Any], is_key: bool, encoding: str) -> Callable[..., Any]:
    """The function that reads a column of the schema."""
    kind = entry["type"]
    if is_key and kind in _INTEGERS:
        return _read_key_number(entry)
    if kind in _INTEGERS or kind in _REALS:
        return _read_number(entry, _INTEGERS.get(kind) or _REALS[kind])
    if kind == "timestamp":
        return _read_number(entry, "<q",
                            lambda time: _EPOCH + datetime.timedelta(microseconds=time))
    sized = _SIZED.fullmatch(kind)
    if sized is None:
        raise ValueError(f'column {entry["name"]}: {kind} is not a type of a schema')
    word, size = sized[1], int(sized[2])
    if word == "decimal":
        scale = int(sized[3] or 0)
        return _read_number(entry, _INTEGERS[entry.get("stored", "i64")],
                            lambda number: decimal.Decimal(number).scaleb(-scale))
    if word == "bytes":
        offset = entry["offset"]
        return lambda data: data[offset:offset + size]
    return _read_text(entry, word, size, encoding)


def _key_bytes(entries: list[dict[str, Any]]) -> int:
    """The number of bytes that the columns of a key need."""
    ends = [0]
    for entry in entries:
        kind, offset = entry["type"], entry.get("offset", 0)
        sized = _SIZED.fullmatch(kind)
        if kind in _INTEGERS:
            ends.append(offset + entry.get("size", int(kind[1:]) // 8))
        elif sized is not None and (sized[1] != "varchar" or "length_offset" in entry):
            ends.append(offset + int(sized[2]))
        else:
            ends.append(offset)
    return max(ends)


class Table:
    """The columns of the records of a Master-tree."""

    def __init__(self, schema: str | os.PathLike[str], name: str) -> None:
        """Reads the table `name` of a schema file. Raises ValueError if the file has no such table,
        or if its storage is no Master-tree: only these have scans."""
        with open(schema, "rb") as file:
            content = tomllib.load(file)
        found = [table for table in content.get("table", []) if table.get("name") == name]
        if not found:
            raise ValueError(f"{os.fspath(schema)}: has no table {name!r}")
        table = found[0]
        if table.get("type") != "mastertree":
            raise ValueError(f'{os.fspath(schema)}: table {name!r}: its type is '
                             f'{table.get("type")!r}: only "mastertree" has scans')
        encoding = content.get("encoding", "utf-8")
        self.name = name
        self.storage: str = table.get("storage", name)
        """Name of the storage, for `Connection.scan`."""
        self.columns: list[Column] = [
            Column(entry["name"], entry["type"], is_key, _reader(entry, is_key, encoding))
            for entries, is_key in ((table.get("key", []), True), (table.get("column", []), False))
            for entry in entries]
        if not self.columns:
            raise ValueError(f"{os.fspath(schema)}: table {name!r}: has no columns")
        self._payload_bytes: int = table.get("payload_bytes", 0)
        self._key_bytes = _key_bytes(table.get("key", []))

    def row(self, row: Row) -> tuple[Any, ...]:
        """The values of all columns of a record, in the order of `columns`."""
        for part, data, least in (("key", row.key, self._key_bytes),
                                  ("payload", row.value, self._payload_bytes)):
            if len(data) < least:
                raise ValueError(f"table {self.name!r}: key {row.key.hex()}: the {part} has "
                                 f"{len(data)} bytes, the schema says {least} or more")
        return tuple(column.read(row.key if column.is_key else row.value)
                     for column in self.columns)

    def rows(self, scan: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
        """The rows of a scan of the table's storage."""
        return map(self.row, scan)

    def batches(self, scan: Iterable[Row], size: int = ROWS_PER_BATCH) -> Iterator[Any]:
        """The rows of a scan as pyarrow.RecordBatch objects of at most `size` rows. The memory that
        it needs does not depend on the length of the scan."""
        if size < 1:
            raise ValueError(f"size: {size} is less than 1")
        schema = self.arrow_schema()
        rows = self.rows(scan)
        while part := list(itertools.islice(rows, size)):
            yield _record_batch(schema, part)

    def arrow_schema(self) -> Any:
        """The pyarrow.Schema of the table."""
        import pyarrow
        return pyarrow.schema([pyarrow.field(column.name, _arrow_type(column.type))
                               for column in self.columns])

    def to_arrow(self, scan: Iterable[Row]) -> Any:
        """All rows of a scan as a pyarrow.Table."""
        import pyarrow
        return pyarrow.Table.from_batches(self.batches(scan), schema=self.arrow_schema())

    def to_pandas(self, scan: Iterable[Row]) -> Any:
        """All rows of a scan as a pandas.DataFrame. Integers with nulls become objects."""
        import pandas
        return pandas.DataFrame.from_records(list(self.rows(scan)),
                                             columns=[column.name for column in self.columns])


def _record_batch(schema: Any, rows: list[tuple[Any, ...]]) -> Any:
    import pyarrow
    return pyarrow.record_batch([pyarrow.array(values, field.type)
                                 for values, field in zip(zip(*rows), schema)], schema=schema)


def _arrow_type(name: str) -> Any:
    """The Arrow type of a column of this type in the schema, as in an export to Parquet."""
    import pyarrow
    if name in _INTEGERS:
        sign = "u" if name[0] == "u" else ""
        return getattr(pyarrow, f"{sign}int{name[1:]}")()
    if name in _REALS:
        return getattr(pyarrow, f"float{name[1:]}")()
    if name == "timestamp":
        return pyarrow.timestamp("us", tz="UTC")
    sized = _SIZED.fullmatch(name)
    assert sized is not None  # checked by _reader
    if sized[1] == "decimal":
        return pyarrow.decimal128(int(sized[2]), int(sized[3] or 0))
    return pyarrow.binary(int(sized[2])) if sized[1] == "bytes" else pyarrow.string()
