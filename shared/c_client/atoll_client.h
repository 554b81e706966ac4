/*
 * Atoll client library for C: requests to a running cluster, on this machine or over the network.
 *
 *   atoll_connection* db = NULL;
 *   if (atoll_connect("atoll:bank", &db) != ATOLL_OK) puts(atoll_last_message());
 *   atoll_put(db, "people", atoll_text("alice"), atoll_text("100"), NULL, NULL);
 *   atoll_connection_free(db);
 *
 * Errors. Nearly all calls return an atoll_status. After any other status than ATOLL_OK,
 * atoll_last_message tells the reason. A null pointer for a handle, a name or an output is refused
 * with ATOLL_INVALID_ARGUMENT, unless its comment allows it. No C++ exception leaves the library.
 *
 * Threads. Any number of threads may use a connection at the same time. A batch, a transaction, a
 * scan, a pending request and a result are used by one thread at a time. After fork(), the
 * parent's connections are closed in the child.
 *
 * Ownership. Each *_free function accepts NULL. A handle remains usable while others of the same
 * connection are freed: they share the session. But a scan of a connection ends with ATOLL_CLOSED
 * when that connection is freed. Bytes that a function returns belong to the object
 * that it was called with, and are valid until that object is freed. Arguments are copied.
 *
 * Limits. Names of storages: 63 bytes. Keys: 1,024 bytes. Values: 2,048 bytes. A batch or a
 * transaction: 256 operations and 64 KiB. Input and output of a procedure: 64 MiB each, unless
 * the cluster has other values of procedures.max_input and max_output. An output of more than
 * 64 KiB is taken in parts. Over a local connection, this happens only while the program waits,
 * polls or dispatches: if it does none of these for a minute, the session ends
 * (procedures.transfer_timeout). Over the network, the library holds up to two copies of an input
 * of more than 64 KiB until its request is answered. A connection: 4,096 requests in flight, or 256
 * over the network. A node: 64 connections, and 256 more over the network.
 *
 * Compatibility. Functions and constants are only added. An option struct begins with its size, so
 * it may grow. All other structs are opaque, except atoll_bytes, which never changes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATOLL_API __attribute__((visibility("default")))

/* ---- Statuses ---- */

/* Values below 200 are those of the nodes. Later versions may add values. */
typedef enum AtollStatus {
  ATOLL_OK = 0,
  ATOLL_NOT_FOUND = 1,
  ATOLL_ALREADY_EXISTS = 2,
  ATOLL_END_OF_SCAN = 3,
  ATOLL_OUT_OF_RANGE = 4,
  ATOLL_KEY_TOO_LONG = 5,
  ATOLL_PAYLOAD_TOO_LONG = 6,
  ATOLL_INVALID_ARGUMENT = 7,
  ATOLL_OPERATION_NOT_SUPPORTED = 8,
  ATOLL_STORAGE_NOT_FOUND = 9,
  ATOLL_STORAGE_EXISTS = 10,
  ATOLL_PROCEDURE_NOT_FOUND = 11,
  /* From here on, the transaction had no effect, unless the comment says otherwise. */
  ATOLL_USER_ABORT = 12, /* a check of a batch failed, or the procedure aborted */
  ATOLL_READ_CONFLICT = 13,
  ATOLL_WRITE_CONFLICT = 14,
  ATOLL_PHANTOM = 15,
  ATOLL_POINTER_INSTALLED = 16,
  ATOLL_TRANSACTION_TOO_LARGE = 17,
  ATOLL_LOG_BUFFER_FULL = 18,
  ATOLL_VOLATILE_POOL_EXHAUSTED = 19,
  ATOLL_DEADLINE_EXCEEDED = 20,
  ATOLL_PROCEDURE_FAILED = 21,
  ATOLL_CLUSTER_FAILED = 22,
  /* The request was not run: the cluster starts or stops, the session has ended, or too many
     requests are in flight. A later attempt is safe. */
  ATOLL_UNAVAILABLE = 23,
  /* The session ended, or the timeout passed, while the request was in flight. It may have
     committed. Read the data to find out. */
  ATOLL_OUTCOME_UNKNOWN = 24,
  ATOLL_SNAPSHOT_UNREADABLE = 25,
  ATOLL_SNAPSHOT_NOT_FOUND = 26,
  ATOLL_SNAPSHOT_CONFLICT = 27, /* a record has changed since the snapshot that was read */
  ATOLL_READ_ONLY_TRANSACTION = 28,
  ATOLL_RECOVERING = 29, /* only snapshot_read_only requests run until the cluster has recovered */
  ATOLL_PERMISSION_DENIED = 30, /* the request was not run: the client's key lacks a right */
  /* Statuses of this library. */
  ATOLL_CONFLICT = 200, /* commit: nothing was committed; run the transaction again */
  ATOLL_PENDING = 201,  /* the result of the request has not arrived yet */
  ATOLL_CLOSED = 202,   /* the connection was closed, or the transaction has ended */
  /* This process has no memory. If the call writes, it may have committed. */
  ATOLL_NO_MEMORY = 203,
  ATOLL_CONNECT_FAILED = 204, /* another version or user: repeating the attempt does not help */
  ATOLL_INTERNAL_ERROR = 205
} atoll_status;

