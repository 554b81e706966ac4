"""Loads libatoll_client, and declares the functions of atoll_client.h.

The test `python_client_test.py` compares these declarations with the header.
"""
from __future__ import annotations

import os
import pathlib
from typing import Any

import cffi

from .errors import Error, error_class

LIBRARY_NAME = "libatoll_client.so.0"

ffi: Any = cffi.FFI()  # the types of cffi do not know the members of structs
ffi.cdef("""
typedef int atoll_status;
typedef struct { const void* data; size_t size; } atoll_bytes;
typedef struct {
  size_t struct_size;
  int64_t timeout_ms;
  int32_t acknowledge;
  int32_t isolation;
  uint32_t snapshot;
  uint32_t reserved;
  uint64_t affinity;
} atoll_options;
typedef struct {
  size_t struct_size;
  atoll_bytes low;
  atoll_bytes high;
  uint64_t limit;
  int32_t reverse;
  int32_t keys_only;
} atoll_range;
typedef struct AtollResult atoll_result;
typedef struct AtollConnection atoll_connection;
typedef struct AtollBatch atoll_batch;
typedef struct AtollScan atoll_scan;
typedef struct AtollTransaction atoll_transaction;
typedef struct AtollPending atoll_pending;
typedef void (*atoll_callback)(void* context, atoll_result* result);

const char* atoll_status_name(int status);
int atoll_status_is_conflict(int status);
const char* atoll_last_message(void);
const char* atoll_client_version(void);

void atoll_result_free(atoll_result* result);
atoll_bytes atoll_result_value(const atoll_result* result);
uint64_t atoll_result_version(const atoll_result* result);
uint64_t atoll_result_commit_epoch(const atoll_result* result);
uint64_t atoll_result_commit_version(const atoll_result* result);
uint64_t atoll_result_incarnation(const atoll_result* result);
int atoll_result_is_durable(const atoll_result* result);
size_t atoll_result_count(const atoll_result* result);
atoll_status atoll_result_status_at(const atoll_result* result, size_t index);
atoll_bytes atoll_result_value_at(const atoll_result* result, size_t index);
size_t atoll_result_rows_at(const atoll_result* result, size_t index, int* has_more);
atoll_status atoll_result_row(const atoll_result* result, size_t index, size_t row,
                              atoll_bytes* key, atoll_bytes* value, uint64_t* version);

atoll_status atoll_connect(const char* where, atoll_connection** connection);
void atoll_close(atoll_connection* connection);
void atoll_connection_free(atoll_connection* connection);
int atoll_is_open(const atoll_connection* connection);
atoll_status atoll_reconnect(atoll_connection* connection, int64_t timeout_ms,
                             int* has_new_incarnation);
uint64_t atoll_incarnation(const atoll_connection* connection);
uint32_t atoll_node(const atoll_connection* connection);

atoll_status atoll_get(atoll_connection* connection, const char* storage, atoll_bytes key,
                       const atoll_options* options, atoll_result** result);
atoll_status atoll_put(atoll_connection* connection, const char* storage, atoll_bytes key,
                       atoll_bytes value, const atoll_options* options, atoll_result** result);
atoll_status atoll_put_at(atoll_connection* connection, const char* storage, atoll_bytes key,
                          uint32_t offset, atoll_bytes value, const atoll_options* options,
                          atoll_result** result);
atoll_status atoll_insert(atoll_connection* connection, const char* storage, atoll_bytes key,
                          atoll_bytes value, const atoll_options* options, atoll_result** result);
atoll_status atoll_delete(atoll_connection* connection, const char* storage, atoll_bytes key,
                          const atoll_options* options, atoll_result** result);
atoll_status atoll_add(atoll_connection* connection, const char* storage, atoll_bytes key,
                       int number, const void* delta, uint32_t offset,
                       const atoll_options* options, atoll_result** result);
atoll_status atoll_append(atoll_connection* connection, const char* storage, atoll_bytes value,
                          const atoll_options* options, atoll_result** result);
atoll_status atoll_call(atoll_connection* connection, const char* procedure, atoll_bytes input,
                        const atoll_options* options, atoll_result** result);

atoll_status atoll_batch_new(atoll_batch** batch);
void atoll_batch_free(atoll_batch* batch);
size_t atoll_batch_count(const atoll_batch* batch);
atoll_status atoll_batch_get(atoll_batch* batch, const char* storage, atoll_bytes key);
atoll_status atoll_batch_put(atoll_batch* batch, const char* storage, atoll_bytes key,
                             atoll_bytes value);
atoll_status atoll_batch_put_at(atoll_batch* batch, const char* storage, atoll_bytes key,
                                uint32_t offset, atoll_bytes value);
atoll_status atoll_batch_insert(atoll_batch* batch, const char* storage, atoll_bytes key,
                                atoll_bytes value);
atoll_status atoll_batch_delete(atoll_batch* batch, const char* storage, atoll_bytes key);
atoll_status atoll_batch_add(atoll_batch* batch, const char* storage, atoll_bytes key, int number,
                             const void* delta, uint32_t offset, int returns_value);
atoll_status atoll_batch_append(atoll_batch* batch, const char* storage, atoll_bytes value);
atoll_status atoll_batch_check(atoll_batch* batch, const char* storage, atoll_bytes key,
                               atoll_bytes value);
atoll_status atoll_batch_check_absent(atoll_batch* batch, const char* storage, atoll_bytes key);
atoll_status atoll_batch_scan(atoll_batch* batch, const char* storage, const atoll_range* range);
atoll_status atoll_batch_run(atoll_connection* connection, const atoll_batch* batch,
                             const atoll_options* options, atoll_result** result);

atoll_status atoll_scan_start(atoll_connection* connection, const char* storage,
                              const atoll_range* range, const atoll_options* options,
                              atoll_scan** scan);
atoll_status atoll_scan_next(atoll_scan* scan, atoll_bytes* key, atoll_bytes* value,
                             uint64_t* version);
void atoll_scan_free(atoll_scan* scan);

atoll_status atoll_begin(atoll_connection* connection, const atoll_options* options,
                         atoll_transaction** transaction);
atoll_status atoll_transaction_get(atoll_transaction* transaction, const char* storage,
                                   atoll_bytes key, atoll_result** result);
atoll_status atoll_transaction_put(atoll_transaction* transaction, const char* storage,
                                   atoll_bytes key, atoll_bytes value);
atoll_status atoll_transaction_put_at(atoll_transaction* transaction, const char* storage,
                                      atoll_bytes key, uint32_t offset, atoll_bytes value);
atoll_status atoll_transaction_insert(atoll_transaction* transaction, const char* storage,
                                      atoll_bytes key, atoll_bytes value);
atoll_status atoll_transaction_delete(atoll_transaction* transaction, const char* storage,
                                      atoll_bytes key);
atoll_status atoll_transaction_add(atoll_transaction* transaction, const char* storage,
                                   atoll_bytes key, int number, const void* delta,
                                   uint32_t offset);
atoll_status atoll_transaction_append(atoll_transaction* transaction, const char* storage,
                                      atoll_bytes value);
atoll_status atoll_transaction_scan(atoll_transaction* transaction, const char* storage,
                                    const atoll_range* range, atoll_scan** scan);
atoll_status atoll_commit(atoll_transaction* transaction, atoll_result** result);
void atoll_abort(atoll_transaction* transaction);
void atoll_transaction_free(atoll_transaction* transaction);

atoll_status atoll_submit_call(atoll_connection* connection, const char* procedure,
                               atoll_bytes input, const atoll_options* options,
                               atoll_callback callback, void* context, atoll_pending** pending);
atoll_status atoll_pending_wait(atoll_pending* pending, int64_t timeout_ms, atoll_result** result);
void atoll_pending_free(atoll_pending* pending);
""")


