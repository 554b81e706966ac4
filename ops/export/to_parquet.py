#!/usr/bin/python3
"""Converts the CSV files of a complete export to Parquet files beside them.

to_parquet.py DIR reads DIR/export.json, and writes part-0000.parquet for each part-0000.csv. Files
that exist already stay. Each is written under a temporary name, then renamed. Ends with 6
(resources) if the package pyarrow is missing, and with 1 after any other error.
"""
import json
import os
import pathlib
import re
import sys

try:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet
except ImportError:
    print("atoll: the Python package pyarrow is missing: `./ops/setup --parquet` gets it, or name "
          "a Python that has it with --python: the CSV files are complete", file=sys.stderr)
    sys.exit(6)

ROWS_PER_GROUP = 131_072
# A row must fit into a block.
BLOCK_BYTES = 16 << 20

FIXED_TYPES = {
    "i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(),
    "u8": pa.uint8(), "u16": pa.uint16(), "u32": pa.uint32(), "u64": pa.uint64(),
    "f32": pa.float32(), "f64": pa.float64(), "timestamp": pa.timestamp("us", tz="UTC"),
}
NUMBERED_TYPE = re.compile(r"(\w+)\((\d+)(?:,(\d+))?\)")


def arrow_type(name):
    """The Arrow type of a column of this type in the schema."""
    if name in FIXED_TYPES:
        return FIXED_TYPES[name]
    word, first, second = NUMBERED_TYPE.fullmatch(name).groups()
    if word == "decimal":
        return pa.decimal128(int(first), int(second))
    return pa.binary(int(first)) if word == "bytes" else pa.string()


def is_hexadecimal(wanted):
    return pa.types.is_fixed_size_binary(wanted) and not pa.types.is_decimal(wanted)


def from_text(column, wanted):
    """A column as read, in the type of the Parquet file. Bytes are in hexadecimal digits."""
    if not is_hexadecimal(wanted):
        return column
    return pa.array([bytes.fromhex(text.as_py()) for text in column], wanted)


def batches_of(path, schema):
    """The rows of a CSV file as tables of at most ROWS_PER_GROUP rows."""
    read_types = {
        field.name: pa.string() if is_hexadecimal(field.type) else field.type
        for field in schema
    }
    reader = pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES),
        # In a table of one column, null is an empty line.
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=read_types, null_values=[""], strings_can_be_null=True,
            quoted_strings_can_be_null=False))
    waiting = []
    rows = 0
    for batch in reader:
        columns = [from_text(column, field.type) for column, field in zip(batch.columns, schema)]
        waiting.append(pa.record_batch(columns, schema=schema))
        rows += batch.num_rows
        while rows >= ROWS_PER_GROUP:
            table = pa.Table.from_batches(waiting, schema=schema)
            yield table.slice(0, ROWS_PER_GROUP)
            waiting = table.slice(ROWS_PER_GROUP).to_batches()
            rows -= ROWS_PER_GROUP
    if rows:
        yield pa.Table.from_batches(waiting, schema=schema)


def convert(csv_path, rows, schema):
    """Writes the Parquet file of a part, unless it exists."""
    path = csv_path.with_suffix(".parquet")
    if path.exists():
        return
    temporary = path.with_suffix(".parquet.tmp")
    written = 0
    with pyarrow.parquet.ParquetWriter(temporary, schema) as writer:
        # A file without rows has nothing that the reader of CSV could take types from.
        for table in batches_of(csv_path, schema) if rows else []:
            writer.write_table(table, row_group_size=ROWS_PER_GROUP)
            written += table.num_rows
    if written != rows:
        raise ValueError(f"{csv_path}: has {written} rows, the manifest says {rows}")
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    temporary.rename(path)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: to_parquet.py DIR")
    directory = pathlib.Path(sys.argv[1])
    try:
        whole = json.loads((directory / "export.json").read_text(encoding="utf-8"))
        if whole["format"] != "atoll-export" or whole["version"] != 1:
            raise ValueError(f"{directory}: holds no export of version 1")
        if not whole["export"]["complete"]:
            raise ValueError(f"{directory}: the export is unfinished")
        for table in whole["export"]["tables"]:
            schema = pa.schema([pa.field(column["name"], arrow_type(column["type"]))
                                for column in table["columns"]])
            for number, part in enumerate(table["parts"]):
                convert(directory / table["name"] / f"part-{number:04}.csv", part["rows"], schema)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        print(f"atoll: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
