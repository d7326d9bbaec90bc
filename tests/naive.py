"""The definitions, in plain loops over exact arithmetic.

Every sum is an int or a Fraction, so it has one value in any order. The few steps in floating point are part of the
definition, and are evaluated from left to right as written: the library must give the same bits. All steps before the
weights of mean and prior round to 53 digits, with an unlimited exponent, so that tiny targets have squares and
variances, too. This file was written from the definitions alone; it uses nothing of the library except its ``exp``.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isnan, nan, sqrt

Exact = int | Fraction
Path = tuple[Hashable, ...]


def exact(value: float) -> Exact:
    """Return the number as an int if it is whole (ints are quick), else as a Fraction."""
    fraction = Fraction(value)
    return fraction.numerator if fraction.denominator == 1 else fraction


nearest = float  # of an int or a Fraction: correctly rounded, subnormals included


def rounded(value: Exact) -> Exact:
    """Round to 53 binary digits, ties to even, with no bounds on the exponent."""
    if value == 0:
        return 0
    numerator, denominator = abs(value).as_integer_ratio()
    unit = Fraction(2) ** (numerator.bit_length() - denominator.bit_length() - 53)
    while abs(value) >= 2**53 * unit:
        unit *= 2
    return round(value / unit) * unit


def divided(numerator: Exact, denominator: Exact) -> Exact:
    return rounded(Fraction(numerator) / Fraction(denominator))


def quotient(total: Exact, count: Exact) -> float:
    """Return the mean of an exact total over an exact count."""
    return nearest(Fraction(total) / Fraction(count))


@dataclass
class Sums:
    """Weight, weighted total and weighted square of some rows."""

    weight: Exact = 0
    total: Exact = 0
    square: Exact = 0

    def add(self, target: Exact, weight: Exact) -> None:
        self.weight += weight
        self.total += weight * target
        self.square += weight * target * target

    @property
    def count(self) -> Exact:
        return rounded(self.weight)

    @property
    def mean(self) -> float:
        return quotient(self.total, self.weight) if self.weight > 0 else nan

    @property
    def population_variance(self) -> Exact:
        return divided(self._deviation(), self.count)

    @property
    def sample_variance(self) -> Exact:
        fewer = max(rounded(self.weight - 1), self.count / 2)
        return divided(self._deviation(), fewer) if self.weight > 0 else 0

    @property
    def within(self) -> Exact:
        """Sum of squared distances from the mean."""
        return self._deviation()

    def _deviation(self) -> Exact:
        return divided(rounded(self.weight * self.square - self.total**2), self.count)


@dataclass
class Level:
    """Sums of some rows, of all together and of each category that counts as one."""

    everything: Sums
    categories: dict[Path, Sums]

    def __post_init__(self) -> None:
        self.size = len(self.categories)
        self.means = [exact(sums.mean) for sums in self.categories.values()]

    def between(self, divisor: int) -> Exact:
        """Variance of the category means, its last division by ``divisor``."""
        numerator = rounded(self.size * sum(mean * mean for mean in self.means) - sum(self.means) ** 2)
        return divided(divided(numerator, self.size), divisor)

    def distance(self) -> Exact:
        """Sum of the squared distances of the category means from the mean of all rows."""
        center = exact(self.everything.mean)
        return rounded(sum((mean - center) ** 2 for mean in self.means))


# Weights of the category's own mean and of the prior, from the category's sums and those of all rows.
Weights = tuple[float, float]
Weighing = Callable[[Sums, Level], Weights]


def unsmoothed(_own: Sums, _level: Level) -> Weights:
    return 1.0, 0.0


@dataclass(frozen=True)
class MEstimate:
    """(S + m * mu) / (n + m), rounded once; mu is the exact mean of all rows where it can be, else as it is rounded."""

    m: float

    def encode(self, own: Sums, mu: Exact) -> float:
        return quotient(own.total + Fraction(self.m) * mu, own.weight + Fraction(self.m))


m_estimate = MEstimate


def sigmoid(k: float, f: float) -> Weighing:
    from cpu_fallback.elementary import exp

    return lambda own, _level: (1.0, float(exp(-((float(own.count) - k) / f))))


def ratio(numerator: Exact, denominator: Exact) -> float:
    """Return a quotient of numbers that are not negative, rounded to 53 digits and then to a float, if it is one."""
    try:
        return nearest(divided(numerator, denominator)) if denominator else inf
    except OverflowError:
        return inf


def _bayes(own: Sums, prior_variance: Exact) -> Weights:
    if own.population_variance == 0:
        return 1.0, 0.0
    return 1.0, ratio(own.population_variance, rounded(own.count * prior_variance))


def empirical_bayes_total(own: Sums, level: Level) -> Weights:
    return _bayes(own, level.everything.population_variance)


def empirical_bayes_between(own: Sums, level: Level) -> Weights:
    return _bayes(own, level.between(level.size) if level.size else 0)


def root(value: Exact) -> Exact:
    """Return the square root, rounded to 53 digits, of a number of so many digits and any exponent."""
    if not value:
        return 0
    digits = value.numerator.bit_length() - value.denominator.bit_length()
    half = Fraction(2) ** (digits // 2)
    return Fraction(sqrt(value / half**2)) * half


def components(level: Level) -> tuple[Exact, Exact]:
    """Return the variances within and between categories of a one-way analysis of variance."""
    rows = [exact(float(sums.count)) for sums in level.categories.values()]
    total, pairs = sum(rows), list(zip(rows, level.means, strict=True))
    free = rounded(total - level.size)
    within = rounded(sum(root(sums.within) ** 2 for sums in level.categories.values()))
    within = divided(within, free) if free > 0 else 0
    squares, sums = sum(n * mean * mean for n, mean in pairs), sum(n * mean for n, mean in pairs)
    scatter = divided(rounded(total * squares - sums**2), rounded(total)) if total else 0
    excess = rounded(scatter - rounded(within * (level.size - 1)))
    share = divided(rounded(total**2 - sum(n * n for n in rows)), rounded(total)) if total else 0
    return within, divided(excess, share) if excess > 0 and share > 0 else 0


def empirical_bayes_anova(own: Sums, level: Level) -> Weights:
    return _bayes(own, components(level)[1])


def empirical_bayes_pooled(own: Sums, level: Level) -> Weights:
    within, between = components(level)
    return (1.0, ratio(within, rounded(own.count * between))) if within else (1.0, 0.0)


def empirical_bayes_total_pooled(own: Sums, level: Level) -> Weights:
    within, _ = components(level)
    signal = rounded(own.count * level.everything.population_variance)
    return (1.0, ratio(within, signal)) if within else (1.0, 0.0)


def pulled_by(share: float) -> Weights:
    pulled = min(share, 1.0)
    return 1.0 - pulled, pulled


def james_stein_pooled(_own: Sums, level: Level) -> Weights:
    categories, variance, distance = level.size, level.everything.sample_variance, level.distance()
    if categories <= 3:
        return 1.0, 0.0
    if distance == 0:
        return pulled_by(1.0 if variance > 0 else 0.0)
    rows = divided(sum(sums.count for sums in level.categories.values()), categories)
    noise = divided(variance, rows)
    return pulled_by(ratio(rounded((categories - 3) * noise), distance))


def james_stein_independent(own: Sums, level: Level) -> Weights:
    categories, variance, within = level.size, level.everything.sample_variance, own.sample_variance
    if categories <= 3 or within == 0:
        return 1.0, 0.0
    return pulled_by(ratio(within, rounded(variance + within)) * ((categories - 3) / (categories - 1)))


def partial_pooling(own: Sums, level: Level) -> Weights:
    between = level.between(level.size - 1) if level.size >= 2 else 0
    if between <= 0:
        return 0.0, 1.0
    noise = rounded(rounded(own.count * own.sample_variance) + level.everything.population_variance)
    return 1.0, ratio(divided(noise, rounded(own.count + 1)), rounded(own.count * between))


def blended(prior: float, mean: float, weights: Weights) -> float:
    """Return the value between prior and mean, computed from the end with more weight."""
    own, other = weights
    if other == 0:
        return mean
    if own >= other:
        return mean + other / (own + other) * (prior - mean)
    return prior + own / (own + other) * (mean - prior)


@dataclass
class Problem:
    """Rows and the choices made about them.

    ``paths`` holds the keys of a row, one per level of the hierarchy, top level first; without a hierarchy a
    row has one. A null is None; above the last level it means no ancestor there. ``categories`` are the admitted
    keys of the only level, None meaning all.
    """

    paths: Sequence[Path]
    targets: Sequence[Exact]
    weights: Sequence[Exact]
    smoothing: Weighing | MEstimate = unsmoothed
    prior: str | float = "mean"
    min_count: float = 0
    categories: Sequence[Hashable] | None = None
    missing: str = "category"
    _levels: dict[tuple[tuple[int, ...], int], Level] = field(default_factory=dict)

    def admits(self, path: Path) -> bool:
        if path[-1] is None and (self.missing != "category" or len(path) < len(self.paths[0])):
            return False
        return self.categories is None or path[-1] in self.categories

    def voids(self, path: Path) -> bool:
        return path[-1] is None and self.missing == "nan"

    def level(self, rows: tuple[int, ...], depth: int) -> Level:
        """Sum the given rows over their keys of one level, remembering the answer."""
        if (rows, depth) not in self._levels:
            self._levels[rows, depth] = self._sum(rows, depth)
        return self._levels[rows, depth]

    def _sum(self, rows: tuple[int, ...], depth: int) -> Level:
        everything, categories = Sums(), {}
        for row in rows:
            everything.add(self.targets[row], self.weights[row])
            path = self.paths[row][: depth + 1]
            if self.admits(path):
                categories.setdefault(path, Sums()).add(self.targets[row], self.weights[row])
        return Level(
            everything, {path: own for path, own in categories.items() if own.weight and own.count >= self.min_count}
        )

    def prior_code(self, rows: tuple[int, ...]) -> float:
        level = self.level(rows, len(self.paths[0]) - 1)
        if not isinstance(self.prior, str):
            return float(self.prior)
        if self.prior == "mean":
            return level.everything.mean
        return quotient(sum(level.means), level.size) if level.size else level.everything.mean

    def code(self, path: Path, visible: tuple[int, ...], checkpoint: tuple[int, ...] | None = None) -> float:
        """Return the code of a row with these keys that may look at ``visible``.

        Values about all categories together (prior, variances, their number) come from the rows of
        ``checkpoint``, if it is given.
        """
        background = visible if checkpoint is None else checkpoint
        code = self.prior_code(background)
        if self.voids(path):
            return nan
        for depth in range(len(path)):
            own = self.level(visible, depth).categories.get(path[: depth + 1])
            if own is None:
                continue
            level = self.level(background, depth)
            if isinstance(self.smoothing, MEstimate):
                by_mean = self.prior == "mean" and depth == 0
                everything = level.everything
                code = self.smoothing.encode(
                    own, Fraction(everything.total) / everything.weight if by_mean else exact(code)
                )
            else:
                code = blended(code, own.mean, self.smoothing(own, level))
        return code

    def codes(self, visible: Sequence[Sequence[int]]) -> list[float]:
        """Return the training codes when row i may look at the rows ``visible[i]``."""
        return [self.code(path, tuple(rows)) for path, rows in zip(self.paths, visible, strict=True)]

    def unseen(self, visible: Sequence[Sequence[int]]) -> list[float]:
        """Return 1.0 where no visible row counts for the category of a row, else 0.0."""
        pairs = zip(self.paths, visible, strict=True)
        return [float(path not in self.level(tuple(rows), len(path) - 1).categories) for path, rows in pairs]


def fold_visibility(folds: Sequence[int]) -> list[tuple[int, ...]]:
    """Let every row look at the rows of all folds but its own."""
    return [tuple(row for row, other in enumerate(folds) if other != own) for own in folds]


def top_nine_bits(place: int) -> int:
    """Clear all but the nine highest binary digits."""
    shift = max(place.bit_length() - 9, 0)
    return place >> shift << shift


def permuted_codes(problem: Problem, order: Sequence[int], burn_in: int = 0) -> list[float]:
    """Return the codes when a row may look at the rows before it in ``order``."""
    codes = [nan] * len(order)
    for place, row in enumerate(order[burn_in:], start=burn_in):
        path, checkpoint = problem.paths[row], tuple(order[: top_nine_bits(place)])
        codes[row] = problem.code(path, tuple(order[:place]), checkpoint)
        # The first row sees none before it; unless its prior is a number it gets the mean of all others.
        if place == 0 and isinstance(problem.prior, str) and not problem.voids(path):
            codes[row] = problem.level(tuple(order[1:]), 0).everything.mean
    return codes


def timed_codes(problem: Problem, times: Sequence[float], burn_in: int = 0) -> list[float]:
    """Return the codes when a row may look at the rows of strictly earlier times."""
    order = sorted(range(len(times)), key=lambda row: times[row])

    def tie_start(place: int) -> int:
        return next(start for start in range(place + 1) if times[order[start]] == times[order[place]])

    codes = [nan] * len(order)
    for any_place, row in enumerate(order):
        place = tie_start(any_place)
        if place >= burn_in:
            checkpoint = tie_start(top_nine_bits(place)) or place
            codes[row] = problem.code(problem.paths[row], tuple(order[:place]), tuple(order[:checkpoint]))
    return codes


def averaged_codes(permutations: Sequence[Sequence[float]]) -> list[float]:
    """Average the codes of a row over the permutations that have one."""
    averages = []
    for codes in zip(*permutations, strict=True):
        given = [code for code in codes if not isnan(code)]
        # The built-in sum compensates its rounding from Python 3.12 on; the definition does not.
        excess = 0.0
        for code in given[1:]:
            excess += code - given[0]
        averages.append(given[0] + excess / len(given) if given else nan)
    return averages
