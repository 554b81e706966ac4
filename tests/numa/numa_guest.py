#!/usr/bin/python3
"""Boots a machine with several NUMA nodes under full emulation, and checks where memory lies.

  tests/numa/numa_guest.py --bin build/release/bin              two NUMA nodes
  tests/numa/numa_guest.py --bin build/release/bin --nodes 4

The guest has Debian's kernel and an initramfs with the programs. A cluster in it has a node for
each NUMA node, in reverse order, so that no default places the memory right by accident. For each
node of the cluster, all pages of its pool, log buffers and other segments, and all of its snapshot
cache, must lie on its NUMA node. Its workers must be allowed to run there only, and most of
their accesses must be local. A second cluster runs with `memory.numa_bind = false` on the CPUs of
NUMA node 0, and must fail these checks.

Needs packages: qemu-system-x86, busybox-static, cpio, binutils. The kernel is downloaded with
apt-get into build/tools/numa, and is not installed.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ("atoll", "atoll-node", "atoll-coordinator")
KERNEL_PACKAGE = "linux-image-cloud-amd64"
CPUS_OF_A_NODE = 2
MEMORY_OF_A_NODE_MIB = 1024
CACHE_MIB = 34  # a size that no other mapping has
POOL_MIB = 64
PATIENCE_S = 1800
SEGMENT = re.compile(r"file=\S*memfd:atoll\.node(\d+)\.(\w+)")
PAGES = re.compile(r"\bN(\d+)=(\d+)")
CHECKED = ("pool", "shared", "local", "metrics", "exchange")
MUST_HAVE_PAGES = ("pool", "shared", "local", "snapshot cache")


class GuestError(Exception):
    """What the user is told."""


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, check=False, **more)
    if done.returncode != 0:
        raise GuestError(f"{' '.join(map(str, command))}: {done.stderr.decode()[-500:]}")
    return done.stdout


def kernel():
    """Returns the path of the guest's kernel. Downloads it the first time."""
    folder = ROOT / "build/tools/numa"
    found = sorted(folder.glob("boot/vmlinuz-*"))
    if found:
        return found[-1]
    folder.mkdir(parents=True, exist_ok=True)
    depends = run("apt-cache", "depends", KERNEL_PACKAGE).decode()
    package = re.search(r"Depends: (linux-image-\S+)", depends)
    if package is None:
        raise GuestError(f"{KERNEL_PACKAGE}: apt-cache knows no kernel of it: run apt-get update")
    run("apt-get", "download", package[1], cwd=folder)
    for archive in folder.glob("*.deb"):
        run("dpkg-deb", "-x", archive, folder)
        archive.unlink()
    return sorted(folder.glob("boot/vmlinuz-*"))[-1]


def libraries(program):
    """Returns the paths of the libraries of a program, and of its loader."""
    return sorted(set(re.findall(r"(/\S+) \(0x", run("ldd", program).decode())))


def config(nodes):
    """The cluster's node k is on the NUMA node nodes - 1 - k."""
    text = (f'[cluster]\nname = "guest"\ndata_dir = "/data/d"\nlog_dir = "/data/l"\n'
            f'run_dir = "/tmp/guest"\nhang_limit = "30min"\n'
            f'[memory]\nvolatile_pool = "{POOL_MIB}MiB"\nsnapshot_cache = "{CACHE_MIB}MiB"\n'
            f'log_buffer = "2MiB"\nlend_pool = false\n[durability]\nlog_file_size = "32MiB"\n'
            f'ballast_files = 0\n[gleaner]\ndisk_reserve = "16MiB"\n[metrics]\nenabled = false\n'
            f'[status_page]\nenabled = false\n')
    return text + "".join(f"[[node]]\nworkers = 2\nnuma_node = {nodes - 1 - node}\n"
                          for node in range(nodes))


def initramfs(binaries, nodes, folder):
    root = folder / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    shutil.copy(HERE / "guest_init.sh", root / "init")
    (root / "init").chmod(0o755)
    (root / "guest.toml").write_text(config(nodes), encoding="utf-8")
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("root:x:0:0:root:/tmp:/bin/sh\n", encoding="utf-8")
    (root / "dev").mkdir()
    for name in PROGRAMS:
        run("strip", "-o", root / "bin" / name, binaries / name)
        for library in libraries(binaries / name):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
    names = "\n".join(str(path.relative_to(root)) for path in root.rglob("*"))
    archive = folder / "initramfs"
    archive.write_bytes(run("cpio", "-o", "-H", "newc", "--quiet", input=names.encode(), cwd=root))
    return archive


def boot(binaries, nodes, folder, verbose):
    """Returns what the guest sends."""
    output = folder / "report"
    command = ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi",
               "-cpu", "max", "-smp", str(nodes * CPUS_OF_A_NODE),
               "-m", f"{nodes * MEMORY_OF_A_NODE_MIB}M", "-nographic", "-no-reboot",
               "-net", "none", "-monitor", "none", "-kernel", str(kernel()),
               "-initrd", str(initramfs(binaries, nodes, folder)), "-append",
               "console=ttyS0 quiet panic=-1 numa_balancing=disable",
               "-serial", "mon:stdio" if verbose else f"file:{folder / 'console'}",
               "-serial", f"file:{output}"]
    if verbose:
        command.remove("none")  # of -monitor, which the serial port then has
        command.remove("-monitor")
    for node in range(nodes):
        first = node * CPUS_OF_A_NODE
        command += ["-object", f"memory-backend-ram,id=m{node},size={MEMORY_OF_A_NODE_MIB}M",
                    "-numa", f"node,nodeid={node},memdev=m{node},"
                             f"cpus={first}-{first + CPUS_OF_A_NODE - 1}"]
    try:
        subprocess.run(command, timeout=PATIENCE_S, check=True, stdin=subprocess.DEVNULL)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        console = folder / "console"
        tail = console.read_text(errors="replace")[-2000:] if console.exists() else ""
        raise GuestError(f"the guest has not ended in order: {error}\n{tail}") from error
    return output.read_text(encoding="utf-8", errors="replace").replace("\r", "")


