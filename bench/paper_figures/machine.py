"""Default sizes of the experiments on this machine, and what its file systems allow."""
import dataclasses
import os
import pathlib
import tempfile

from paper_figures.benches import MIB


@dataclasses.dataclass(frozen=True)
class Sizes:
    nodes: int
    workers: int  # of each node
    pool_mib: int


def allows_direct_io(folder):
    """Returns whether files in the folder can be opened for direct I/O."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        try:
            os.close(os.open(file.name, os.O_RDWR | os.O_DIRECT))
        except OSError:
            return False
        return True


def defaults():
    """A node per NUMA node, at least two, and a worker per core."""
    numa_nodes = len(list(pathlib.Path("/sys/devices/system/node").glob("node[0-9]*")))
    cores = len(os.sched_getaffinity(0))
    nodes = max(2, numa_nodes)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # Pools, log and snapshots are in memory together, and the log is as large as the pool.
    return Sizes(nodes, max(1, cores // nodes), max(1024, memory // 5 // MIB))
