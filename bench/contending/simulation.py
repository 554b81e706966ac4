"""Discrete-event simulation of many workers on hot records, fed with measured costs.

A model of the commit protocol (engine/transaction) on a machine with a core for each worker:

  Record     A version, a queue lock with the mark of early locks, and one cache line.
  Line       A worker that has no valid copy fetches one, which takes `line` ns. Fetches of a
             changed line and fetches for a change follow each other. The worker that had the line
             keeps it for the first half of that time, until the request reaches it. Fetches of
             several lines overlap if they are prefetched: by a commit, which prefetches what it
             writes and verifies, and by a retry, which prefetches what the attempt before has read.
  Attempt    Early locks in universal order; the body; in contended attempts a check of the reads;
             then the commit: lock, verify, write, unlock. The first waiter polls the lock. It
             sees the release after `line` ns, and has the lock after another `line` ns.
  Abort      A back-off as in `Backoff::wait`, then the next attempt.
  Policy     `HotRecords` and `EarlyLocks`, with their constants read from the sources. `plain`
             transactions have no policy: their commits queue for every lock.

Workers never lose their CPU, and pages are neither split nor read from a device.
"""
import collections
import heapq
import itertools
import pathlib
import random
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# In ns. `access`: an operation of the body on a record; `think`: between two transactions.
Costs = collections.namedtuple("Costs", "begin access verify commit apply think line pause")

READ, WRITE, INCREMENT = range(3)  # WRITE: a read with an update; INCREMENT: an update only


def constants():
    """Returns the numeric constants of the policy."""
    found = {}
    for name in ("engine/transaction/hot_records.h", "engine/transaction/early_locks.h"):
        text = (ROOT / name).read_text(encoding="utf-8")
        found.update((key, int(value))
                     for key, value in re.findall(r"\b(k\w+|lock_from_failures) = (\d+);", text))
    return found


class Record:
    __slots__ = ("number", "version", "holder", "early", "queue", "copies", "owner", "free_at",
                 "arrivals")

    def __init__(self, number):
        self.number = number
        self.version = 0
        self.holder = None
        self.early = False
        self.queue = collections.deque()
        self.copies = set()  # workers with a copy of the line
        self.owner = None    # worker with a changed copy, or None
        self.free_at = 0.0   # when the next fetch may begin
        self.arrivals = {}   # when a copy reaches a worker that has requested one

    def is_foreign(self, worker):
        """Whether a verification fails because another worker holds the lock (R106)."""
        has_mark = self.early and not self.queue
        return self.holder is not None and self.holder is not worker and not has_mark


class Heat:
    """Aborts that count less with each commit, as HotRecords::Heat."""
    __slots__ = ("value", "cooled_at")

    def __init__(self):
        self.value = 0
        self.cooled_at = 0

    def cool(self, commits, half_life):
        halvings = (commits - self.cooled_at) // half_life
        self.value >>= min(halvings, 32)
        self.cooled_at += halvings * half_life
        return self.value

    def raise_by_one(self, commits, limits):
        self.value = min(self.cool(commits, limits["kHalfLife"]) + 1, limits["kMostHeat"])


