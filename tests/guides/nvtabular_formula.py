"""What NVTabular 23.8's ``ops.TargetEncoding`` computes, in plain loops: a definition to compare with.

Written from a description of its steps, in pandas and floats; only what decides a number is here, of keys and targets
without nulls, and of new rows without folds.
"""

from collections import defaultdict

import numpy as np
import pandas as pd

PARAMETERS = {
    *("target", "target_mean", "kfold", "fold_seed", "p_smooth", "out_col", "out_dtype", "split_out", "split_every"),
    *("cat_cache", "out_path", "on_host", "name_sep", "drop_folds", "tree_width"),
}


class TargetEncoding:
    """The peer, with the parameters that matter; `groups` are the columns left of the ``>>``."""

    def __init__(self, groups, targets, *, kfold=3, fold_seed=42, p_smooth=20):
        self.groups = [[group] if isinstance(group, str) else list(group) for group in groups]
        self.targets = targets
        self.kfold = kfold
        self.fold_seed = fold_seed
        self.p_smooth = p_smooth

    def fit(self, frame):
        self.means = {target: frame[target].mean() for target in self.targets}
        folds = self.folds(len(frame))
        # Of each group: sums and counts by key, and by fold and key.
        self.tables = [(self.table(frame, group), self.table(frame, group, folds)) for group in self.groups]
        return self

    def folds(self, n_rows):
        """Fold of each row: a generator that starts anew in each partition, on the CPU NumPy's."""
        if self.fold_seed is None or self.kfold == 1:
            return np.arange(n_rows) % self.kfold
        numbers = np.arange(self.kfold, dtype=np.min_scalar_type(self.kfold * 2))
        return np.random.RandomState(self.fold_seed).choice(numbers, n_rows)

    def table(self, frame, group, folds=None):
        """Count and sums of each key, or of each fold and key."""
        result = defaultdict(lambda: [0, *(0.0 for _ in self.targets)])
        for row, key in enumerate(keys_of(frame, group)):
            cell = result[key] if folds is None else result[folds[row], key]
            cell[0] += 1
            for place, target in enumerate(self.targets, start=1):
                cell[place] += frame[target].iloc[row]
        return result

    def transform(self, frame):
        """Encode out of fold, and with one fold by all rows."""
        folds, columns = self.folds(len(frame)), {}
        for group, (by_key, by_fold) in zip(self.groups, self.tables, strict=True):
            cells = list(zip(keys_of(frame, group), folds, strict=True))
            for place, target in enumerate(self.targets, start=1):
                columns[f"TE_{'_'.join(group)}_{target}"] = [
                    self.shrink(by_key[key], by_fold[fold, key], place, self.means[target]) for key, fold in cells
                ]
        return pd.DataFrame(columns, index=frame.index).astype(np.float32)

    def shrink(self, everywhere, in_fold, place, mean):
        n, s = everywhere[0], everywhere[place]
        if self.kfold > 1:
            n, s = n - in_fold[0], s - in_fold[place]
        return (s + self.p_smooth * mean) / (n + self.p_smooth)


def keys_of(frame, group):
    """Give one key for each row."""
    return list(frame[group].itertuples(index=False, name=None))
