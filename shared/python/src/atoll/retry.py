"""Repeats transactions that conflict."""
from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from .client import Connection, Transaction
from .errors import Conflict
from .options import Acknowledge

P = ParamSpec("P")
T = TypeVar("T")


def pause_after(attempt: int, first_pause: float, longest_pause: float) -> float:
    """The pause after a conflict, in seconds: random, up to a bound that doubles each time."""
    return random.uniform(0, min(longest_pause, first_pause * 2 ** min(attempt, 30)))


def retry(
    db: Connection, *, attempts: int = 10, first_pause: float = 0.001, longest_pause: float = 0.1,
    acknowledge: Acknowledge | None = None,
) -> Callable[[Callable[Concatenate[Transaction, P], T]], Callable[P, T]]:
    """Makes a function a transaction: `@retry(db) def pay(t, payer, payee): ...`.

    A call of the function passes a new transaction as the first argument, and commits it. After a
    Conflict it runs the function again, at most `attempts` times, with random pauses between. So
    the function must have no effects other than those of the transaction.
    """
    if attempts < 1:
        raise ValueError(f"attempts: {attempts} is not positive")

    def decorate(body: Callable[Concatenate[Transaction, P], T]) -> Callable[P, T]:
        @functools.wraps(body)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            for attempt in range(attempts):
                try:
                    with db.transaction(acknowledge=acknowledge) as transaction:
                        returned = body(transaction, *args, **kwargs)
                    return returned
                except Conflict:
                    if attempt + 1 == attempts:
                        raise
                time.sleep(pause_after(attempt, first_pause, longest_pause))
            raise AssertionError("unreachable")

        return run

    return decorate
