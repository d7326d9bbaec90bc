"""Blends of all pairs of methods; the share is chosen on the rows of the other outer folds."""

from itertools import combinations

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

import gpu_encode as ge
from benchmarks.harness.worker import Record
from studies.comparison.scores import compare

SHARES = 11
SHOWN = 12


def blend_pairs(scores: dict[str, list[np.ndarray]], targets: list[np.ndarray]) -> list[Record]:
    """Give the best blends of two methods, and the similarity of the two.

    Parameters
    ----------
    scores : dict of str to list of array
        For each method, the scores of new rows, by outer fold.
    targets : list of array
        The targets of these rows.

    Returns
    -------
    list of dict
        The best first.
    """
    # Scores of different folds come from different models, so only their ranks can be joined.
    ranks = {name: [rankdata(part) / len(part) for part in of_folds] for name, of_folds in scores.items()}
    alone = {name: [roc_auc_score(*pair) for pair in zip(targets, parts, strict=True)] for name, parts in ranks.items()}
    blends, pairs = [], [*combinations(ranks, 2)]
    for pair in pairs:
        folds = [np.column_stack(parts) for parts in zip(*(ranks[name] for name in pair), strict=True)]
        areas, shares = blend_folds(folds, targets)
        better = max(pair, key=lambda name: np.mean(alone[name]))
        blends.append(
            {
                "one": pair[0],
                "other": pair[1],
                "AUC": float(np.mean(areas)),
                "less the better of the two": str(compare(areas, alone[better], len(pairs))),
                "share of the one": float(np.mean(shares)),
                **alike(scores[pair[0]], scores[pair[1]]),
            }
        )
    return sorted(blends, key=lambda blend: -blend["AUC"])[:SHOWN]


def blend_folds(folds: list[np.ndarray], targets: list[np.ndarray]) -> tuple[list[float], list[float]]:
    """For each fold, choose the share on all other folds, and score the blend on the fold."""
    areas, shares = [], []
    for number, (held, y) in enumerate(zip(folds, targets, strict=True)):
        others = [other for other in range(len(folds)) if other != number]
        blend = ge.ConvexBlend(grid=SHARES)
        blend.fit(np.concatenate([folds[other] for other in others]), np.concatenate([targets[i] for i in others]))
        areas.append(float(roc_auc_score(y, blend.predict(held))))
        shares.append(float(blend.weights_[0]))
    return areas, shares


def alike(one: list[np.ndarray], other: list[np.ndarray]) -> Record:
    """Give the mean over folds of Pearson's and Spearman's correlation, and of the uncentred cosine."""
    pairs = list(zip(one, other, strict=True))
    cosines = [a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in pairs]
    return {
        "Pearson": float(np.mean([np.corrcoef(a, b)[0, 1] for a, b in pairs])),
        "Spearman": float(np.mean([np.corrcoef(rankdata(a), rankdata(b))[0, 1] for a, b in pairs])),
        "cosine": float(np.mean(cosines)),
    }
