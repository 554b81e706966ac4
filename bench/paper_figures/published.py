"""Figures that [FOEDUS15] and [SILOR14] publish in text and tables. Their plots give no numbers."""

TITLES = {
    "figure7": "TPC-C in memory, with remote transactions ([FOEDUS15] figure 7)",
    "table2": "TPC-C in memory, from one worker to many ([FOEDUS15] table 2)",
    "figure8": "TPC-C on emulated NVRAM, by latency ([FOEDUS15] figure 8)",
    "table3": "Mapper, reducer and logger ([FOEDUS15] table 3)",
    "figure9": "Where the time goes in TPC-C ([FOEDUS15] figure 9)",
    "figure10": "Order-status with many lines, hot and cold ([FOEDUS15] figure 10)",
    "figure11": "Where the time goes in order-status ([FOEDUS15] figure 11)",
    "silor1": "YCSB with checkpoints, with a log, and in memory ([SILOR14] figure 1)",
    "silor2": "YCSB in memory with fewer workers ([SILOR14] figure 2)",
    "silor3": "YCSB with checkpoints and more workers than cores ([SILOR14] figure 3)",
    "silor4": "Syncs of a checkpoint ([SILOR14] figure 4)",
    "silor5": "TPC-C with checkpoints, with a log, and in memory ([SILOR14] figure 5)",
    "silor_recovery": "Recovery from a checkpoint and the log ([SILOR14] section 6.4)",
    "silor_compare": "Snapshots gleaned from the log, and checkpoints",
    "silor_whole": "Small updates that are logged as parts, or as whole versions",
    "silor_period": "Throughput and recovery by the interval of checkpoints",
}

# Thousand transactions per second of figures 1 and 5.
SILOR_RATES = {"silor1": {"MemSilo": 10830.0, "LogSilo": 9010.0, "SiloR": 8760.0},
               "silor5": {"MemSilo": 592.0, "LogSilo": 575.0, "SiloR": 548.0}}
# Mean latency of figures 1 and 5 in ms, as far as the text has it.
SILOR_LATENCIES = {"silor1": {"SiloR": 90.0}, "silor5": {"SiloR": 110.0, "LogSilo": 97.0}}
# MB/s of all 4 devices in section 6.2, which has 298 MB/s for each.
SILOR_WRITTEN_MB = {"silor1": {"SiloR": 4 * 298.0}, "silor5": {}}
# Least throughput of SiloR over that of MemSilo, at equal workers. The paper has 8.76 of 9.77
# million/s with 28 workers each on YCSB.
SILOR_MUST_HOLD = {"silor1": 0.90, "silor5": 0.93}
# (workers, thousand transactions per second), and for SiloR the mean latency in ms, of YCSB in
# figures 2 and 3. The machine has 32 cores.
SILOR_WORKERS = {"MemSilo": [(32, 10830.0), (28, 9770.0)],
                 "SiloR": [(28, 8760.0, 90.0), (32, 9140.0, 153.0)]}
# (workload, GB of checkpoint and log, seconds) of section 6.4.
SILOR_RECOVERY = [("YCSB", 100.0, 106), ("TPC-C", 195.7, 211)]

# (server, sockets, cores, thousand transactions per second) of table 2, with the log.
SCALE_UP = [("HP DL580", 4, 60, 3659), ("HP DragonHawk", 16, 240, 13897)]

# Million log records per second of one instance, and the standard deviation, of table 3.
PARTS = {"mapper": (3.39, 0.13), "reducer": (3.89, 0.25), "logger": (12.2, 1.3)}

# Percent of the processor time, of the text of sections 9.4 and A.
PROFILE = {"figure9": {"lock": (25.5, 15.2), "verify": (1.8, 0.6)},
           "figure11": {"verify": (5.0, 0.5)}}

