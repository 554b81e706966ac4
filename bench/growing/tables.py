"""The measurements of bench/growth. Each returns titles and rows of one table."""
import time

MIB = 1 << 20
RECORDS_PER_PAGE = 32  # roughly, for records of 100 bytes
# Only the measurement takes snapshots. The pools hold all data.
NO_SNAPSHOTS = '[gleaner]\ninterval = "24h"\nlog_volume = "1TiB"\npacing = false\n'


def pools(records):
    """Pools for `records` records on two nodes, and for the pages that are copied up."""
    return f'[memory]\nvolatile_pool = "{256 + records * 500 // 2 // MIB // 2 * 2}MiB"\n'


def snapshots(make, sizes, say):
    """Cost of a snapshot against changed pages and size of the database (phases: CPU in ms)."""
    rows = []
    for records in sizes:
        with make(NO_SNAPSHOTS + pools(records)) as cluster:
            say(f"{records:,} records")
            cluster.create("rows")
            cluster.change("growth.fill", "rows", records)
            first = cluster.snapshot()
            memory = cluster.own_memory()
            rows.append(row(records, "all, new", first, memory))
            for percent in (1, 10, 100):
                cluster.change("growth.touch", "rows", records, RECORDS_PER_PAGE * 100 // percent)
                rows.append(row(records, f"{percent} %", cluster.snapshot(), cluster.own_memory()))
    return ["records", "changed pages", "log records", "pages written", "seconds",
            "capture", "map to sort", "merge and compose", "install", "µs per page written",
            "live MiB", "coordinator MiB", "node MiB"], rows


def row(records, changed, cost, memory):
    cpu = cost["cpu"]
    parts = [cpu["capture"], cpu["map"] + cpu["exchange"] + cpu["sort"],
             cpu["merge"] + cpu["compose"] + cpu["finish"], cpu["install"]]
    return [f"{records:,}", changed, f"{cost['records']:,.0f}", f"{cost['pages']:,.0f}",
            f"{cost['seconds']:.2f}", *[f"{part * 1e3:,.0f}" for part in parts],
            f"{sum(parts) * 1e6 / max(cost['pages'], 1):.1f}", f"{cost['live'] / MIB:,.0f}",
            f"{memory['coordinator'] / MIB:.0f}", f"{memory['node'] / MIB:.0f}"]


def recoveries(make, log_mib, say):
    """Time and memory of a recovery against the log since the newest snapshot."""
    rows = []
    for wanted in log_mib:
        records = min(1_000_000, 4000 * wanted)
        with make(NO_SNAPSHOTS + pools(2 * records)) as cluster:
            say(f"{wanted} MiB of log")
            cluster.create("rows")
            cluster.change("growth.fill", "rows", records)
            cluster.snapshot()
            begin = log_bytes(cluster)
            while (log := log_bytes(cluster) - begin) < wanted * MIB:
                cluster.change("growth.touch", "rows", records)
            cluster.kill()
            begin = time.monotonic()
            cluster.up()
            seconds = time.monotonic() - begin
            cluster.call("growth.touch", "rows 0 1 1")
            memory, descriptors = cluster.own_memory(), cluster.descriptors()
            rows.append([f"{log / MIB:,.0f}", f"{seconds:.2f}", f"{log / MIB / seconds:,.0f}",
                         f"{memory['coordinator'] / MIB:.0f}", f"{memory['node'] / MIB:.0f}",
                         f"{descriptors['node']}"])
    return ["MiB of log", "seconds to ready", "MiB/s", "coordinator MiB", "node MiB",
            "descriptors of a node"], rows


def log_bytes(cluster):
    return cluster.metric("atoll_log_written_bytes_total", cluster.metrics())


def counts(make, shapes, say):
    """Files, descriptors and syncs against nodes, loggers, storages and snapshots."""
    rows = []
    for nodes, loggers, storages, snapshot_count in shapes:
        with make(NO_SNAPSHOTS + pools(100_000), nodes=nodes, loggers=loggers) as cluster:
            say(f"{nodes} nodes, {loggers} loggers each, {storages} storages, "
                f"{snapshot_count} snapshots")
            for number in range(storages):
                cluster.create(f"s{number}")
            for _ in range(snapshot_count):
                for number in range(storages):
                    cluster.call("growth.fill", f"s{number} 0 100 1")
                cluster.snapshot()
            cluster.call("growth.fill", "s0 0 100 1")
            syncs = -batches(cluster)
            time.sleep(5)
            syncs += batches(cluster)
            found = cluster.descriptors()
            rows.append([nodes, loggers, storages, snapshot_count, cluster.files(),
                         found["coordinator"], found["node"], f"{syncs / 5:.0f}"])
    return ["nodes", "loggers of a node", "storages", "snapshots", "files",
            "descriptors of the coordinator", "descriptors of a node",
            "log batches/s when idle"], rows


def batches(cluster):
    return cluster.metric("atoll_logger_batches_total", cluster.metrics())
