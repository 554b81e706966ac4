/*
 * Tests of libatoll_client with its public header only, in C11.
 *
 *   client_library checks WHERE     all calls; needs the storages tree, array and heap, and the
 *                                   example procedure with the array "accounts"
 *   client_library outage WHERE     prints a line for each step, and waits for lines of its input
 *
 * WHERE is a connection string. Ends with 0 if all checks hold.
 */
#include <atoll_client.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                               \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      ++failures;                                                                       \
      fprintf(stderr, "client_library.c:%d: %s is false; last message: %s\n", __LINE__, \
              #condition, atoll_last_message());                                        \
    }                                                                                   \
  } while (0)

/* Expects a status, and says which one came. */
#define EXPECT_STATUS(call, expected)                                                         \
  do {                                                                                        \
    const atoll_status came = (call);                                                         \
    if (came != (expected)) {                                                                 \
      ++failures;                                                                             \
      fprintf(stderr, "client_library.c:%d: %s returned %s, expected %s; last message: %s\n", \
              __LINE__, #call, atoll_status_name(came), atoll_status_name(expected),          \
              atoll_last_message());                                                          \
    }                                                                                         \
  } while (0)

static int is_text(atoll_bytes bytes, const char* text) {
  return bytes.size == strlen(text) &&
         (bytes.size == 0 || memcmp(bytes.data, text, bytes.size) == 0);
}

static atoll_connection* open_or_end(const char* where) {
  atoll_connection* db = NULL;
  if (atoll_connect(where, &db) != ATOLL_OK) {
    fprintf(stderr, "%s: %s\n", where, atoll_last_message());
    exit(1);
  }
  return db;
}

/* Expects the value of a record, or no record for NULL. */
static void expect_record(atoll_connection* db, const char* key, const char* value) {
  atoll_result* result = NULL;
  const atoll_status status = atoll_get(db, "tree", atoll_text(key), NULL, &result);
  if (value == NULL) {
    EXPECT_STATUS(status, ATOLL_NOT_FOUND);
  } else {
    EXPECT_STATUS(status, ATOLL_OK);
    EXPECT(is_text(atoll_result_value(result), value));
    EXPECT(atoll_result_version(result) != 0);
  }
  EXPECT(atoll_result_status(result) == status);
  atoll_result_free(result);
}

static void test_single_operations(atoll_connection* db) {
  atoll_result* result = NULL;
  int64_t delta = 5;
  int64_t number = 0;
  unsigned char key[8];
  EXPECT_STATUS(atoll_put(db, "tree", atoll_text("alice"), atoll_text("100"), NULL, &result),
                ATOLL_OK);
  EXPECT(atoll_result_is_durable(result) == 1);
  EXPECT(atoll_result_commit_epoch(result) != 0);
  EXPECT(atoll_result_commit_version(result) != 0);
  EXPECT(atoll_result_incarnation(result) == atoll_incarnation(db));
  EXPECT(strcmp(atoll_result_message(result), "") == 0);
  atoll_result_free(result);
  expect_record(db, "alice", "100");
  EXPECT_STATUS(atoll_insert(db, "tree", atoll_text("alice"), atoll_text("x"), NULL, NULL),
                ATOLL_ALREADY_EXISTS);
  EXPECT_STATUS(atoll_put_at(db, "tree", atoll_text("alice"), 1, atoll_text("23"), NULL, NULL),
                ATOLL_OK);
  expect_record(db, "alice", "123");
  EXPECT_STATUS(atoll_delete(db, "tree", atoll_text("alice"), NULL, NULL), ATOLL_OK);
  EXPECT_STATUS(atoll_delete(db, "tree", atoll_text("alice"), NULL, NULL), ATOLL_NOT_FOUND);
  expect_record(db, "alice", NULL);
  EXPECT_STATUS(atoll_insert(db, "tree", atoll_text("empty"), atoll_text(""), NULL, NULL),
                ATOLL_OK);
  expect_record(db, "empty", "");
  EXPECT_STATUS(atoll_add(db, "tree", atoll_text("none"), ATOLL_I64, &delta, 0, NULL, NULL),
                ATOLL_NOT_FOUND);

  atoll_index_key(7, key);
  EXPECT_STATUS(atoll_add(db, "array", atoll_make_bytes(key, 8), ATOLL_I64, &delta, 0, NULL, NULL),
                ATOLL_OK);
  EXPECT_STATUS(atoll_get(db, "array", atoll_make_bytes(key, 8), NULL, &result), ATOLL_OK);
  EXPECT(atoll_result_value(result).size == 8);
  memcpy(&number, atoll_result_value(result).data, 8);
  EXPECT(number == 5);
  atoll_result_free(result);
  EXPECT_STATUS(atoll_append(db, "heap", atoll_text("entry"), NULL, NULL), ATOLL_OK);
  EXPECT_STATUS(atoll_append(db, "tree", atoll_text("entry"), NULL, NULL),
                ATOLL_OPERATION_NOT_SUPPORTED);
  EXPECT_STATUS(atoll_get(db, "none", atoll_text("k"), NULL, NULL), ATOLL_STORAGE_NOT_FOUND);
  EXPECT(strstr(atoll_last_message(), "none") != NULL);
}

