"""What must hold for each run of Atoll with data larger than memory."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Limit:
    name: str      # in the table
    unit: str
    key: str       # of a run's figures
    limit: float   # a larger value is a miss

    def missed(self, run):
        """Returns what a run misses, or None. A run without the figure misses nothing."""
        value = run.get(self.key)
        if value is None or value <= self.limit:
            return None
        return f"{self.name} {value:.0f} {self.unit}"


LIMITS = (Limit("no commit for", "ms", "longest_pause_ms", 100),
          Limit("worst second below the mean by", "%", "worst_below_mean_percent", 50),
          Limit("p99.9", "ms", "p999_ms", 50),
          Limit("longest", "ms", "longest_ms", 250))


def misses(run):
    return [text for limit in LIMITS if (text := limit.missed(run)) is not None]


def verdict(runs):
    """Returns "pass" if all runs keep all limits. Otherwise names what the runs miss."""
    missed = [found for run in runs if (found := misses(run))]
    if not missed:
        return "pass"
    of = f" in {len(missed)} of {len(runs)} runs" if len(runs) > 1 else ""
    return f"miss{of}: " + "; ".join(", ".join(found) for found in missed)
