"""The cases that bench/memory measures, and the sizes that all systems share."""
import dataclasses

MIXES = {"read": "100:0:0:0:0", "95:5": "95:5:0:0:0", "50:50": "50:50:0:0:0",
         "insert": "0:0:100:0:0", "scan": "0:0:0:100:0"}
DISTRIBUTIONS = ("uniform", "zipfian")
NEW_KEYS = "new"  # inserts choose keys that do not exist, so no distribution applies
KEY_BYTES = 8
VALUE_BYTES = 100  # as kRecordBytes in record.h
STORED_RECORD_BYTES = 140  # of a record with its key and slot in a page of a snapshot
STORED_WAREHOUSE_BYTES = 95_000_000  # of a loaded warehouse of TPC-C in such pages, roughly
NODES = 2  # as kNodes in record.h
# Seconds before the measured ones. A load leaves cold caches, and changed pages that a snapshot
# or a compaction still writes.
WARMUP_S = 5
SMOKE_WARMUP_S = 1
MIB = 1 << 20
# What `bench/memory --must-hold` measures. Mixes that only read change no page, so nothing stalls
# them. One run of all rows takes about 25 minutes.
MUST_HOLD = {"ratios": (1, 4, 10), "mixes": ("95:5", "50:50", "insert"), "systems": ("atoll",),
             "repeat": 1}


class MemoryBenchError(Exception):
    """An error that the script prints."""


@dataclasses.dataclass(frozen=True)
class Case:
    ratio: float       # data in times the memory
    mix: str           # of MIXES, or TPC-C
    distribution: str  # of DISTRIBUTIONS, NEW_KEYS, or empty for TPC-C
    count: int         # records, or warehouses of TPC-C

    @property
    def is_tpcc(self):
        return self.mix == "TPC-C"

    @property
    def changing_share(self):
        """Share of the operations that change a record."""
        _, update, insert, _, both = (int(percent) for percent in MIXES[self.mix].split(":"))
        return (update + insert + both) / 100

    def changed_bytes(self, operations):
        """Returns the bytes of the keys and records that so many operations change."""
        return operations * self.changing_share * (KEY_BYTES + VALUE_BYTES)


def ycsb_cases(ratio, memory, mixes, distributions):
    records = int(ratio * memory / STORED_RECORD_BYTES)
    return [Case(ratio, mix, distribution, records) for mix in mixes
            for distribution in ([NEW_KEYS] if mix == "insert" else distributions)]


def tpcc_case(ratio, memory):
    """The ratio decides the number of warehouses, and the memory is that of all cases.

    With a fixed number of warehouses, the memory would have to follow the ratio. Then a small ratio
    would need a machine of many times the memory. At a large one, pools would be too small for the
    records that TPC-C adds each second. The price: fewer warehouses have more conflicts.
    The case has the ratio of whole warehouses.
    """
    warehouses = max(NODES, round(ratio * memory / STORED_WAREHOUSE_BYTES))
    return Case(warehouses * STORED_WAREHOUSE_BYTES / memory, "TPC-C", "", warehouses)
