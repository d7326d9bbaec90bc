"""Votes of training rows in plain loops over pairs of rows, in exact fractions."""

import math
from fractions import Fraction
from itertools import combinations


def all_subsets(n_features, order):
    return [subset for size in range(min(order, n_features) + 1) for subset in combinations(range(n_features), size)]


def agree(one, other, subset):
    """Missing values, None, agree with each other."""
    return all(one[feature] == other[feature] for feature in subset)


def strength(query, row, weights, degree):
    """`weights` maps subsets to weights; the degree is whole."""
    return sum(Fraction(weight) for subset, weight in weights.items() if agree(query, row, subset)) ** int(degree)


def ratio(query, X, y, weights, degree, label=None, sample_weight=None):
    """Score a query by all rows; for a label, or the mean of numbers."""
    votes, total, total_y, n = Fraction(0), Fraction(0), Fraction(0), Fraction(0)
    for number, (row, target) in enumerate(zip(X, y, strict=True)):
        weight = Fraction(1 if sample_weight is None else sample_weight[number])
        value = Fraction(target) if label is None else Fraction(target == label)
        power = weight * strength(query, row, weights, degree)
        votes, total = votes + power * value, total + power
        total_y, n = total_y + weight * value, n + weight
    if total == 0:
        return float(total_y / n) if n else math.nan
    return float(votes / total)


def difference(query, X, y, weights, label):
    """Score a query for a label: votes over rows of the class, less votes over rows of all others."""
    score = Fraction(0)
    of_class = sum(target == label for target in y)
    for row, target in zip(X, y, strict=True):
        number = of_class if target == label else -(len(y) - of_class)
        score += strength(query, row, weights, 1) / number
    return float(score)


def leave_one_out(X, y, score):
    """Score each row by all others: score(query, X, y)."""
    others = [([*X[:i], *X[i + 1 :]], [*y[:i], *y[i + 1 :]]) for i in range(len(X))]
    return [score(row, *rest) for row, rest in zip(X, others, strict=True)]


def area(scores, y, label, sample_weight=None):
    """Return the share of rightly ordered pairs, ties counting half; twice the sum is a whole number of pairs."""
    weight = [1] * len(y) if sample_weight is None else sample_weight
    own = [(score, w) for score, target, w in zip(scores, y, weight, strict=True) if target == label]
    rest = [(score, w) for score, target, w in zip(scores, y, weight, strict=True) if target != label]
    twice = sum((2 * (a > b) + (a == b)) * v * w for a, v in own for b, w in rest)
    pairs = sum(v * w for _, v in own for _, w in rest)
    return twice / (2 * pairs) if pairs else 0.0


def squared_error(scores, y):
    return math.fsum((score - target) ** 2 for score, target in zip(scores, y, strict=True)) / len(y)


def tune(X, y, order, judge, tol, degree=None, least=0.0):
    """Climb: judge(weights, degree) rates weights by subset; give the best numbers and the path."""
    subsets = all_subsets(len(X[0]), order)
    numbers = [0.0] * len(subsets) + ([1.0] if degree is None else [])

    def value_of(numbers):
        weights = dict(zip(subsets, numbers[: len(subsets)], strict=True))
        return judge(weights, numbers[-1] if degree is None else degree)

    best, step, path = value_of(numbers), 1.0, []
    while step >= tol:
        values = []
        for chosen in range(len(numbers)):
            tried = list(numbers)
            tried[chosen] += step
            values.append(value_of(tried))
        chosen = values.index(max(values))
        if values[chosen] - best > least * abs(best):
            numbers[chosen] += step
            best = values[chosen]
            path.append([float(chosen), step, best])
        else:
            step /= 2
    return numbers, path
