"""The tables as text and as JSON."""
import json
import platform

from .phases import ORDER

TITLES = {
    "time": "time of the node processes by phase (perf, cpu-clock)",
    "cache": "instructions, cache misses and mispredicts by phase (callgrind's models)",
}


def show(tool, columns, measured, options):
    table, commits = measured["phases"], measured["commits"]
    divisor = max(commits, 1)
    total = [sum(entry["cost"][column] for entry in table.values())
             for column in range(len(columns))]
    print(f"\n{TITLES[tool]}\n`atoll bench {' '.join(options.bench)}`, {commits:,} transactions "
          f"committed in {options.window} s\n")
    print(f"| {'phase':20} | share |" + "".join(f" {title:>16} |" for _, title in columns))
    print("|---|---:|" + "---:|" * len(columns))
    for phase in ORDER:
        if phase not in table:
            continue
        entry = table[phase]
        row(phase, entry["cost"], total, divisor)
        functions = sorted(entry["functions"].items(), key=lambda item: -item[1][0])
        for name, cost in functions[: options.functions]:
            row("  " + name.split("::")[-1], cost, total, divisor)
    row("all", total, total, divisor)


def row(name, cost, total, divisor):
    share = 100 * cost[0] / total[0] if total[0] else 0
    figures = "".join(f" {value / divisor:16,.1f} |" for value in cost)
    print(f"| {name:20} | {share:3.0f} % |{figures}")


def write_json(path, tables, options):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schema_version": 1, "benchmark": options.bench, "window_s": options.window,
                   "machine": platform.processor() or platform.machine(), "tables": tables}, file,
                  indent=1)
        file.write("\n")