NOTES = {
    "figure7": [
        "The paper has 16 sockets with 12 workers each. Here all workers share one socket, unless "
        "the machine line says otherwise, so remote records cost no other socket's memory.",
        "The paper prints one number of this figure: 13,897 thousand/s at remote ratio 1 with the "
        "log (table 2).",
        "As in the paper, the ratio counts order lines, and 15 times as many percent of payments "
        "are remote, at most 100 %.",
    ],
    "table2": [
        "Per-core figures compare, except for the processors: the paper has a Xeon E7-4890 v2 at "
        "2.8 GHz, and 12 of 15 cores of a socket have a worker. Here the workers, loggers and "
        "the log gleaner share the cores.",
    ],
    "figure8": [
        "As in the paper, files are in memory, and each read and write spins on the time-stamp "
        "counter. A read takes the latency for each page of 4 KiB, a write once.",
        "The error is that of the mean delay, for each line. It has the time in which the kernel "
        "runs another thread on the core of a waiting one.",
        "The paper's FOEDUS-NoSC has no snapshot cache. Atoll cannot run without one, so the line "
        "has the smallest cache, 2 MiB per node, and lends it no pages of the pool.",
        "The paper measures on 192 workers, which share no core with other threads. Here a delay "
        "of a logger or of a snapshot job also takes time from workers.",
    ],
    "table3": [
        "Rates are per instance, as in the paper, and per second of processor time. Mapper and "
        "reducer wait for each other here, because one of each runs.",
        "The records are those of TPC-C in both systems. Their sizes differ.",
    ],
    "figure9": [
        "The paper's groups are not defined in its text. Here an address counts by the innermost "
        "inlined function that a rule of `bench/profiling/phases.py` names.",
        "The paper's share of locks has the waiting for conflicting locks of 192 workers. With few "
        "workers there is hardly any.",
    ],
    "figure10": [
        "The paper has 0.5 TB on 16 sockets, and its cold run gains most (70 %) because the cache "
        "is local memory. On one socket only the cheaper reads remain.",
        "Hot: all volatile pages are kept. Cold: all data are in a snapshot, and the cache holds "
        "them all.",
    ],
    "figure11": [
        "The groups are those of figure 9, and the runs those of figure 10 at the largest size.",
    ],
    "silor1": [
        "All systems have the same number of workers. The paper's MemSilo has 32, and the others "
        "28 on 32 cores.",
        "MemSilo has no log. LogSilo has a log and no checkpoints. `gleaned` has a log and "
        "snapshots. The columns count the checkpoints or snapshots that ended while transactions "
        "were measured, and the time in which one was being taken.",
        "Latency is until the commit is durable, and without a log until the commit. The latency "
        "of the plot is the mean time from the end of an epoch until its commits were durable, in "
        "windows of 0.4 s. Grey: a checkpoint or snapshot was being taken.",
        "The paper has 400 million records, 4 devices, and epochs of 40 ms. Its latency is the "
        "mean of the transactions that write.",
        "MB/s: written to logs, checkpoints, snapshots and sorted runs, on all devices, while "
        "transactions were measured. The paper has 298 MB/s on each of its devices.",
    ],
    "silor2": [
        "About an eighth of the workers is missing, as in the paper, but at least one. The paper's "
        "SiloR has these fewer workers too, so that its loggers have cores.",
        "With one worker per node, a whole node is missing instead. Then the fewer workers also "
        "share their data with fewer nodes.",
    ],
    "silor3": [
        "The paper's SiloR has 28 workers on 32 cores, and then 32, so that loggers and "
        "checkpointers have no core of their own. By default, our first line has fewer workers "
        "than cores, as those of figure 2. The second has as many, and the others twice as many.",
        "`node.running_workers` lets only some of the workers run at the same time: half of them "
        "in our third line, and all in the last one. The paper has no such limit.",
        "A window is 0.4 s long. Grey: a checkpoint was being taken. The latency of the plot is "
        "the time from the end of an epoch until its commits were durable.",
    ],
    "silor4": [
        "The epoch latency is the mean time from the end of an epoch until its commits were "
        "durable, in a window of 0.4 s. A commit waits half an epoch in addition.",
        "Files are written with direct I/O where the file system allows it, so there are hardly "
        "any dirty pages for one large sync. The paper's files go through the page cache. So (a) "
        "and (c) are checked only if the file system refuses direct I/O, with a tolerance of 10 %.",
        "Grey: a checkpoint was being taken.",
    ],
    "silor_compare": [
        "Both schemes have the same pools. Latency is until the commit is durable.",
        "Both intervals are the same number of seconds, and mean different things. "
        "`durability.checkpoint_interval` counts from the end of a checkpoint to the begin of the "
        "next one. `gleaner.interval` counts from begin to begin.",
        "A checkpoint is taken as fast as possible. A snapshot is paced: it may take 70 % of its "
        "interval if no CPU is idle. Two columns have the number of checkpoints or snapshots that "
        "ended while transactions were measured, and the share of the time in which one was being "
        "taken.",
        "Pages in memory: the most at one time, of all pools and snapshot caches. Bytes written: "
        "of log, checkpoints, snapshots and sorted runs, while transactions ran.",
        "Recovery: from the start of the processes after SIGKILL until the cluster runs, the "
        "median of at most three. Transactions have run for one interval since the only checkpoint "
        "or snapshot. All data are verified afterwards. A cluster with snapshots then has its data "
        "on the device, and reads them into memory when they are used.",
    ],
    "silor_whole": [
        "Each update changes 16 bytes. In the first line of a size it is logged as such, and in the "
        "second one as the whole record. By default, records of up to 128 bytes are logged whole, "
        "and longer ones as parts (R107).",
        "There is a log and no checkpoint while throughput is measured. The bytes per transaction "
        "are those of the log; 30 % of the transactions are updates.",
        "The recovery loads a checkpoint of the load, and replays the log of a run after it. All "
        "data are verified afterwards. The last column divides its time by the number of "
        "transactions in the log, because the faster system has more of them.",
    ],
    "silor_period": [
        "The interval is `durability.checkpoint_interval`: from the end of a checkpoint to the "
        "begin of the next one. The workload is YCSB, 70 % reads, 30 % writes.",
        "Recovery: from the start of the processes after SIGKILL until the cluster runs, once, on a "
        "cluster of its own. Transactions have run for one interval since the only checkpoint. All "
        "data are verified afterwards.",
        "[SILOR14] has no figure for this.",
    ],
    "silor5": [
        "As for YCSB. The database grows during the run, as in the paper. The paper has the mean "
        "latency, and no MB/s.",
    ],
    "silor_recovery": [
        "All processes are killed with SIGKILL. The checkpoint was taken before the changes, so "
        "the log has all of them. All data are verified afterwards. Without a name, the workload "
        "is YCSB.",
        "The time is that of the replay, without the launch of the processes. Each file is "
        "read by one node.",
        "A log file has 8 MiB, because their order shows only if there are many. Their number is "
        "that of all nodes, with the files that loggers have allocated beforehand.",
        "Oldest file first: the same log again, with `durability.replay_order = \"oldest_first\"`.",
    ],
}