/* `status` is any value. Returns a stable lower-case name, for example "not_found"; "unknown" for
 * an unknown value. */
ATOLL_API const char* atoll_status_name(int status);
/* Returns 1 if other transactions caused the status, nothing was committed, and another attempt may
   succeed. Returns 0 otherwise. */
ATOLL_API int atoll_status_is_conflict(int status);
/* Returns the message of this thread's latest call that did not return ATOLL_OK. Valid until the
   thread's next call. Never NULL. */
ATOLL_API const char* atoll_last_message(void);
/* Returns the version of the library, for example "0.1.0". */
ATOLL_API const char* atoll_client_version(void);

/* ---- Arguments ---- */

/* Bytes of a key or a value. `data` may be NULL if `size` is 0. */
typedef struct AtollBytes {
  const void* data;
  size_t size;
} atoll_bytes;

static inline atoll_bytes atoll_make_bytes(const void* data, size_t size) {
  atoll_bytes bytes;
  bytes.data = data;
  bytes.size = size;
  return bytes;
}
/* The bytes of a text, without its final zero. REQUIRES: `text` is not NULL. */
static inline atoll_bytes atoll_text(const char* text) {
  return atoll_make_bytes(text, strlen(text));
}
/* Writes the key of an array's record: its index as 8 bytes, big-endian. */
static inline void atoll_index_key(uint64_t index, unsigned char key[8]) {
  int i;
  for (i = 0; i < 8; ++i) key[i] = (unsigned char)(index >> (56 - 8 * i));
}

enum {
  ATOLL_ACKNOWLEDGE_DEFAULT = 0, /* that of the connection string, else durable */
  ATOLL_ACKNOWLEDGE_DURABLE = 1, /* answers when no failure of the cluster can undo the result */
  ATOLL_ACKNOWLEDGE_VISIBLE = 2, /* answers after the commit; a failure may lose it */
  /* Returns ATOLL_OK as soon as the request is on its way to the node. The result has no value, and
     the outcome is not told: the request may fail, or never arrive. Only for single operations,
     batches and procedures that the caller waits for; else like ATOLL_ACKNOWLEDGE_VISIBLE. If as
     many requests are in flight as may be, the call waits for one of them. */
  ATOLL_ACKNOWLEDGE_ACCEPTED = 3
};

enum {
  ATOLL_ISOLATION_DEFAULT = 0, /* serializable; for a procedure: what its entry says */
  ATOLL_ISOLATION_SERIALIZABLE = 1,
  ATOLL_ISOLATION_SNAPSHOT = 2,
  ATOLL_ISOLATION_SNAPSHOT_READ_ONLY = 3
};

/* Options of one request. NULL stands for ATOLL_OPTIONS_INIT. */
typedef struct AtollOptions {
  size_t struct_size; /* sizeof(atoll_options) */
  /* Longest wait for the answer in milliseconds; 0: no limit. After it the call returns
     ATOLL_OUTCOME_UNKNOWN, and the request may still commit. Over the network, a request that did
     not begin in time never runs. An output of more than 64 KiB that arrives afterwards must still
     be taken: see Limits. A call with a timeout does not wait while the connection has as
     many requests in flight as it may: it returns ATOLL_UNAVAILABLE. */
  int64_t timeout_ms;
  int32_t acknowledge; /* ATOLL_ACKNOWLEDGE_... */
  int32_t isolation;   /* ATOLL_ISOLATION_... */
  /* Id of the snapshot to read, the newest or a pinned one; 0: the newest. Only with
     ATOLL_ISOLATION_SNAPSHOT_READ_ONLY. */
  uint32_t snapshot;
  uint32_t reserved; /* 0 */
  uint64_t affinity; /* requests of equal affinity run on the same worker; 0: any */
} atoll_options;
#define ATOLL_OPTIONS_INIT {sizeof(atoll_options), 0, 0, 0, 0, 0, 0}

