"""One load of a sweep, and how long a load takes. Pure."""

from msgspec.structs import replace

from deploytui.profile.load_schema import Closed, Constant, Gamma, Load, Poisson
from deploytui.profile.rules import sweep


def at_point(load: Load, point: int) -> Load:
    """The load with the one number of that place of the sweep; a load that is no list is the only point."""
    places = sweep(load)
    return load if places is None else at_place(load, places[point])


def at_place(load: Load, place: float) -> Load:
    """The load with that concurrency, or rate [requests/s]; a load that has neither stays as it is."""
    match load:
        case Closed():
            return replace(load, concurrency=int(place))
        case Constant() | Poisson() | Gamma():
            return replace(load, rate=float(place))
        case _:
            return load


def most_users(load: Load) -> int | None:
    """The largest concurrency of a closed load; None for a load that has none."""
    if not isinstance(load, Closed):
        return None
    return load.concurrency if isinstance(load.concurrency, int) else max(load.concurrency)