static void test_procedures(atoll_connection* db) {
  atoll_result* result = NULL;
  EXPECT_STATUS(atoll_call(db, "transfer", atoll_text("1 2 100"), NULL, &result), ATOLL_OK);
  EXPECT(is_text(atoll_result_value(result), "-100"));
  EXPECT(atoll_result_count(result) == 0);
  atoll_result_free(result);
  EXPECT_STATUS(atoll_call(db, "transfer", atoll_text("1 2 9000"), NULL, &result),
                ATOLL_USER_ABORT);
  EXPECT(atoll_result_value(result).size == 0);
  atoll_result_free(result);
  EXPECT_STATUS(atoll_call(db, "no_such", atoll_text(""), NULL, NULL), ATOLL_PROCEDURE_NOT_FOUND);
}

/* The procedure "repeat" has eight times its input as output. */
static void test_long_payloads(atoll_connection* db) {
  enum { kInput = 300000, kMostInput = 1 << 20 };
  unsigned char* input = malloc(kMostInput + 1);
  atoll_result* result = NULL;
  atoll_pending* pending = NULL;
  size_t i;
  size_t wrong = 0;
  EXPECT(input != NULL);
  if (input == NULL) return;
  for (i = 0; i <= kMostInput; ++i) input[i] = (unsigned char)(i * 7 + i / 65536);
  EXPECT_STATUS(atoll_call(db, "repeat", atoll_make_bytes(input, kInput), NULL, &result), ATOLL_OK);
  EXPECT(atoll_result_value(result).size == 8 * (size_t)kInput);
  for (i = 0; i < atoll_result_value(result).size; ++i) {
    wrong += ((const unsigned char*)atoll_result_value(result).data)[i] != input[i % kInput];
  }
  EXPECT(wrong == 0);
  atoll_result_free(result);
  EXPECT_STATUS(atoll_call(db, "repeat", atoll_make_bytes(input, 600000), NULL, NULL),
                ATOLL_PROCEDURE_FAILED);
  EXPECT(strstr(atoll_last_message(), "4194304: raise procedures.max_output") != NULL);
  EXPECT_STATUS(atoll_call(db, "repeat", atoll_make_bytes(input, kMostInput + 1), NULL, NULL),
                ATOLL_PAYLOAD_TOO_LONG);
  EXPECT(strstr(atoll_last_message(), "procedures.max_input") != NULL);
  EXPECT_STATUS(atoll_submit_call(db, "repeat", atoll_make_bytes(input, kMostInput + 1), NULL, NULL,
                                  NULL, &pending),
                ATOLL_PAYLOAD_TOO_LONG);
  EXPECT(strstr(atoll_last_message(), "procedures.max_input") != NULL);
  EXPECT_STATUS(
      atoll_submit_call(db, "repeat", atoll_make_bytes(input, kInput), NULL, NULL, NULL, &pending),
      ATOLL_OK);
  EXPECT_STATUS(atoll_pending_wait(pending, -1, &result), ATOLL_OK);
  EXPECT(atoll_result_value(result).size == 8 * (size_t)kInput);
  atoll_result_free(result);
  atoll_pending_free(pending);
  free(input);
}

static void test_batches(atoll_connection* db) {
  atoll_batch* batch = NULL;
  atoll_result* result = NULL;
  atoll_range range = ATOLL_RANGE_INIT;
  int64_t delta = 2;
  int has_more = -1;
  unsigned char index[8];
  atoll_bytes key;
  atoll_index_key(9, index);
  range.low = atoll_text("batch/");
  range.high = atoll_text("batch0");
  EXPECT_STATUS(atoll_batch_new(&batch), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_insert(batch, "tree", atoll_text("batch/a"), atoll_text("1")),
                ATOLL_OK);
  EXPECT_STATUS(atoll_batch_put(batch, "tree", atoll_text("batch/b"), atoll_text("2")), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_get(batch, "tree", atoll_text("batch/none")), ATOLL_OK);
  EXPECT_STATUS(
      atoll_batch_add(batch, "array", atoll_make_bytes(index, 8), ATOLL_I64, &delta, 0, 1),
      ATOLL_OK);
  EXPECT_STATUS(atoll_batch_check_absent(batch, "tree", atoll_text("batch/none")), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_scan(batch, "tree", &range), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_append(batch, "heap", atoll_text("entry")), ATOLL_OK);
  EXPECT(atoll_batch_count(batch) == 7);
  EXPECT_STATUS(atoll_batch_run(db, batch, NULL, &result), ATOLL_OK);
  EXPECT(atoll_result_count(result) == 7);
  EXPECT(atoll_result_status_at(result, 2) == ATOLL_NOT_FOUND);
  EXPECT(atoll_result_value_at(result, 3).size == 8);
  EXPECT(atoll_result_rows_at(result, 5, &has_more) == 2);
  EXPECT(has_more == 0);
  EXPECT_STATUS(atoll_result_row(result, 5, 1, &key, NULL, NULL), ATOLL_OK);
  EXPECT(is_text(key, "batch/b"));
  EXPECT_STATUS(atoll_result_row(result, 5, 2, &key, NULL, NULL), ATOLL_END_OF_SCAN);
  EXPECT(atoll_result_status_at(result, 7) == ATOLL_INVALID_ARGUMENT);
  atoll_result_free(result);

  /* All or nothing: the insert of an existing key ends the batch. */
  atoll_batch_clear(batch);
  EXPECT_STATUS(atoll_batch_put(batch, "tree", atoll_text("batch/b"), atoll_text("9")), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_insert(batch, "tree", atoll_text("batch/a"), atoll_text("9")),
                ATOLL_OK);
  EXPECT_STATUS(atoll_batch_run(db, batch, NULL, &result), ATOLL_ALREADY_EXISTS);
  EXPECT(strstr(atoll_result_message(result), "insert") != NULL);
  atoll_result_free(result);
  expect_record(db, "batch/b", "2");
  atoll_batch_clear(batch);
  EXPECT_STATUS(atoll_batch_put_at(batch, "tree", atoll_text("batch/b"), 1, atoll_text("")),
                ATOLL_OK);
  EXPECT_STATUS(atoll_batch_delete(batch, "tree", atoll_text("batch/a")), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_check(batch, "tree", atoll_text("batch/b"), atoll_text("3")), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_run(db, batch, NULL, NULL), ATOLL_USER_ABORT);
  expect_record(db, "batch/a", "1");
  atoll_batch_free(batch);
}