/* Range of a scan over a Master-tree. NULL stands for ATOLL_RANGE_INIT: all rows. */
typedef struct AtollRange {
  size_t struct_size; /* sizeof(atoll_range) */
  atoll_bytes low;    /* first key; data NULL: no bound */
  atoll_bytes high;   /* first key past the range; data NULL: no bound */
  uint64_t limit;     /* most rows; 0: no limit */
  int32_t reverse;    /* not 0: from high to low */
  int32_t keys_only;  /* not 0: the values are empty */
} atoll_range;
#define ATOLL_RANGE_INIT {sizeof(atoll_range), {NULL, 0}, {NULL, 0}, 0, 0, 0}

/* Types of the numbers that an addition changes: values of its argument `number`. Integers wrap
   around. */
typedef enum AtollNumber {
  ATOLL_I32 = 1,
  ATOLL_I64 = 2,
  ATOLL_U32 = 3,
  ATOLL_U64 = 4,
  ATOLL_F64 = 5
} atoll_number;

/* ---- Results ---- */

typedef struct AtollResult atoll_result;

/* Calls with a `result` argument set it, if it is not NULL, to a new result, or to NULL without
   memory. The caller frees it. It has a status and a message also after a failure. */
ATOLL_API void atoll_result_free(atoll_result* result);
ATOLL_API atoll_status atoll_result_status(const atoll_result* result);
ATOLL_API const char* atoll_result_message(const atoll_result* result);
/* Value of the first operation, or output of a procedure. */
ATOLL_API atoll_bytes atoll_result_value(const atoll_result* result);
/* Version of the record that a `get` has read outside of a transaction; else 0. */
ATOLL_API uint64_t atoll_result_version(const atoll_result* result);
/* Epoch of the commit; without writes, the latest epoch that the transaction depends on. */
ATOLL_API uint64_t atoll_result_commit_epoch(const atoll_result* result);
/* Version of the written records; 0 if nothing was written. */
ATOLL_API uint64_t atoll_result_commit_version(const atoll_result* result);
/* Incarnation of the cluster. It changes with every start of the cluster. */
ATOLL_API uint64_t atoll_result_incarnation(const atoll_result* result);
/* Returns 1 if no failure of the cluster can undo the result. */
ATOLL_API int atoll_result_is_durable(const atoll_result* result);

/* Results of the operations of a batch, in their order. An index past the end has the status
   ATOLL_INVALID_ARGUMENT and no value. */
ATOLL_API size_t atoll_result_count(const atoll_result* result);
ATOLL_API atoll_status atoll_result_status_at(const atoll_result* result, size_t index);
ATOLL_API atoll_bytes atoll_result_value_at(const atoll_result* result, size_t index);
ATOLL_API uint64_t atoll_result_version_at(const atoll_result* result, size_t index);
/* Rows of a scan within a batch. `has_more` is 1 if the scan ended early at a limit. */
ATOLL_API size_t atoll_result_rows_at(const atoll_result* result, size_t index, int* has_more);
/* Outputs may be NULL. Returns ATOLL_END_OF_SCAN for a row past the last one. */
ATOLL_API atoll_status atoll_result_row(const atoll_result* result, size_t index, size_t row,
                                        atoll_bytes* key, atoll_bytes* value, uint64_t* version);

/* ---- Connections ---- */

typedef struct AtollConnection atoll_connection;

