"""Memory control groups, which limit the memory of a program and of the files that it reads."""
import contextlib
import os
import pathlib
import time

from larger_than_memory.cases import MemoryBenchError

MOUNT = pathlib.Path("/sys/fs/cgroup")
REMOVE_PATIENCE_S = 10


def places():
    """Yields (folder for new groups, name of the file with the limit), the best place first."""
    groups = pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):  # version 1
            for folder in (MOUNT / "memory" / path.lstrip("/"), MOUNT / "memory"):
                yield folder, "memory.limit_in_bytes"
        elif controllers == "":
            # Version 2 has no groups with a limit inside a group with processes. So the new group
            # is beside the group of this process.
            for folder in ((MOUNT / path.lstrip("/")).parent, MOUNT):
                if folder == MOUNT or MOUNT in folder.parents:
                    yield folder, "memory.max"


@contextlib.contextmanager
def memory_group(limit):
    """Makes a group whose memory has `limit` bytes, and removes it at the end. Its processes must
    have ended by then. The value is a function that makes a command run in the group."""
    group = make(limit)
    try:
        yield lambda command: ["sh", "-c", 'echo $$ >"$0" && exec "$@"',
                               str(group / "cgroup.procs"), *command]
    finally:
        remove(group)


def make(limit):
    reasons = []
    for folder, limit_file in places():
        group = folder / f"atoll-memory-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            reasons.append(f"{group}: {error.strerror}")
            continue
        try:
            # A plain write would make a file if the file system were another one.
            with open(os.open(group / limit_file, os.O_WRONLY), "w", encoding="utf-8") as file:
                file.write(str(limit))
            return group
        except BaseException as error:
            remove(group)
            if not isinstance(error, OSError):
                raise
            reasons.append(f"{group / limit_file}: {error.strerror}")
    raise MemoryBenchError("no memory control group can be made: run as root, or leave out lmdb "
                           "(--systems): "
                           + ("; ".join(dict.fromkeys(reasons)) or "the kernel has none"))


def remove(group):
    # The kernel refuses for a moment after the last process has ended.
    end = time.monotonic() + REMOVE_PATIENCE_S
    while True:
        try:
            return group.rmdir()
        except OSError as error:
            if time.monotonic() > end:
                raise MemoryBenchError(f"{group}: cannot be removed: {error.strerror}") from error
            time.sleep(0.05)