static void test_limits(atoll_connection* db) {
  static char long_text[70000];
  char name[65];
  atoll_batch* batch = NULL;
  atoll_range range = ATOLL_RANGE_INIT;
  int i;
  const atoll_bytes one = atoll_text("1");
  memset(long_text, 'x', sizeof(long_text));
  memset(name, 'n', 64);
  name[64] = 0;
  EXPECT_STATUS(atoll_put(db, "tree", atoll_make_bytes(long_text, 1024), one, NULL, NULL),
                ATOLL_OK);
  EXPECT_STATUS(atoll_delete(db, "tree", atoll_make_bytes(long_text, 1024), NULL, NULL), ATOLL_OK);
  EXPECT_STATUS(atoll_put(db, "tree", atoll_make_bytes(long_text, 1025), one, NULL, NULL),
                ATOLL_KEY_TOO_LONG);
  EXPECT(strstr(atoll_last_message(), "1025") != NULL);
  EXPECT_STATUS(atoll_put(db, "tree", one, atoll_make_bytes(long_text, 2049), NULL, NULL),
                ATOLL_PAYLOAD_TOO_LONG);
  EXPECT_STATUS(atoll_get(db, name, one, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  name[63] = 0;
  EXPECT_STATUS(atoll_get(db, name, one, NULL, NULL), ATOLL_STORAGE_NOT_FOUND);
  EXPECT_STATUS(atoll_get(db, "", one, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_call(db, "", one, NULL, NULL), ATOLL_INVALID_ARGUMENT);

  EXPECT_STATUS(atoll_batch_new(&batch), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_run(db, batch, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  for (i = 0; i < 256; ++i) EXPECT_STATUS(atoll_batch_get(batch, "tree", one), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_get(batch, "tree", one), ATOLL_TRANSACTION_TOO_LARGE);
  EXPECT(atoll_batch_count(batch) == 256);
  EXPECT_STATUS(atoll_batch_run(db, batch, NULL, NULL), ATOLL_OK);
  atoll_batch_clear(batch);
  for (i = 0; atoll_batch_put(batch, "heap", one, atoll_make_bytes(long_text, 2000)) == ATOLL_OK;) {
    ++i;
  }
  EXPECT(i == (65536 - 16) / (32 + 4 + 1 + 2000));
  EXPECT_STATUS(atoll_batch_put(batch, "heap", one, atoll_make_bytes(long_text, 2000)),
                ATOLL_PAYLOAD_TOO_LONG);
  range.limit = 10001;
  EXPECT_STATUS(atoll_batch_scan(batch, "tree", &range), ATOLL_INVALID_ARGUMENT);
  atoll_batch_free(batch);
}

static void test_null_arguments(atoll_connection* db) {
  atoll_connection* none = db;
  atoll_result* result = NULL;
  atoll_batch* batch = NULL;
  atoll_scan* scan = NULL;
  atoll_transaction* transaction = NULL;
  atoll_pending* pending = NULL;
  const atoll_bytes key = atoll_text("k");
  const atoll_bytes bad = atoll_make_bytes(NULL, 1);
  EXPECT_STATUS(atoll_connect(NULL, &none), ATOLL_INVALID_ARGUMENT);
  EXPECT(none == NULL);
  EXPECT_STATUS(atoll_connect("atoll:x", NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_get(NULL, "tree", key, NULL, &result), ATOLL_INVALID_ARGUMENT);
  EXPECT(strcmp(atoll_result_message(result), "connection: is NULL") == 0);
  atoll_result_free(result);
  EXPECT_STATUS(atoll_get(db, NULL, key, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_get(db, "tree", bad, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_put(db, "tree", key, bad, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_add(db, "tree", key, ATOLL_I64, NULL, 0, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_add(db, "tree", key, 9, "12345678", 0, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_call(db, NULL, key, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_call(db, "transfer", bad, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_batch_new(NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_batch_get(NULL, "tree", key), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_batch_run(db, NULL, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_scan_start(db, "tree", NULL, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_scan_start(NULL, "tree", NULL, NULL, &scan), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_scan_next(NULL, NULL, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_begin(db, NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_begin(NULL, NULL, &transaction), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_transaction_put(NULL, "tree", key, key), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_commit(NULL, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_submit(db, NULL, NULL, NULL, NULL, &pending), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_submit_call(db, "transfer", key, NULL, NULL, NULL, NULL),
                ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_pending_wait(NULL, 0, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_dispatch(NULL, 0, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_reconnect(NULL, 0, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT_STATUS(atoll_reconnect(db, -1, NULL), ATOLL_INVALID_ARGUMENT);
  EXPECT(atoll_result_status(NULL) == ATOLL_INVALID_ARGUMENT);
  EXPECT(atoll_result_count(NULL) == 0 && atoll_is_open(NULL) == 0 && atoll_incarnation(NULL) == 0);
  atoll_result_free(NULL);
  atoll_batch_free(batch);
  atoll_scan_free(scan);
  atoll_transaction_free(transaction);
  atoll_pending_free(pending);
  atoll_abort(NULL);
  atoll_close(NULL);
  atoll_connection_free(NULL);
}

/* More requests than a connection may have in flight. All of them run, and none is waited for. */
static void test_accepted_requests(atoll_connection* db) {
  enum { kRequests = 6000 };
  const int64_t one = 1;
  int64_t sum = 0;
  int i;
  atoll_options options = ATOLL_OPTIONS_INIT;
  atoll_result* result = NULL;
  const atoll_bytes key = atoll_text("accepted");
  EXPECT_STATUS(atoll_put(db, "tree", key, atoll_make_bytes(&sum, sizeof(sum)), NULL, NULL),
                ATOLL_OK);
  options.acknowledge = ATOLL_ACKNOWLEDGE_ACCEPTED;
  EXPECT_STATUS(atoll_put(db, "none", key, key, &options, &result), ATOLL_OK);
  EXPECT(atoll_result_value(result).size == 0 && atoll_result_is_durable(result) == 0);
  atoll_result_free(result);
  for (i = 0; i < kRequests; ++i) {
    EXPECT_STATUS(atoll_add(db, "tree", key, ATOLL_I64, &one, 0, &options, NULL), ATOLL_OK);
  }
  while (sum != kRequests) { /* the time limit of the test ends a wait for what is lost */
    EXPECT_STATUS(atoll_get(db, "tree", key, NULL, &result), ATOLL_OK);
    memcpy(&sum, atoll_result_value(result).data, sizeof(sum));
    atoll_result_free(result);
  }
}

static void test_options(atoll_connection* db) {
  atoll_options options = ATOLL_OPTIONS_INIT;
  atoll_range range = ATOLL_RANGE_INIT;
  atoll_result* result = NULL;
  atoll_scan* scan = NULL;
  struct {
    atoll_options known;
    uint64_t later;
  } newer = {ATOLL_OPTIONS_INIT, 0};
  const atoll_bytes key = atoll_text("options");
  options.acknowledge = ATOLL_ACKNOWLEDGE_VISIBLE;
  options.timeout_ms = 60000;
  EXPECT_STATUS(atoll_put(db, "tree", key, key, &options, &result), ATOLL_OK);
  EXPECT(atoll_result_commit_version(result) != 0);
  atoll_result_free(result);
  test_accepted_requests(db);
  options.isolation = ATOLL_ISOLATION_SNAPSHOT_READ_ONLY;
  EXPECT_STATUS(atoll_put(db, "tree", key, key, &options, NULL), ATOLL_READ_ONLY_TRANSACTION);
  options.snapshot = 4000000;
  EXPECT_STATUS(atoll_get(db, "tree", key, &options, NULL), ATOLL_SNAPSHOT_NOT_FOUND);
  options.isolation = ATOLL_ISOLATION_DEFAULT;
  EXPECT_STATUS(atoll_get(db, "tree", key, &options, NULL), ATOLL_INVALID_ARGUMENT);
  options.snapshot = 0;
  options.isolation = 4;
  EXPECT_STATUS(atoll_get(db, "tree", key, &options, NULL), ATOLL_INVALID_ARGUMENT);
  options.isolation = 0;
  options.timeout_ms = -1;
  EXPECT_STATUS(atoll_get(db, "tree", key, &options, NULL), ATOLL_INVALID_ARGUMENT);
  options.timeout_ms = 0;
  options.acknowledge = ATOLL_ACKNOWLEDGE_ACCEPTED + 1;
  EXPECT_STATUS(atoll_get(db, "tree", key, &options, NULL), ATOLL_INVALID_ARGUMENT);
  options.acknowledge = 0;
  /* Structs of other versions: shorter ones, longer ones, and wrong sizes. */
  options.struct_size = 16;
  EXPECT_STATUS(atoll_get(db, "tree", key, &options, NULL), ATOLL_OK);
  options.struct_size = 0;
  EXPECT_STATUS(atoll_get(db, "tree", key, &options, NULL), ATOLL_INVALID_ARGUMENT);
  newer.known.struct_size = sizeof(newer);
  EXPECT_STATUS(atoll_get(db, "tree", key, &newer.known, NULL), ATOLL_OK);
  newer.later = 1;
  EXPECT_STATUS(atoll_get(db, "tree", key, &newer.known, NULL), ATOLL_INVALID_ARGUMENT);
  range.struct_size = 1;
  EXPECT_STATUS(atoll_scan_start(db, "tree", &range, NULL, &scan), ATOLL_INVALID_ARGUMENT);
}

static void test_scans(atoll_connection* db) {
  static char value[1000];
  atoll_batch* batch = NULL;
  atoll_scan* scan = NULL;
  atoll_range range = ATOLL_RANGE_INIT;
  atoll_bytes key;
  atoll_bytes found;
  char text[32];
  int i;
  memset(value, 'v', sizeof(value));
  EXPECT_STATUS(atoll_batch_new(&batch), ATOLL_OK);
  for (i = 0; i < 200; ++i) {
    snprintf(text, sizeof(text), "scan/%03d", i);
    EXPECT_STATUS(
        atoll_batch_put(batch, "tree", atoll_text(text), atoll_make_bytes(value, sizeof(value))),
        ATOLL_OK);
    if (i % 50 != 49) continue;
    EXPECT_STATUS(atoll_batch_run(db, batch, NULL, NULL), ATOLL_OK);
    atoll_batch_clear(batch);
  }
  atoll_batch_free(batch);
  range.low = atoll_text("scan/");
  range.high = atoll_text("scan0");
  /* 200 rows of 1000 bytes are several pages. */
  EXPECT_STATUS(atoll_scan_start(db, "tree", &range, NULL, &scan), ATOLL_OK);
  for (i = 0; atoll_scan_next(scan, &key, &found, NULL) == ATOLL_OK; ++i) {
    snprintf(text, sizeof(text), "scan/%03d", i);
    EXPECT(is_text(key, text));
    EXPECT(found.size == sizeof(value));
  }
  EXPECT(i == 200);
  EXPECT_STATUS(atoll_scan_next(scan, NULL, NULL, NULL), ATOLL_END_OF_SCAN);
  atoll_scan_free(scan);
  range.reverse = 1;
  range.keys_only = 1;
  range.limit = 150;
  EXPECT_STATUS(atoll_scan_start(db, "tree", &range, NULL, &scan), ATOLL_OK);
  for (i = 0; atoll_scan_next(scan, &key, &found, NULL) == ATOLL_OK; ++i) {
    snprintf(text, sizeof(text), "scan/%03d", 199 - i);
    EXPECT(is_text(key, text));
    EXPECT(found.size == 0);
  }
  EXPECT(i == 150);
  atoll_scan_free(scan);
  EXPECT_STATUS(atoll_scan_start(db, "heap", NULL, NULL, &scan), ATOLL_OK);
  EXPECT_STATUS(atoll_scan_next(scan, NULL, NULL, NULL), ATOLL_OPERATION_NOT_SUPPORTED);
  atoll_scan_free(scan);
}

static void test_transactions(atoll_connection* db, const char* where) {
  atoll_connection* other = open_or_end(where);
  atoll_transaction* first = NULL;
  atoll_transaction* second = NULL;
  atoll_scan* scan = NULL;
  atoll_result* result = NULL;
  atoll_options options = ATOLL_OPTIONS_INIT;
  atoll_range range = ATOLL_RANGE_INIT;
  atoll_bytes key;
  int64_t delta = 1;
  unsigned char index[8];
  atoll_index_key(3, index);
  EXPECT_STATUS(atoll_put(db, "tree", atoll_text("t/a"), atoll_text("1"), NULL, NULL), ATOLL_OK);

  /* Two transactions read and write the same record: the second commit conflicts. */
  EXPECT_STATUS(atoll_begin(db, NULL, &first), ATOLL_OK);
  EXPECT_STATUS(atoll_begin(other, NULL, &second), ATOLL_OK);
  EXPECT_STATUS(atoll_transaction_get(first, "tree", atoll_text("t/a"), &result), ATOLL_OK);
  EXPECT(is_text(atoll_result_value(result), "1"));
  atoll_result_free(result);
  EXPECT_STATUS(atoll_transaction_get(second, "tree", atoll_text("t/a"), NULL), ATOLL_OK);
  EXPECT_STATUS(atoll_transaction_put(first, "tree", atoll_text("t/a"), atoll_text("2")), ATOLL_OK);
  EXPECT_STATUS(atoll_transaction_put(second, "tree", atoll_text("t/a"), atoll_text("3")),
                ATOLL_OK);
  EXPECT_STATUS(atoll_commit(first, &result), ATOLL_OK);
  EXPECT(atoll_result_commit_version(result) != 0);
  atoll_result_free(result);
  EXPECT_STATUS(atoll_commit(second, NULL), ATOLL_CONFLICT);
  EXPECT(atoll_status_is_conflict(ATOLL_CONFLICT) == 1);
  EXPECT_STATUS(atoll_commit(second, NULL), ATOLL_CLOSED);
  EXPECT_STATUS(atoll_transaction_put(first, "tree", atoll_text("t/a"), atoll_text("4")),
                ATOLL_CLOSED);
  atoll_transaction_free(first);
  atoll_transaction_free(second);
  expect_record(db, "t/a", "2");

  /* Own writes are visible, to scans too; an abort discards them. */
  EXPECT_STATUS(atoll_begin(db, NULL, &first), ATOLL_OK);
  EXPECT_STATUS(atoll_transaction_insert(first, "tree", atoll_text("t/b"), atoll_text("5")),
                ATOLL_OK);
  EXPECT_STATUS(atoll_transaction_insert(first, "tree", atoll_text("t/b"), atoll_text("5")),
                ATOLL_ALREADY_EXISTS);
  EXPECT_STATUS(atoll_transaction_put_at(first, "tree", atoll_text("t/b"), 0, atoll_text("6")),
                ATOLL_OK);
  EXPECT_STATUS(atoll_transaction_delete(first, "tree", atoll_text("t/none")), ATOLL_NOT_FOUND);
  EXPECT_STATUS(atoll_transaction_delete(first, "tree", atoll_text("t/a")), ATOLL_OK);
  EXPECT_STATUS(
      atoll_transaction_add(first, "array", atoll_make_bytes(index, 8), ATOLL_I64, &delta, 0),
      ATOLL_OK);
  EXPECT_STATUS(atoll_transaction_append(first, "heap", atoll_text("entry")), ATOLL_OK);
  range.low = atoll_text("t/");
  range.high = atoll_text("t0");
  EXPECT_STATUS(atoll_transaction_scan(first, "tree", &range, &scan), ATOLL_OK);
  EXPECT_STATUS(atoll_scan_next(scan, &key, NULL, NULL), ATOLL_OK);
  EXPECT(is_text(key, "t/b"));
  EXPECT_STATUS(atoll_scan_next(scan, &key, NULL, NULL), ATOLL_END_OF_SCAN);
  atoll_scan_free(scan);
  EXPECT_STATUS(atoll_transaction_scan(first, "tree", &range, &scan), ATOLL_OK);
  atoll_abort(first);
  EXPECT_STATUS(atoll_scan_next(scan, &key, NULL, NULL), ATOLL_CLOSED);
  atoll_transaction_free(first);
  atoll_scan_free(scan); /* after its transaction: it shares what it needs */
  expect_record(db, "t/a", "2");
  expect_record(db, "t/b", NULL);

  options.timeout_ms = 5;
  EXPECT_STATUS(atoll_begin(db, &options, &first), ATOLL_INVALID_ARGUMENT);
  options.timeout_ms = 0;
  options.isolation = ATOLL_ISOLATION_SNAPSHOT;
  EXPECT_STATUS(atoll_begin(db, &options, &first), ATOLL_OPERATION_NOT_SUPPORTED);
  atoll_connection_free(other);
}

static int callbacks = 0;

static void count_callback(void* context, atoll_result* result) {
  ++callbacks;
  if (atoll_result_status(result) == ATOLL_OK) ++*(int*)context;
  atoll_result_free(result);
}

static void test_asynchronous_requests(atoll_connection* db) {
  atoll_batch* batch = NULL;
  atoll_pending* pending[3] = {NULL, NULL, NULL};
  atoll_result* result = NULL;
  atoll_options options = ATOLL_OPTIONS_INIT;
  int ok = 0;
  int i;
  EXPECT_STATUS(atoll_batch_new(&batch), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_put(batch, "tree", atoll_text("async"), atoll_text("1")), ATOLL_OK);
  for (i = 0; i < 3; ++i) {
    EXPECT_STATUS(atoll_submit(db, batch, NULL, NULL, NULL, &pending[i]), ATOLL_OK);
  }
  EXPECT_STATUS(atoll_pending_wait(pending[1], -1, &result), ATOLL_OK);
  EXPECT(atoll_result_commit_version(result) != 0);
  atoll_result_free(result);
  EXPECT_STATUS(atoll_pending_wait(pending[1], 0, NULL), ATOLL_INVALID_ARGUMENT);
  while (atoll_pending_wait(pending[0], 0, NULL) == ATOLL_PENDING) {
  }
  for (i = 0; i < 3; ++i) atoll_pending_free(pending[i]); /* the last one was not fetched */

  for (i = 0; i < 5000; ++i) { /* more than may be in flight */
    EXPECT_STATUS(atoll_submit(db, batch, NULL, count_callback, &ok, NULL), ATOLL_OK);
  }
  while (callbacks < 5000) EXPECT_STATUS(atoll_dispatch(db, 1000, NULL), ATOLL_OK);
  EXPECT(ok == 5000);
  EXPECT_STATUS(
      atoll_submit_call(db, "transfer", atoll_text("1 2 0"), NULL, count_callback, &ok, NULL),
      ATOLL_OK);
  while (callbacks < 5001) EXPECT_STATUS(atoll_dispatch(db, -1, NULL), ATOLL_OK);
  EXPECT(ok == 5001);
  EXPECT_STATUS(atoll_submit(db, batch, NULL, count_callback, &ok, &pending[0]),
                ATOLL_INVALID_ARGUMENT);
  options.timeout_ms = 1;
  EXPECT_STATUS(atoll_submit(db, batch, &options, count_callback, &ok, NULL),
                ATOLL_INVALID_ARGUMENT);
  /* Requests that are given up free their places: there are only 4,096. */
  for (i = 0; i < 4500; ++i) {
    const atoll_status status =
        atoll_put(db, "tree", atoll_text("async"), atoll_text("2"), &options, NULL);
    /* Over the network, a request that did not begin in time has no effect. */
    EXPECT(status == ATOLL_OK || status == ATOLL_OUTCOME_UNKNOWN || status == ATOLL_UNAVAILABLE ||
           status == ATOLL_DEADLINE_EXCEEDED);
  }
  EXPECT_STATUS(atoll_batch_run(db, batch, NULL, NULL), ATOLL_OK);
  atoll_batch_free(batch);
}

static void test_closed_connections(const char* where) {
  atoll_connection* db = open_or_end(where);
  atoll_transaction* transaction = NULL;
  atoll_scan* scan = NULL;
  atoll_batch* batch = NULL;
  atoll_pending* pending = NULL;
  int ok = 0;
  int before;
  EXPECT_STATUS(atoll_begin(db, NULL, &transaction), ATOLL_OK);
  EXPECT_STATUS(atoll_scan_start(db, "tree", NULL, NULL, &scan), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_new(&batch), ATOLL_OK);
  EXPECT_STATUS(atoll_batch_get(batch, "tree", atoll_text("k")), ATOLL_OK);
  before = callbacks;
  EXPECT_STATUS(atoll_submit(db, batch, NULL, count_callback, &ok, NULL), ATOLL_OK);
  EXPECT(atoll_is_open(db) == 1);
  atoll_close(db);
  EXPECT(callbacks == before + 1); /* with its result, or as outcome_unknown */
  EXPECT(atoll_is_open(db) == 0);
  atoll_close(db);
  EXPECT_STATUS(atoll_get(db, "tree", atoll_text("k"), NULL, NULL), ATOLL_CLOSED);
  EXPECT_STATUS(atoll_batch_run(db, batch, NULL, NULL), ATOLL_CLOSED);
  EXPECT_STATUS(atoll_scan_next(scan, NULL, NULL, NULL), ATOLL_CLOSED);
  EXPECT_STATUS(atoll_submit(db, batch, NULL, NULL, NULL, &pending), ATOLL_CLOSED);
  EXPECT_STATUS(atoll_reconnect(db, 10, NULL), ATOLL_CLOSED);
  EXPECT_STATUS(atoll_dispatch(db, 0, NULL), ATOLL_CLOSED);
  atoll_connection_free(db);
  /* The transaction keeps its session. */
  EXPECT_STATUS(atoll_transaction_get(transaction, "tree", atoll_text("none"), NULL),
                ATOLL_NOT_FOUND);
  EXPECT_STATUS(atoll_commit(transaction, NULL), ATOLL_OK);
  atoll_transaction_free(transaction);
  atoll_scan_free(scan);
  atoll_batch_free(batch);
}

enum { THREADS = 4, ADDITIONS = 200 };

static void* add_many(void* context) {
  atoll_connection* db = context;
  int64_t one = 1;
  unsigned char key[8];
  int i;
  atoll_options options = ATOLL_OPTIONS_INIT;
  options.acknowledge = ATOLL_ACKNOWLEDGE_VISIBLE;
  atoll_index_key(11, key);
  for (i = 0; i < ADDITIONS; ++i) {
    if (atoll_add(db, "array", atoll_make_bytes(key, 8), ATOLL_I64, &one, 0, &options, NULL) !=
        ATOLL_OK) {
      return context;
    }
  }
  return NULL;
}

static void test_threads_share_a_connection(atoll_connection* db) {
  pthread_t threads[THREADS];
  atoll_result* result = NULL;
  unsigned char key[8];
  int64_t sum = 0;
  int i;
  for (i = 0; i < THREADS; ++i) EXPECT(pthread_create(&threads[i], NULL, add_many, db) == 0);
  for (i = 0; i < THREADS; ++i) {
    void* failed = NULL;
    pthread_join(threads[i], &failed);
    EXPECT(failed == NULL);
  }
  atoll_index_key(11, key);
  EXPECT_STATUS(atoll_get(db, "array", atoll_make_bytes(key, 8), NULL, &result), ATOLL_OK);
  memcpy(&sum, atoll_result_value(result).data, sizeof(sum));
  EXPECT(sum == THREADS * ADDITIONS);
  atoll_result_free(result);
}

static void test_connection_strings(void) {
  static const char* const wrong[] = {"",
                                      "bank",
                                      "atoll",
                                      "atoll:",
                                      "atoll://bank",
                                      "atoll:a/b",
                                      "atoll:a b",
                                      "atoll:///x%0",
                                      "atoll:///x%00",
                                      "atoll:///x?node",
                                      "atoll:a?x=1",
                                      "atoll:a?node=-1",
                                      "atoll:a?node=255",
                                      "atoll:a?node=1&node=1",
                                      "atoll:a?acknowledge=maybe",
                                      "atoll:a?connect_timeout_ms=86400001",
                                      "atoll+tcp:host:1234",
                                      "atoll+tcp://host",
                                      "atoll+tcp://:1234",
                                      "atoll+tcp://ho/st:1234",
                                      "atoll+tcp://host:0",
                                      "atoll+tcp://host:65536",
                                      "atoll+tcp://host:1234?node=1",
                                      "atoll+tcp://host:1234?server_key=12&key_file=f",
                                      "atoll+tcp://host:1234?key_file=f",
                                      "atoll+tcp://host:1234?key_file=%zz",
                                      "atoll:a?key_file=f",
                                      "postgres:///x"};
  size_t i;
  atoll_connection* db = NULL;
  for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    EXPECT_STATUS(atoll_connect(wrong[i], &db), ATOLL_INVALID_ARGUMENT);
    EXPECT(strstr(atoll_last_message(), "connection string") != NULL);
  }
  /* Nobody listens on the port of the discard service. */
  EXPECT_STATUS(atoll_connect("atoll+tcp://127.0.0.1:9?connect_timeout_ms=0", &db),
                ATOLL_UNAVAILABLE);
  EXPECT(strstr(atoll_last_message(), "127.0.0.1:9: no node listens there") != NULL);
  EXPECT_STATUS(atoll_connect("atoll:no_such_cluster?connect_timeout_ms=0", &db),
                ATOLL_UNAVAILABLE);
  EXPECT(db == NULL);
}

static int run_checks(const char* where) {
  atoll_connection* db = open_or_end(where);
  test_single_operations(db);
  test_procedures(db);
  test_batches(db);
  test_limits(db);
  test_long_payloads(db);
  test_null_arguments(db);
  test_options(db);
  test_scans(db);
  test_transactions(db, where);
  test_asynchronous_requests(db);
  test_closed_connections(where);
  test_threads_share_a_connection(db);
  test_connection_strings();
  atoll_connection_free(db);
  printf("version %s, %d failures\n", atoll_client_version(), failures);
  return failures == 0 ? 0 : 1;
}

static void wait_for_line(void) {
  char line[64];
  if (fgets(line, sizeof(line), stdin) == NULL) exit(2);
}

/* The cluster stops while requests run, and is started again. */
static int run_outage(const char* where) {
  atoll_connection* db = open_or_end(where);
  atoll_transaction* transaction = NULL;
  const uint64_t old = atoll_incarnation(db);
  atoll_status status = ATOLL_OK;
  int changed = -1;
  EXPECT_STATUS(atoll_put(db, "tree", atoll_text("kept"), atoll_text("1"), NULL, NULL), ATOLL_OK);
  EXPECT_STATUS(atoll_begin(db, NULL, &transaction), ATOLL_OK);
  EXPECT_STATUS(atoll_transaction_put(transaction, "tree", atoll_text("lost"), atoll_text("1")),
                ATOLL_OK);
  EXPECT_STATUS(atoll_reconnect(db, 0, &changed), ATOLL_OK);
  EXPECT(changed == 0);
  printf("running\n");
  fflush(stdout);
  while (status == ATOLL_OK) {
    status = atoll_put(db, "tree", atoll_text("busy"), atoll_text("1"), NULL, NULL);
  }
  EXPECT(status == ATOLL_OUTCOME_UNKNOWN || status == ATOLL_UNAVAILABLE);
  while (atoll_is_open(db) == 1) {
  }
  EXPECT_STATUS(atoll_put(db, "tree", atoll_text("busy"), atoll_text("1"), NULL, NULL),
                ATOLL_UNAVAILABLE);
  EXPECT(strstr(atoll_last_message(), "atoll_reconnect") != NULL);
  printf("stopped\n");
  fflush(stdout);
  wait_for_line();
  EXPECT_STATUS(atoll_reconnect(db, 60000, &changed), ATOLL_OK);
  EXPECT(changed == 1 && atoll_incarnation(db) != old && atoll_is_open(db) == 1);
  expect_record(db, "kept", "1");
  EXPECT_STATUS(atoll_commit(transaction, NULL), ATOLL_UNAVAILABLE);
  atoll_transaction_free(transaction);
  expect_record(db, "lost", NULL);
  atoll_connection_free(db);
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "checks") == 0) return run_checks(argv[2]);
  if (argc == 3 && strcmp(argv[1], "outage") == 0) return run_outage(argv[2]);
  fprintf(stderr, "usage: client_library checks|outage WHERE\n");
  return 2;
}
