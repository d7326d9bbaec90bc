"""What an H200 asks for: billions of rows a second on an H200, and times cuDF."""

# Work -> (up to 4,096 categories, 1e6 categories); more categories have no goal.
RATES: dict[str, tuple[float, float]] = {
    "5 folds, 0/1": (150.0, 45.0),
    "mean, fit and transform, 0/1": (200.0, 60.0),
    "leave one out, 0/1": (150.0, 50.0),
    "ordered, 0/1": (40.0, 18.0),
    # Other targets: at least half.
    "5 folds, real, auto": (75.0, 22.5),
    "mean, fit and transform, real": (100.0, 30.0),
    "leave one out, real, auto": (75.0, 25.0),
    "ordered, real, auto": (20.0, 9.0),
}
TIMES_CUDF: dict[str, tuple[float, float]] = {
    "5 folds, 0/1": (50.0, 20.0),
    "mean, fit and transform, 0/1": (40.0, 15.0),
    "ordered, 0/1": (10.0, 8.0),
}
FEW, MANY = 4096, 1_000_000
# Ten classes at the rate of the bytes that come out.
TEN_CLASSES = "5 folds, 10 classes"
SMALL_MS = 2.0


def goal_of(
    goals: dict[str, tuple[float, float]], work: str, n_categories: int, copy_rate: float | None = None
) -> float | None:
    """Goal for some work; none where there is none.

    Parameters
    ----------
    goals : dict
        `RATES` or `TIMES_CUDF`.
    work : str
    n_categories : int
    copy_rate : float, optional
        Bytes that a copy reads and writes a second: half of them are writes.
    """
    if work == TEN_CLASSES and goals is RATES:
        return None if copy_rate is None else copy_rate / 2 / 40 / 1e9
    if work not in goals or n_categories > MANY:
        return None
    return goals[work][0 if n_categories <= FEW else 1]
