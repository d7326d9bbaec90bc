"""The computations of NVTabular 23.8's ``ops.TargetEncoding`` in plain loops, for comparisons.

It was written from a description of the steps, with pandas and floats, and has only the steps that decide a number.
"""

from collections import defaultdict

import numpy as np
import pandas as pd

PARAMETERS = {
    *("target", "target_mean", "kfold", "fold_seed", "p_smooth", "out_col", "out_dtype", "split_out", "split_every"),
    *("cat_cache", "out_path", "on_host", "name_sep", "drop_folds", "tree_width"),
}


def folds_of(n_rows, kfold, fold_seed):
    """Fold of each row of one partition: a generator that starts anew in each, on the CPU NumPy's."""
    numbers = np.arange(kfold, dtype=np.min_scalar_type(kfold * 2))
    if fold_seed is None:
        return np.arange(n_rows) % kfold
    return np.random.RandomState(fold_seed).choice(numbers, n_rows)


class TargetEncoding:
    """The peer, with the parameters that matter; `groups` are the columns left of the ``>>``."""

    def __init__(self, groups, targets, *, kfold=3, fold_seed=42, p_smooth=20):
        self.groups = [[group] if isinstance(group, str) else list(group) for group in groups]
        self.targets = targets
        self.kfold = kfold
        self.fold_seed = fold_seed
        self.p_smooth = p_smooth

    def fit(self, partitions):
        frame = pd.concat(partitions, ignore_index=True)
        self.means = {target: frame[target].mean() for target in self.targets}
        folds = np.concatenate([self.folds(len(part)) for part in partitions])
        # Of each group: sums and counts by key, and by fold and key.
        self.tables = [(self.table(frame, group), self.table(frame, group, folds)) for group in self.groups]
        return self

    def folds(self, n_rows):
        return folds_of(n_rows, self.kfold, self.fold_seed) if self.kfold > 1 else np.zeros(n_rows, int)

    def table(self, frame, group, folds=None):
        """Count and sums of each key.  The first name of the key is counted, without nulls: a fold never is one."""
        result = defaultdict(lambda: [0, *(0.0 for _ in self.targets)])
        for row, key in enumerate(keys_of(frame, group)):
            cell = result[key] if folds is None else result[folds[row], key]
            cell[0] += 1 if folds is not None else key[0] is not None
            for number, target in enumerate(self.targets, start=1):
                value = frame[target].iloc[row]
                cell[number] += 0.0 if pd.isna(value) else value
        return dict(result)

    def transform(self, partition):
        """Out-of-fold encodings, whatever the partition: folds are drawn for new rows too."""
        folds = self.folds(len(partition))
        names, columns = [], []
        for group, (by_key, by_fold) in zip(self.groups, self.tables, strict=True):
            keys = keys_of(partition, group)
            for number, target in enumerate(self.targets, start=1):
                names.append(f"TE_{'_'.join(group)}_{target}")
                columns.append(
                    [
                        self.shrink(by_key.get(key), by_fold.get((fold, key)), number, self.means[target])
                        for key, fold in zip(keys, folds, strict=True)
                    ]
                )
        return pd.DataFrame(dict(zip(names, columns, strict=True)), index=partition.index).astype(np.float32)

    def shrink(self, everywhere, in_fold, number, mean):
        # The table by fold is the left side of the join: what the fold has not is not found.
        if everywhere is None or (self.kfold > 1 and in_fold is None):
            return mean
        n, s = everywhere[0], everywhere[number]
        if self.kfold > 1:
            n, s = n - in_fold[0], s - in_fold[number]
        with np.errstate(divide="ignore", invalid="ignore"):
            result = np.float64(s + self.p_smooth * mean) / (n + self.p_smooth)
        return mean if np.isnan(result) else result


def keys_of(frame, group):
    """One key for each row, with None for nulls."""
    rows = frame[group].itertuples(index=False, name=None)
    return [tuple(None if pd.isna(part) else part for part in row) for row in rows]