def sections(text):
    """Returns {run: {heading: text}} of the report."""
    found, current = {}, {}
    for part in text.split("@@ ")[1:]:
        heading, _, body = part.partition("\n")
        if heading.startswith("failed"):
            raise GuestError(f"a command in the guest {heading}:\n{body}")
        if heading.startswith("run "):
            current = found.setdefault(heading[4:], {})
        else:
            current[heading] = body
    return found


def cache_addresses(maps):
    """Returns the begins of the anonymous mappings of the snapshot cache's size."""
    found = []
    for line in maps.splitlines():
        begin, _, rest = line.partition("-")
        fields = rest.split()
        if len(fields) == 5 and int(fields[0], 16) - int(begin, 16) == CACHE_MIB << 20:
            found.append(int(begin, 16))
    return found


def pages_by_place(sections_of_run, node_of_pid):
    """Returns {(node of the cluster, part): {NUMA node: pages}}, as all node processes see it."""
    found = collections.defaultdict(collections.Counter)
    for pid, node in node_of_pid.items():
        caches = cache_addresses(sections_of_run[f"maps {pid}"])
        for line in sections_of_run[f"numa_maps {pid}"].splitlines():
            pages = {int(numa): int(count) for numa, count in PAGES.findall(line)}
            if segment := SEGMENT.search(line):
                found[int(segment[1]), segment[2]].update(pages)
            elif line and int(line.split()[0], 16) in caches:
                found[node, "snapshot cache"].update(pages)
    return found


def check(of_run, nodes):
    """Returns the violations of a run."""
    status = json.loads(of_run["status"])
    report = json.loads(of_run["report"])
    node_of_pid = {node["pid"]: node["node"] for node in status["nodes"]}
    wrong = []
    if len(node_of_pid) != nodes:
        wrong.append(f"status shows {len(node_of_pid)} nodes")
    found = pages_by_place(of_run, node_of_pid)
    for node in range(nodes):
        numa = nodes - 1 - node
        for part in (*CHECKED, "snapshot cache"):
            pages = found.get((node, part), {})
            elsewhere = {at: count for at, count in pages.items() if at != numa and count}
            print(f"  node {node}, NUMA node {numa}, {part}: {pages.get(numa, 0)} pages there, "
                  f"{sum(elsewhere.values())} elsewhere")
            if elsewhere:
                wrong.append(f"{part} of node {node}: {elsewhere} pages outside NUMA node {numa}")
            if part in MUST_HAVE_PAGES and not pages.get(numa, 0):
                wrong.append(f"{part} of node {node} has no pages on NUMA node {numa}")
    for entry in status["nodes"]:
        if entry["numa"] != nodes - 1 - entry["node"]:
            wrong.append(f"status: node {entry['node']} has NUMA node {entry['numa']}")
    for pid, node in node_of_pid.items():
        first = (nodes - 1 - node) * CPUS_OF_A_NODE
        allowed = f"{first}-{first + CPUS_OF_A_NODE - 1}"
        workers = [line.split(":") for line in of_run[f"tasks {pid}"].splitlines()
                   if re.match(r"worker\d*:", line)]
        if len(workers) != 2:
            wrong.append(f"node {node} has {len(workers)} threads of workers")
        wrong += [f"{name} of node {node} may run on CPUs {cpus}, not on {allowed}"
                  for name, cpus in workers if cpus != allowed]
    for entry in report["runs"][0]["per_node"]:
        # The root of the tree is on one node only, so a few accesses are remote.
        if entry["remote_accesses"] >= entry["local_accesses"]:
            wrong.append(f"node {entry['node']} has {entry['remote_accesses']} remote accesses and "
                         f"{entry['local_accesses']} local ones")
    return wrong


def verdict(found, nodes):
    """Returns the number of wrong results, and prints them."""
    failures = 0
    for name in ("bound", "unbound"):
        if name not in found:
            raise GuestError(f"the guest has not measured the cluster \"{name}\"")
        print(f"{name}:")
        wrong = check(found[name], nodes)
        for violation in wrong:
            print(f"  {violation}")
        if name == "bound" and wrong:
            failures += 1
        if name == "unbound" and not any("outside NUMA node" in each for each in wrong):
            print("  without binding, all pages are on their nodes: the check finds nothing")
            failures += 1
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", required=True, metavar="DIR", help="folder of the programs")
    parser.add_argument("--nodes", type=int, default=2, choices=(2, 4), help="[%(default)s]")
    parser.add_argument("--verbose", action="store_true", help="show the guest's console")
    options = parser.parse_args()
    binaries = pathlib.Path(options.bin).resolve()
    try:
        for program in ("qemu-system-x86_64", "busybox", "cpio", "strip"):
            if shutil.which(program) is None:
                raise GuestError(f"{program}: not installed: apt-get install qemu-system-x86 "
                                 "busybox-static cpio binutils")
        with tempfile.TemporaryDirectory(prefix="atoll-numa-") as folder:
            text = boot(binaries, options.nodes, pathlib.Path(folder), options.verbose)
        failures = verdict(sections(text), options.nodes)
    except GuestError as error:
        print(f"numa_guest: {error}", file=sys.stderr)
        return 1
    print("FAILED" if failures else "all pages are on their nodes, and the check fails without "
                                    "binding")
    return 1 if failures else 0


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    sys.exit(main())
