"""Boosting as the papers define it: plain loops over rows, fractions for sums, one candidate after another."""

import math
from fractions import Fraction

import numpy as np

SQUARED, LOGISTIC = (lambda y, f: y - f), (lambda y, f: y - 1 / (1 + math.exp(-f)))


def mean_step(gradients, l2):
    """Give the shrunk mean of some gradients."""
    if not gradients:
        return 0.0
    n = len(gradients)
    return float(sum(map(Fraction, gradients)) / n) * (n / (n + l2))


def goes_above(features, row, split):
    return bool(features[row][split[0]] > split[1])


def leaf_of(features, row, splits):
    return tuple(goes_above(features, row, split) for split in splits)


def cosine(steps, gradients):
    square = math.fsum(step * step for step in steps)
    return math.fsum(s * g for s, g in zip(steps, gradients, strict=True)) / math.sqrt(square) if square > 0 else 0.0


def choose(borders, depth, score):
    """Add the first of the best splits, level by level."""
    candidates = [(column, float(border)) for column, cuts in enumerate(borders) for border in cuts]
    splits = []
    for _ in range(depth if candidates else 0):
        scores = [score([*splits, candidate]) for candidate in candidates]
        splits.append(candidates[scores.index(max(scores))])
    return splits


def choose_plain(features, borders, depth, l2, rows, gradients):
    """Choose splits by steps of all rows; `gradients` are by row."""

    def score(splits):
        leaf = {row: leaf_of(features, row, splits) for row in rows}
        step = {
            each: mean_step([gradients[row] for row in rows if leaf[row] == each], l2) for each in set(leaf.values())
        }
        return cosine([step[leaf[row]] for row in rows], [gradients[row] for row in rows])

    return choose(borders, depth, score)


def model_of(rank):
    """Return the number of the model for the row of a rank, from 1: model `number` knows the first 2 ** number rows."""
    return math.floor(math.log2(rank - 1))


def choose_ordered(features, borders, depth, l2, order, chosen, gradient):
    """Choose splits by steps of earlier rows; `gradient(number, row)` is that of a model."""

    def score(splits):
        steps, own = [], []
        for rank, row in enumerate(order, start=1):
            if rank == 1 or not chosen[row]:
                continue
            number = model_of(rank)
            before = [
                gradient(number, earlier)
                for earlier in order[: rank - 1]
                if chosen[earlier] and leaf_of(features, earlier, splits) == leaf_of(features, row, splits)
            ]
            steps.append(mean_step(before, l2))
            own.append(gradient(number, row))
        return cosine(steps, own)

    return choose(borders, depth, score)


def draw(n, share, random):
    chosen = np.zeros(n, bool)
    chosen[random.permutation(n)[: max(1, round(share * n))]] = True
    return chosen


def add_tree(predictions, known, asked, features, splits, y, loss, rate, l2):
    """Add a tree to one model, with leaf values from the rows that it knows; give the values by leaf."""
    gradients = {row: loss(y[row], predictions[row]) for row in known}
    values = {}
    for row in asked:
        leaf = leaf_of(features, row, splits)
        inside = [gradients[other] for other in known if leaf_of(features, other, splits) == leaf]
        values[leaf] = rate * mean_step(inside, l2)
    for row in asked:
        predictions[row] += values[leaf_of(features, row, splits)]
    return values


def boost(mode, y, loss, orders, features, borders, iterations, depth, rate, l2, share, random):
    """Boost in mode "plain" or "ordered"; give (splits, values by leaf) of each tree, and ordered predictions."""
    n, trees = len(y), []
    whole = [dict.fromkeys(order, 0.0) for order in orders]
    models = [[dict.fromkeys(order[: 2 ** (j + 1)], 0.0) for j in range(math.ceil(math.log2(n)))] for order in orders]
    for _ in range(iterations):
        r = int(random.integers(1, len(orders)))
        chosen = draw(n, share, random)
        if mode == "plain":
            gradients = {row: loss(y[row], whole[r][row]) for row in orders[r]}
            rows = [row for row in orders[r] if chosen[row]]
            splits = choose_plain(features[r], borders, depth, l2, rows, gradients)
        else:
            splits = choose_ordered(
                features[r], borders, depth, l2, orders[r], chosen, lambda j, row, r=r: loss(y[row], models[r][j][row])
            )
        for number, order in enumerate(orders):
            values = add_tree(whole[number], order, order, features[number], splits, y, loss, rate, l2)
            if number == 0:
                trees.append((splits, values))
            for j, model in enumerate(models[number]):
                add_tree(model, order[: 2**j], list(model), features[number], splits, y, loss, rate, l2)
    if mode == "plain":
        return trees, [whole[1][row] for row in range(n)]
    asked = {row: models[1][model_of(rank)][row] for rank, row in enumerate(orders[1], start=1) if rank > 1}
    return trees, [asked.get(row, 0.0) for row in range(n)]


def boost_exactly(y, loss, order, features, borders, iterations, depth, rate, l2, share, random):
    """Boost n models, the model of m rows on their gradients by the models of the rows before each."""
    n = len(y)
    models = [dict.fromkeys(order, 0.0) for _ in range(n + 1)]
    trees = []
    for _ in range(iterations):
        gradients = {row: loss(y[row], models[rank][row]) for rank, row in enumerate(order)}
        chosen = draw(n, share, random)
        for m in range(1, n + 1):
            known = order[:m]
            rows = [row for row in known if chosen[row]]
            splits = choose_plain(features, borders, depth, l2, rows, gradients)
            values = {}
            for row in order:
                leaf = leaf_of(features, row, splits)
                inside = [gradients[other] for other in known if leaf_of(features, other, splits) == leaf]
                values[leaf] = rate * mean_step(inside, l2)
                models[m][row] += values[leaf]
            if m == n:
                trees.append((splits, values))
    asked = {row: models[rank][row] for rank, row in enumerate(order)}
    return trees, [asked[row] for row in range(n)]
