#!/usr/bin/python3
"""The modules inside engine/ and shared/ include each other one way. Prints `file:line: rule` and ends with 1 on violations.

module_order.py ROOT checks the tree at ROOT; tests/checks plants violations to see it fail.
"""
import pathlib
import re
import sys

# A module includes itself and those before it. A source lies in a module, never beside them.
ORDER = {
    "shared": [
        "base", "config", "logging", "file", "message", "kv", "sync", "memory", "metrics",
        "process", "session", "network", "client", "c_client",
    ],
    "engine": [
        "hooks", "format", "log", "snapshot", "transaction", "array", "mastertree", "hash", "sequential",
        "gleaner", "compose", "install", "checkpoint", "recovery", "archive", "api",
    ],
}
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')


def check_text(path, text):
    """Yields (line, message) for each violation in the file at `path`, relative to the root."""
    top = path.parts[0]
    order = ORDER[top]
    if len(path.parts) < 3:
        yield 1, f"a source of {top}/ lies in one of its modules"
        return
    module = path.parts[1]
    if module not in order:
        yield 1, f"{top}/{module}/ has no place in the order of ops/checks/module_order.py"
        return
    for number, line in enumerate(text.splitlines(), 1):
        include = INCLUDE.match(line)
        if not include:
            continue
        target = include.group(1).split("/")
        if target[0] != top:
            continue
        if len(target) < 3 or target[1] not in order:
            yield number, f"{include.group(1)}: is in no module of {top}/"
        elif order.index(target[1]) > order.index(module):
            yield number, f"{top}/{module}/ may not include {top}/{target[1]}/, which is above it"


def check_tree(root):
    count = 0
    violations = []
    for top in ORDER:
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cpp"):
                continue
            count += 1
            path = file.relative_to(root)
            for line, message in check_text(path, file.read_text(encoding="utf-8")):
                violations.append(f"{path}:{line}: {message}")
    return count, violations


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: module_order.py ROOT")
    count, violations = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(violations + [f"{count} files, {len(violations)} violations"]))
    sys.exit(1 if violations or count == 0 else 0)


if __name__ == "__main__":
    main()
