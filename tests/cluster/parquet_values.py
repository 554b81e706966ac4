#!/usr/bin/python3
"""Compares the Parquet files of an export with the CSV files that were imported before.

parquet_values.py EXPORT CSV_DIR reads EXPORT/<table>/*.parquet with pyarrow, and CSV_DIR/<table>.csv
with a reader of its own. Prints the number of rows of each table. It ends with 1 if a column's type
or any value differs.
"""
import collections
import datetime
import decimal
import json
import pathlib
import re
import struct
import sys

import pyarrow as pa
import pyarrow.parquet

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
FIXED = {
    "u8": pa.uint8(), "u16": pa.uint16(), "u32": pa.uint32(), "u64": pa.uint64(),
    "i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(),
    "f64": pa.float64(), "timestamp": pa.timestamp("us", tz="UTC"),
}


def microseconds(time):
    return (time - EPOCH) // datetime.timedelta(microseconds=1)


def value_of(text, type_name):
    """The value that a CSV field stands for."""
    if text is None:
        return None
    word = type_name.split("(")[0]
    if word[0] in "ui":
        return int(text)
    if word == "f64":
        return struct.pack("d", float(text))  # the bits, because they must be equal
    if word == "decimal":
        return decimal.Decimal(text)
    if word == "timestamp":
        return microseconds(datetime.datetime.fromisoformat(text))
    return bytes.fromhex(text) if word == "bytes" else text


def comparable(value, type_name):
    """A value of pyarrow in the form of value_of."""
    if isinstance(value, float):
        return struct.pack("d", value)
    return microseconds(value) if type_name == "timestamp" and value is not None else value


def fields_of(text):
    """The rows of a CSV text. A field is None if it is empty and has no quotes."""
    row = []
    for match in re.finditer(r'("(?:[^"]|"")*"|[^",\r\n]*)(,|\r?\n|\Z)', text):
        field, end = match.groups()
        if match.start() == len(text):
            break
        if field.startswith('"'):
            row.append(field[1:-1].replace('""', '"'))
        else:
            row.append(field or None)
        if end != ",":
            yield row
            row = []


def expected_type(name):
    if name in FIXED:
        return FIXED[name]
    word, *sizes = re.fullmatch(r"(\w+)\((\d+)(?:,(\d+))?\)", name).groups()
    if word == "decimal":
        return pa.decimal128(int(sizes[0]), int(sizes[1]))
    return pa.binary(int(sizes[0])) if word == "bytes" else pa.string()


def compare(table, export, csv_dir):
    names = [column["name"] for column in table["columns"]]
    types = [column["type"] for column in table["columns"]]
    found = collections.Counter()
    for path in sorted((export / table["name"]).glob("*.parquet")):
        whole = pyarrow.parquet.read_table(path)
        wanted = pa.schema(list(zip(names, map(expected_type, types))))
        if not whole.schema.equals(wanted):
            sys.exit(f"{path}: has the schema {whole.schema}, expected {wanted}")
        for row in whole.to_pylist():
            found[tuple(comparable(row[name], kind) for name, kind in zip(names, types))] += 1
    text = (csv_dir / f"{table['name']}.csv").read_bytes().decode()
    header, *rows = fields_of(text)
    if header != names:
        sys.exit(f"{table['name']}: the CSV file has the columns {header}, expected {names}")
    imported = collections.Counter(tuple(map(value_of, row, types)) for row in rows)
    for row in (found - imported):
        sys.exit(f"{table['name']}: {row} is only in Parquet")
    for row in (imported - found):
        sys.exit(f"{table['name']}: {row} is missing in Parquet")
    print(table["name"], imported.total())


def main():
    export, csv_dir = map(pathlib.Path, sys.argv[1:])
    manifest = json.loads((export / "export.json").read_text(encoding="utf-8"))
    for table in manifest["export"]["tables"]:
        compare(table, export, csv_dir)


if __name__ == "__main__":
    main()
