"""Which phase of a transaction an address belongs to.

The compiler inlines across the whole path of a transaction, so that the name of the function an
address is in says little. What counts is the chain of calls that were inlined there: the innermost
one that a rule names decides.
"""
import re
import subprocess

from .cluster import ProfileError

# (phase, file, function), from narrow rules to wide ones. A rule fits a call if both expressions
# are found in its names. An address belongs to the first rule that fits its innermost call. If no
# rule fits, the search continues with the caller.
RULES = [(phase, re.compile(file), re.compile(function)) for phase, file, function in [
    ("commit: lock", r"engine/transaction/(commit|sort_writes)",
     r"lock|sort|track_writes|still_fits|take_over_early|has_read"),
    ("commit: verify", r"engine/transaction/commit",
     r"verify|is_as_read|probe|follow|is_ours|is_own_list|is_still_absent|check_reads"),
    ("commit: apply", r"engine/transaction/commit|engine/sequential/append", r""),
    ("commit: apply", r"engine/transaction/write_set", r"\badd(_increment)?\b"),
    ("commit: lock", r"shared/sync/mcs", r""),
    ("log", r"engine/(log/|format/log_|transaction/write_set)", r""),
    ("access sets", r"engine/transaction/(access_sets|write_index)", r""),
    ("index: insert", r"engine/mastertree/(reserve|restructure|build|adopt|interior_copy)", r""),
    ("index: upkeep", r"engine/mastertree/(maintain|merge)", r""),
    ("emulated NVRAM", r"shared/base/tick_clock", r"spin"),
    ("files", r"shared/file/", r""),
    ("snapshot jobs", r"engine/(gleaner|compose|install)/", r""),
    ("snapshot cache", r"engine/snapshot/", r""),
    ("record access", r"engine/mastertree/cursor", r"::get(_slowly)?$"),
    ("index: search", r"engine/mastertree/(descent|prefetch|page|cursor|track)|"
     r"engine/format/(slot_search|tree_key|tree_page)", r""),
    ("index: search", r"engine/(array/|format/array_)",
     r"find|each_place|place_of|top_page|leaf_of|prefetch"),
    ("record access", r"engine/((array|mastertree|sequential)/|format/(array|tree|sequential)_)|"
     r"optimistic_read|racy_copy", r""),
    ("access sets", r"engine/transaction/transaction", r"register|find_write|observe"),
    ("record access", r"engine/transaction/transaction\.", r"get|read|write|update|check"),
    ("memory", r"engine/transaction/worker_context", r"page|recycle|take|retire"),
    ("memory", r"shared/memory/", r"take|give|recycle|retire|refill|ring"),
    ("driver: run", r"engine/transaction/run|soc/|bench/(job|common)/", r""),
    ("driver: inputs", r"bench/\w+/(inputs|random|text|generator|zipfian|keyspace)", r""),
    ("driver: procedures", r"bench/", r""),
]]
ORDER = ["index: search", "index: insert", "index: upkeep", "record access", "access sets",
         "commit: lock", "commit: verify", "commit: apply", "log", "snapshot cache", "snapshot jobs", "files",
         "emulated NVRAM", "memory", "driver: procedures",
         "driver: inputs", "driver: run", "copying (libc)", "clock", "kernel", "other"]


def phase_of(chain):
    for function, file in chain:
        for phase, file_rule, function_rule in RULES:
            if file_rule.search(file) and function_rule.search(function):
                return phase, function
    return "other", chain[-1][0] if chain else "?"


def phase_of_library(path):
    name = path.rsplit("/", 1)[-1]
    if "kernel" in path:
        return "kernel"
    if "vdso" in path:
        return "clock"
    return "copying (libc)" if name.startswith("libc.so") or name.startswith("libc-") else "other"


def inlined_chains(binary, addresses):
    """{address: [(function, file), innermost first]}"""
    addresses = sorted(addresses)
    run = subprocess.run(["addr2line", "-e", str(binary), "-a", "-f", "-i", "-C"],
                         input="".join(f"{address:#x}\n" for address in addresses),
                         capture_output=True, text=True)
    if run.returncode != 0:
        raise ProfileError("addr2line: " + run.stderr.strip())
    chains, lines, at = {}, run.stdout.splitlines(), 0
    while at < len(lines):
        address, at, chain = int(lines[at], 16), at + 1, []
        while at < len(lines) and not lines[at].startswith("0x"):
            name = lines[at].replace("(anonymous namespace)::", "").split("(")[0]
            chain.append((name, lines[at + 1].split(":")[0]))
            at += 2
        chains[address] = chain
    return chains


def sum_up(costs, binary):
    """{phase: {"cost": [...], "functions": {name: [...]}}} of {(object, address): [...]}."""
    own = {key for key in costs if key[0].endswith("/atoll-node") and key[1] is not None}
    chains = inlined_chains(binary, {address for _, address in own})
    table = {}
    for key, cost in costs.items():
        if key in own:
            phase, function = phase_of(chains.get(key[1], []))
        else:
            phase, function = phase_of_library(key[0]), key[0].rsplit("/", 1)[-1]
        entry = table.setdefault(phase, {"cost": [0] * len(cost), "functions": {}})
        of_function = entry["functions"].setdefault(function, [0] * len(cost))
        for column, value in enumerate(cost):
            entry["cost"][column] += value
            of_function[column] += value
    return table