/*
 * Connects to one node of a running cluster. `where` is one of
 *
 *   atoll:NAME              the cluster NAME in its default run folder
 *   atoll:///run/folder     the cluster with this cluster.run_dir; %XX stands for one byte
 *   atoll+tcp://HOST:PORT   the node with this network port; the library loads libzmq.so.5
 *
 * and may end in ?PARAMETER=VALUE&..., with these parameters:
 *
 *   node=K                  node of a local session; default 0
 *   server_key=KEY          network: public key of the node, 64 hexadecimal digits (`atoll status`)
 *   key_file=FILE           network: keys of this client, of mode 600 (`atoll keys generate`)
 *   connect_timeout_ms=N    waits so long for a cluster that starts or recovers; default 10000
 *   acknowledge=durable     or visible: when requests are answered
 *
 * Waits up to 10 s longer for a node that accepts the connection and does not answer.
 *
 * Errors: ATOLL_INVALID_ARGUMENT for a wrong string, or a file of keys that cannot be used;
 * ATOLL_UNAVAILABLE if no node runs requests, or a limit is reached; ATOLL_CONNECT_FAILED if the
 * node has another version or another owner, or refuses the keys.
 */
ATOLL_API atoll_status atoll_connect(const char* where, atoll_connection** connection);
/* Ends the session. Later calls return ATOLL_CLOSED. Requests in flight continue on the node. The
   callbacks of such requests run now, with ATOLL_OUTCOME_UNKNOWN. Accepts NULL. */
ATOLL_API void atoll_close(atoll_connection* connection);
/* Closes the connection and frees it. REQUIRES: no other thread uses the connection. */
ATOLL_API void atoll_connection_free(atoll_connection* connection);
/* Returns 1 while the node serves the session. */
ATOLL_API int atoll_is_open(const atoll_connection* connection);
/* Starts a new session if the current one has ended; else it changes nothing. Waits for the cluster
   at most `timeout_ms`. `has_new_incarnation` may be NULL. It gets 1 if the cluster was started
   since the last session: then every commit that was acknowledged as durable is there. The
   transactions of the old session cannot commit. Errors: as atoll_connect. */
ATOLL_API atoll_status atoll_reconnect(atoll_connection* connection, int64_t timeout_ms,
                                       int* has_new_incarnation);
/* Return 0 for NULL. */
ATOLL_API uint64_t atoll_incarnation(const atoll_connection* connection);
ATOLL_API uint32_t atoll_node(const atoll_connection* connection);

/* ---- Single operations: each is one transaction ---- */

/* Returns ATOLL_NOT_FOUND if there is no record. */
ATOLL_API atoll_status atoll_get(atoll_connection* connection, const char* storage, atoll_bytes key,
                                 const atoll_options* options, atoll_result** result);
/* Inserts or overwrites a whole record; on an array, overwrites its first bytes. */
ATOLL_API atoll_status atoll_put(atoll_connection* connection, const char* storage, atoll_bytes key,
                                 atoll_bytes value, const atoll_options* options,
                                 atoll_result** result);
/* Overwrites bytes from `offset` on. On a Master-tree, offset 0 does the same as atoll_put. */
ATOLL_API atoll_status atoll_put_at(atoll_connection* connection, const char* storage,
                                    atoll_bytes key, uint32_t offset, atoll_bytes value,
                                    const atoll_options* options, atoll_result** result);
/* Returns ATOLL_ALREADY_EXISTS if there is a record. */
ATOLL_API atoll_status atoll_insert(atoll_connection* connection, const char* storage,
                                    atoll_bytes key, atoll_bytes value,
                                    const atoll_options* options, atoll_result** result);
/* Returns ATOLL_NOT_FOUND if there is no record. */
ATOLL_API atoll_status atoll_delete(atoll_connection* connection, const char* storage,
                                    atoll_bytes key, const atoll_options* options,
                                    atoll_result** result);
/* Adds the number at `delta` to the number at byte `offset` of the record. The result has no value.
   Additions do not conflict with each other. Returns ATOLL_NOT_FOUND if there is no record. */
ATOLL_API atoll_status atoll_add(atoll_connection* connection, const char* storage, atoll_bytes key,
                                 int number, const void* delta, uint32_t offset,
                                 const atoll_options* options, atoll_result** result);
/* Appends a record to a sequential storage. */
ATOLL_API atoll_status atoll_append(atoll_connection* connection, const char* storage,
                                    atoll_bytes value, const atoll_options* options,
                                    atoll_result** result);
/* Runs a procedure of the cluster. The value of the result is its output. */
ATOLL_API atoll_status atoll_call(atoll_connection* connection, const char* procedure,
                                  atoll_bytes input, const atoll_options* options,
                                  atoll_result** result);

