"""Measures one client in Python, and prints its records per second.

  python_rates.py atoll CONNECTION CASE SECONDS
  python_rates.py redis SOCKET CASE SECONDS
  python_rates.py sqlite FILE CASE SECONDS
  python_rates.py lmdb FOLDER CASE SECONDS

CASE is get, get-batch, put or put-batch. Atoll also has get-asyncio and put-asyncio, and Redis has
get-pipelined and put-pipelined.
"""
import asyncio
import sys
import time

RECORDS = 10_000
BATCH = 100
MANY = 1000      # records of a call of get_many or put_many
IN_FLIGHT = 256  # requests, if pipelined
VALUE = b"v" * 100
KEYS = [f"key{number:06d}".encode() for number in range(RECORDS)]
BATCHES = [KEYS[at:at + BATCH] for at in range(0, RECORDS, BATCH)]
MANIES = [KEYS[at:at + MANY] for at in range(0, RECORDS, MANY)]


def rate(seconds, step, records=1):
    """Records per second of `step`, which is called with 0, 1, 2, ..."""
    begin = time.perf_counter()
    end = begin + seconds
    steps = 0
    while time.perf_counter() < end:
        step(steps)
        steps += 1
    return steps * records / (time.perf_counter() - begin)


def expect(values):
    if any(value != VALUE for value in values):
        sys.exit("python_rates: a record is missing or wrong")


def atoll(where, case, seconds):
    import atoll as package
    db = package.connect(where)
    pairs = [[(key, VALUE) for key in keys] for keys in MANIES]
    for records in pairs:
        db.put_many("t", records)

    def batch_get(number):
        batch = db.batch()
        for key in BATCHES[number % len(BATCHES)]:
            batch.get("t", key)
        expect(batch.run())

    if case.endswith("asyncio"):
        return asyncio.run(atoll_async(where, case, seconds))
    steps = {
        "get": (lambda n: expect((db.get("t", KEYS[n % RECORDS]),)), 1),
        "get-batch": (batch_get, BATCH),
        "get-many": (lambda n: expect(db.get_many("t", MANIES[n % len(MANIES)])), MANY),
        "put": (lambda n: db.put("t", KEYS[n % RECORDS], VALUE), 1),
        "put-many": (lambda n: db.put_many("t", pairs[n % len(pairs)]), MANY)}
    return rate(seconds, *steps[case])


async def atoll_async(where, case, seconds):
    import atoll.aio
    async with await atoll.aio.connect(where) as db:
        begin = time.perf_counter()
        end = begin + seconds

        async def client(number):
            done = 0
            while time.perf_counter() < end:
                key = KEYS[(number * 37 + done) % RECORDS]
                if case.startswith("get"):
                    expect((await db.get("t", key),))
                else:
                    await db.put("t", key, VALUE)
                done += 1
            return done

        done = await asyncio.gather(*map(client, range(IN_FLIGHT)))
        return sum(done) / (time.perf_counter() - begin)


def redis(where, case, seconds):
    import redis as package
    db = package.Redis(unix_socket_path=where)
    db.mset(dict.fromkeys(KEYS, VALUE))

    def pipelined(number):
        with db.pipeline(transaction=False) as pipe:
            for key in (KEYS[(number * IN_FLIGHT + i) % RECORDS] for i in range(IN_FLIGHT)):
                if case.startswith("get"):
                    pipe.get(key)
                else:
                    pipe.set(key, VALUE)
            pipe.execute()

    steps = {
        "get": (lambda n: expect((db.get(KEYS[n % RECORDS]),)), 1),
        "get-pipelined": (pipelined, IN_FLIGHT),
        "get-batch": (lambda n: expect(db.mget(BATCHES[n % len(BATCHES)])), BATCH),
        "put": (lambda n: db.set(KEYS[n % RECORDS], VALUE), 1),
        "put-pipelined": (pipelined, IN_FLIGHT)}
    return rate(seconds, *steps[case])


def sqlite(file, case, seconds):
    import sqlite3
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA synchronous=FULL")
    get, put = "SELECT v FROM t WHERE k = ?", "INSERT OR REPLACE INTO t VALUES (?, ?)"
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE IF NOT EXISTS t (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID")
    db.execute("BEGIN")
    db.executemany(put, [(key, VALUE) for key in KEYS])
    db.execute("COMMIT")

    def batch(number):
        keys = BATCHES[number % len(BATCHES)]
        db.execute("BEGIN" if case == "get-batch" else "BEGIN IMMEDIATE")
        if case == "get-batch":
            expect(db.execute(get, (key,)).fetchone()[0] for key in keys)
        else:
            db.executemany(put, [(key, VALUE) for key in keys])
        db.execute("COMMIT")

    steps = {
        "get": (lambda n: expect(db.execute(get, (KEYS[n % RECORDS],)).fetchone()), 1),
        "get-batch": (batch, BATCH),
        "put": (lambda n: db.execute(put, (KEYS[n % RECORDS], VALUE)), 1),
        "put-batch": (batch, BATCH)}
    return rate(seconds, *steps[case])


def lmdb(folder, case, seconds):
    import lmdb as package
    db = package.open(folder, map_size=1 << 30)

    def get(number, keys):
        with db.begin(buffers=False) as txn:
            expect(txn.get(key) for key in keys(number))

    def put(number, keys):
        with db.begin(write=True) as txn:
            for key in keys(number):
                txn.put(key, VALUE)

    def one(number):
        return KEYS[number % RECORDS],

    def many(number):
        return BATCHES[number % len(BATCHES)]

    put(0, lambda _: KEYS)
    steps = {"get": (lambda n: get(n, one), 1), "get-batch": (lambda n: get(n, many), BATCH),
             "put": (lambda n: put(n, one), 1), "put-batch": (lambda n: put(n, many), BATCH)}
    return rate(seconds, *steps[case])


def main():
    systems = {"atoll": atoll, "redis": redis, "sqlite": sqlite, "lmdb": lmdb}
    if len(sys.argv) != 5 or sys.argv[1] not in systems:
        sys.exit(__doc__)
    system, where, case, seconds = sys.argv[1:]
    print(f"{systems[system](where, case, float(seconds)):.0f}")


if __name__ == "__main__":
    main()