class Simulation:
    """Workers that run one kind of transaction for `duration` ns. `draw(random)` returns one
    transaction: a list of (number of the record, kind of the access), and the number of further
    accesses, which meet no other transaction."""

    def __init__(self, draw, workers, costs, is_plain, duration, seed):
        self.draw = draw
        self.costs = costs
        self.is_plain = is_plain
        self.duration = duration
        self.counts_from = duration / 5
        self.now = 0.0
        self.order = itertools.count()
        self.events = []
        self.random = random.Random(seed)
        self.records = {}
        self.commits = 0
        self.aborts = 0
        self.latencies = []
        self.limits = constants()
        for _ in range(workers):
            worker = Worker(self)
            worker.process = worker.run()
            self.at(self.random.random() * 1000, worker.process)

    def at(self, time, process):
        heapq.heappush(self.events, (time, next(self.order), process))

    def run(self):
        while self.events:
            self.now, _, process = heapq.heappop(self.events)
            if self.now >= self.duration:
                break
            wait = next(process, None)
            # A process that waits for a lock yields None. The one that unlocks resumes it. That of
            # a prefetch has ended.
            if wait is not None:
                self.at(self.now + wait, process)
        seconds = (self.duration - self.counts_from) * 1e-9
        self.latencies.sort()
        p99 = self.latencies[len(self.latencies) * 99 // 100] if self.latencies else float("nan")
        return {"commits_per_second": self.commits / seconds,
                "aborts_per_commit": self.aborts / max(self.commits, 1), "p99_us": p99 * 1e-3}

    def record(self, number):
        record = self.records.get(number)
        if record is None:
            record = self.records[number] = Record(number)
        return record

    def fetch(self, worker, record, change):
        """Takes the time that the access needs, and moves the line to the worker."""
        if worker in record.arrivals:
            # A little later, because the time of the arrival is rounded.
            yield max(record.arrivals[worker] - self.now, 0.0) + 0.001
        if worker in record.copies and (not change or record.owner is worker):
            return
        line = self.costs.line
        begin = max(self.now, record.free_at)
        if change or record.owner is not None:
            record.free_at = begin + line
        record.arrivals[worker] = begin + line
        yield begin + line / 2 - self.now
        if change:
            record.copies.clear()
        record.owner = None
        yield line / 2
        record.arrivals.pop(worker, None)
        record.copies.add(worker)
        if change:
            record.owner = worker

    def prefetch(self, worker, record, change):
        """Begins to fetch the line. Takes no time itself."""
        if worker not in record.arrivals:
            self.at(self.now, self.fetch(worker, record, change))


class Worker:
    def __init__(self, simulation):
        self.sim = simulation
        self.process = None
        self.commits = 0
        self.failures = 0
        self.heat = Heat()
        self.hot = {}
        self.is_contended = False  # the present attempt checks its reads before it locks
        self.plan = []
        self.held = []  # early locks
        self.read_before = []  # what the attempt before has read, if it has failed

    def run(self):
        """The process of the worker. Yields the time until its next step, or None."""
        sim = self.sim
        while True:
            chosen, others = sim.draw(sim.random)
            accesses = [(sim.record(number), kind) for number, kind in chosen]
            begin = sim.now
            attempt = 0
            while True:
                if attempt:
                    yield sim.random.random() * (16 << min(attempt, 10)) * sim.costs.pause
                failed = yield from self.attempt(accesses, others)
                for record in self.held:
                    yield from self.unlock(record)
                self.held = []
                self.plan = []
                if failed is None:
                    break
                attempt += 1
                if sim.now >= sim.counts_from:
                    sim.aborts += 1
                self.learn(failed, accesses)
            self.commits += 1
            self.failures = 0
            self.read_before = []
            self.decide()
            if sim.now >= sim.counts_from:
                sim.commits += 1
                sim.latencies.append(sim.now - begin)
            yield sim.costs.think

    def attempt(self, accesses, others):
        """Runs one attempt. Returns the record because of which it failed, or None."""
        if not self.sim.is_plain:
            for record in self.read_before:
                self.sim.prefetch(self, record, False)
        for record in self.plan:
            if (yield from self.take_early(record)):
                record.early = True
                self.held.append(record)
        seen = yield from self.body(accesses, others)
        self.read_before = [record for record, _ in seen]
        writes = sorted((record for record, kind in accesses if kind != READ),
                        key=lambda record: record.number)
        if self.is_contended and writes:
            failed = yield from self.verify(seen)
            if failed is not None:
                return failed
        locked, failed = yield from self.lock_writes(writes, {record for record, _ in seen})
        if failed is None:
            yield self.sim.costs.commit
            failed = yield from self.verify(seen)
        if failed is None:
            for record in locked:
                yield from self.sim.fetch(self, record, True)
                yield self.sim.costs.apply
                record.version += 1
        for record in locked:
            yield from self.unlock(record)
        return failed

    def body(self, accesses, others):
        """Runs the operations. Returns what the transaction has read."""
        costs = self.sim.costs
        yield costs.begin
        seen = []
        each = others // max(len(accesses), 1)
        for record, kind in accesses:
            yield costs.access * (1 + each)
            if kind != INCREMENT:
                yield from self.sim.fetch(self, record, False)
                seen.append((record, record.version))
        yield costs.access * (others - each * len(accesses))
        return seen

    def verify(self, seen):
        """Returns the first record whose verification fails, or None."""
        for record, _ in seen:
            self.sim.prefetch(self, record, False)
        for record, version in seen:
            yield from self.sim.fetch(self, record, False)
            yield self.sim.costs.verify
            if record.version != version or record.is_foreign(self):
                return record
        return None

    # -- Locks

    def lock_writes(self, writes, reads):
        """Returns the locked records, and the record because of which the attempt ends, or None."""
        locked = []
        for record in writes:
            self.sim.prefetch(self, record, True)
        for record in writes:
            yield from self.sim.fetch(self, record, True)
            if record in self.held:
                self.held.remove(record)
                record.early = False
            elif record.holder is None:
                record.holder = self
            elif not self.sim.is_plain and record in reads:
                return locked, record
            else:
                # R104: releases the early locks after this one before it waits.
                for held in [held for held in self.held if held.number > record.number]:
                    self.held.remove(held)
                    yield from self.unlock(held)
                if record.holder is not None:
                    record.queue.append(self)
                    yield None
                record.holder = self
            locked.append(record)
        return locked, None

    def take_early(self, record):
        """As EarlyLocks::take. Returns whether it has the lock."""
        limits = self.sim.limits
        pauses = limits["kFirstPauses"]
        for _ in range(limits["kMostPolls"]):
            yield from self.sim.fetch(self, record, False)
            if record.holder is None:
                yield from self.sim.fetch(self, record, True)
                if record.holder is None:
                    record.holder = self
                    return True
            yield pauses * self.sim.costs.pause
            pauses = min(2 * pauses, limits["kMostPauses"])
        return False

    def unlock(self, record):
        yield from self.sim.fetch(self, record, True)
        assert record.holder is self
        record.early = False
        record.holder = None
        if record.queue:
            record.holder = record.queue.popleft()
            self.sim.at(self.sim.now + 2 * self.sim.costs.line, record.holder.process)

    # -- Policy, as HotRecords and Transaction::learn_from_failure

    def learn(self, failed, accesses):
        limits = self.sim.limits
        self.failures += 1
        self.heat.raise_by_one(self.commits, limits)
        self.hot.setdefault(failed.number, Heat()).raise_by_one(self.commits, limits)
        self.decide()
        if self.sim.is_plain or self.failures < limits["lock_from_failures"]:
            return
        hot = [record for record, _ in accesses if record.number in self.hot
               and self.hot[record.number].cool(self.commits, limits["kHalfLife"])]
        self.plan = sorted(hot, key=lambda record: record.number)[:limits["kMost"]]

    def decide(self):
        limits = self.sim.limits
        is_hot = self.heat.cool(self.commits, limits["kHalfLife"]) >= limits["kCheckFromHeat"]
        self.is_contended = not self.sim.is_plain and (self.failures > 0 or is_hot)


def simulate(draw, workers, costs, is_plain, duration, seed):
    return Simulation(draw, workers, costs, is_plain, duration, seed).run()