/* ---- Batches: several operations as one transaction ---- */

typedef struct AtollBatch atoll_batch;

ATOLL_API atoll_status atoll_batch_new(atoll_batch** batch);
ATOLL_API void atoll_batch_free(atoll_batch* batch);
ATOLL_API void atoll_batch_clear(atoll_batch* batch);
ATOLL_API size_t atoll_batch_count(const atoll_batch* batch);
/* A call that adds an operation checks its limits, and adds nothing if it fails. After
   ATOLL_NO_MEMORY, only atoll_batch_clear and atoll_batch_free are allowed. */
ATOLL_API atoll_status atoll_batch_get(atoll_batch* batch, const char* storage, atoll_bytes key);
ATOLL_API atoll_status atoll_batch_put(atoll_batch* batch, const char* storage, atoll_bytes key,
                                       atoll_bytes value);
ATOLL_API atoll_status atoll_batch_put_at(atoll_batch* batch, const char* storage, atoll_bytes key,
                                          uint32_t offset, atoll_bytes value);
/* The batch fails with ATOLL_ALREADY_EXISTS if there is a record. */
ATOLL_API atoll_status atoll_batch_insert(atoll_batch* batch, const char* storage, atoll_bytes key,
                                          atoll_bytes value);
/* The batch fails with ATOLL_NOT_FOUND if there is no record. */
ATOLL_API atoll_status atoll_batch_delete(atoll_batch* batch, const char* storage, atoll_bytes key);
/* With `returns_value`, the result has the new number, and the addition conflicts with others. */
ATOLL_API atoll_status atoll_batch_add(atoll_batch* batch, const char* storage, atoll_bytes key,
                                       int number, const void* delta, uint32_t offset,
                                       int returns_value);
ATOLL_API atoll_status atoll_batch_append(atoll_batch* batch, const char* storage,
                                          atoll_bytes value);
/* The batch fails with ATOLL_USER_ABORT unless the record has this value. */
ATOLL_API atoll_status atoll_batch_check(atoll_batch* batch, const char* storage, atoll_bytes key,
                                         atoll_bytes value);
/* The batch fails with ATOLL_USER_ABORT if there is a record. */
ATOLL_API atoll_status atoll_batch_check_absent(atoll_batch* batch, const char* storage,
                                                atoll_bytes key);
/* All scans of a batch return at most 32 KiB together. The limit is at most 10,000 rows. */
ATOLL_API atoll_status atoll_batch_scan(atoll_batch* batch, const char* storage,
                                        const atoll_range* range);
/* Runs all operations, or none. The batch does not change. With ATOLL_OK, a `get` of the batch may
   still have found no record: see atoll_result_status_at. */
ATOLL_API atoll_status atoll_batch_run(atoll_connection* connection, const atoll_batch* batch,
                                       const atoll_options* options, atoll_result** result);

/* ---- Scans ---- */

typedef struct AtollScan atoll_scan;

/* Starts a scan of a Master-tree. It reads rows in pages of about 32 KiB. Each page is one
   transaction, so rows of different pages may be of different times. Pages of one named snapshot
   are consistent. */
ATOLL_API atoll_status atoll_scan_start(atoll_connection* connection, const char* storage,
                                        const atoll_range* range, const atoll_options* options,
                                        atoll_scan** scan);
/* Gets the next row. Outputs may be NULL; bytes are valid until the next call for this scan.
   `version` gets 0 for a row that the scan's transaction has written. Returns ATOLL_END_OF_SCAN
   after the last row. After another failure, a later call tries the same page again. */
ATOLL_API atoll_status atoll_scan_next(atoll_scan* scan, atoll_bytes* key, atoll_bytes* value,
                                       uint64_t* version);
ATOLL_API void atoll_scan_free(atoll_scan* scan);

/* ---- Interactive transactions ---- */

typedef struct AtollTransaction atoll_transaction;

/* Begins a transaction over several calls. Reads go to the node; the client keeps the writes until
   the commit. It is serializable: the commit fails with ATOLL_CONFLICT if something that was read
   has changed. With a snapshot id and ATOLL_ISOLATION_SNAPSHOT_READ_ONLY it only reads. Of the
   options, `timeout_ms` and `affinity` must be 0. */