def _load() -> Any:
    """Opens the library that the environment names, that of the wheel, or that of the system."""
    beside = pathlib.Path(__file__).with_name(LIBRARY_NAME)
    named = os.environ.get("ATOLL_CLIENT_LIBRARY")
    path = named or (str(beside) if beside.exists() else LIBRARY_NAME)
    try:
        return ffi.dlopen(path)
    except OSError as error:
        raise ImportError(
            f"{path}: the client library of Atoll cannot be loaded: {error}: "
            "set ATOLL_CLIENT_LIBRARY to the path of libatoll_client.so.0"
        ) from error


lib = _load()


def text_of(cdata: Any) -> str:
    """The text of a C string."""
    return str(ffi.string(cdata).decode("utf-8", "replace"))


def check(status: int) -> None:
    """Raises the exception of a status, unless it is ATOLL_OK. REQUIRES: the call that returned the
    status is this thread's latest call of the library."""
    if status != 0:
        raise error_of(status)


def error_of(status: int) -> Error:
    """The exception of a status, with the latest message of this thread."""
    name = text_of(lib.atoll_status_name(status))
    is_conflict = lib.atoll_status_is_conflict(status) != 0
    return error_class(name, is_conflict)(text_of(lib.atoll_last_message()), status, name)


def name_of(name: str, what: str) -> bytes:
    """The name of a storage or a procedure as a C string."""
    if not isinstance(name, str):
        raise TypeError(f"{what}: is {type(name).__name__}, not str")
    encoded = name.encode("utf-8")
    if b"\0" in encoded:
        raise ValueError(f"{what}: has a zero character")
    return encoded


def data_of(data: bytes | bytearray | memoryview, what: str) -> bytes:
    """The bytes of a key or a value, which the caller keeps while the library uses them."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, (bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"{what}: is {type(data).__name__}, not bytes: see atoll.codec")


def as_bytes(data: bytes) -> Any:
    """An atoll_bytes that points into `data`. REQUIRES: the caller keeps `data`."""
    return ffi.new("atoll_bytes *", (ffi.from_buffer(data), len(data)))[0]


def bytes_from(view: Any) -> bytes:
    """A copy of an atoll_bytes."""
    return bytes(ffi.buffer(view.data, view.size)) if view.size else b""