ATOLL_API atoll_status atoll_begin(atoll_connection* connection, const atoll_options* options,
                                   atoll_transaction** transaction);
/* Returns the record as the transaction sees it, with its own writes. */
ATOLL_API atoll_status atoll_transaction_get(atoll_transaction* transaction, const char* storage,
                                             atoll_bytes key, atoll_result** result);
/* On an array, the value must have the size of the record: see atoll_transaction_put_at. */
ATOLL_API atoll_status atoll_transaction_put(atoll_transaction* transaction, const char* storage,
                                             atoll_bytes key, atoll_bytes value);
/* Overwrites bytes of an existing record from `offset` on, after a read of the record. */
ATOLL_API atoll_status atoll_transaction_put_at(atoll_transaction* transaction, const char* storage,
                                                atoll_bytes key, uint32_t offset,
                                                atoll_bytes value);
ATOLL_API atoll_status atoll_transaction_insert(atoll_transaction* transaction, const char* storage,
                                                atoll_bytes key, atoll_bytes value);
ATOLL_API atoll_status atoll_transaction_delete(atoll_transaction* transaction, const char* storage,
                                                atoll_bytes key);
/* Reads nothing. The commit fails with ATOLL_NOT_FOUND if there is no record. */
ATOLL_API atoll_status atoll_transaction_add(atoll_transaction* transaction, const char* storage,
                                             atoll_bytes key, int number, const void* delta,
                                             uint32_t offset);
ATOLL_API atoll_status atoll_transaction_append(atoll_transaction* transaction, const char* storage,
                                                atoll_bytes value);
/* Rows include the transaction's own writes. The scan fails with ATOLL_CLOSED after the end of the
   transaction. */
ATOLL_API atoll_status atoll_transaction_scan(atoll_transaction* transaction, const char* storage,
                                              const atoll_range* range, atoll_scan** scan);
/* Ends the transaction, whatever the status. Later calls return ATOLL_CLOSED. */
ATOLL_API atoll_status atoll_commit(atoll_transaction* transaction, atoll_result** result);
/* Ends the transaction without a commit. Accepts NULL, and a transaction that has ended. */
ATOLL_API void atoll_abort(atoll_transaction* transaction);
/* Aborts the transaction if it has not ended, and frees it. */
ATOLL_API void atoll_transaction_free(atoll_transaction* transaction);

/* ---- Asynchronous requests ---- */

typedef struct AtollPending atoll_pending;
/* Gets the result of a request, and frees it. `result` is never NULL. It runs once, in any thread
   that calls a function for the connection, and may submit requests. It must not free the
   connection. */
typedef void (*atoll_callback)(void* context, atoll_result* result);

/* Submit a request without waiting for its answer. Give either `callback`, or `pending` for
   atoll_pending_wait; the other is NULL. `timeout_ms` of the options must be 0. May wait while the
   connection has as many requests in flight as it may. A result that was not fetched counts as in
   flight. */
ATOLL_API atoll_status atoll_submit(atoll_connection* connection, const atoll_batch* batch,
                                    const atoll_options* options, atoll_callback callback,
                                    void* context, atoll_pending** pending);
ATOLL_API atoll_status atoll_submit_call(atoll_connection* connection, const char* procedure,
                                         atoll_bytes input, const atoll_options* options,
                                         atoll_callback callback, void* context,
                                         atoll_pending** pending);
/* Waits for the result at most `timeout_ms`; negative: without limit; 0: only checks. Returns
   ATOLL_PENDING, and no result, if it has not arrived. Returns the status of the request otherwise.
   A result can be fetched once. */
ATOLL_API atoll_status atoll_pending_wait(atoll_pending* pending, int64_t timeout_ms,
                                          atoll_result** result);
/* Frees the handle. The request continues on the node if its result was not fetched. An output of
   more than 64 KiB must still be taken, by later calls for the connection: see Limits. */
ATOLL_API void atoll_pending_free(atoll_pending* pending);
/* Runs the callbacks of all results that have arrived. Waits for the first one at most
   `timeout_ms`; negative: without limit. Returns at once if no request is in flight. `count`, the
   number of callbacks that ran, may be NULL. */
ATOLL_API atoll_status atoll_dispatch(atoll_connection* connection, int64_t timeout_ms,
                                      size_t* count);

#ifdef __cplusplus
}
#endif
