"""Parameters by the words of other libraries: which of ours takes their place."""

import difflib
import inspect

# What encoders have in place of a parameter of category_encoders, feature-engine, cuML, NVTabular, CatBoost, pandas.
INSTEAD = {
    **dict.fromkeys(("cols", "variables", "cat_features", "cat_cols", "features"), "columns"),
    **dict.fromkeys(("min_samples_leaf", "smoothing"), "smooth=Sigmoid(k=min_samples_leaf, f=smoothing)"),
    **dict.fromkeys(("m", "p_smooth", "cat_smooth"), "smooth=MEstimate(m)"),
    **dict.fromkeys(("sigma", "randomized"), "cv: training encodings need no noise where no row sees its own target"),
    **dict.fromkeys(("n_folds", "kfold", "n_splits", "folds"), "cv"),
    **dict.fromkeys(("seed", "fold_seed", "random_seed"), "random_state"),
    **dict.fromkeys(("out_dtype", "output_dtype"), "dtype"),
    **dict.fromkeys(("unseen", "handle_unseen"), "handle_unknown"),
    **dict.fromkeys(("missing_values", "handle_na"), "handle_missing"),
    **dict.fromkeys(("return_df", "output_type"), "nothing: a frame gives a frame"),
    **dict.fromkeys(("verbose", "drop_invariant", "on_host"), "nothing: leave it out"),
    "has_time": "cv=Ordered(shuffle=False)",
    "fold_permutation_block": "cv=Ordered(block=)",
    "split_method": "cv=KFold(order=)",
    "target_mean": "prior",
    "groups": "cv=GroupKFold(groups=)",
    "a": "priors of CatBoostEncoder, or smooth=MEstimate(a)",
    "drop_first": "drop='first'",
    "cat_l2": "regularization",
    "encoding_method": "TargetEncoder, CountEncoder or OrdinalEncoder, a class for each",
    "quantile": "StatisticEncoder([('quantile', q)])",
    "stat": "StatisticEncoder",
}
# What schemes and smoothings have in place of one.
IN_SCHEMES = {
    **dict.fromkeys(("folds", "n_folds", "cv"), "n_splits"),
    **dict.fromkeys(("seed", "fold_seed", "random_seed"), "random_state"),
    **dict.fromkeys(("a", "alpha", "smooth", "p_smooth", "cat_smooth"), "m"),
    "shuffle": "order='random' or order='contiguous'",
    "has_time": "shuffle=False",
    "fold_permutation_block": "block",
    "test_size": "fraction",
    "min_samples_leaf": "k",
    "smoothing": "f",
}
# What options of category_encoders are called: the first that is allowed.
OPTIONS = {"value": ("category", "prior"), "return_nan": ("nan",)}
# The parameter of a scheme that names a column.
OF_COLUMNS = {"KFold": "by", "GroupKFold": "groups", "TimeFolds": "time"}
# What encoders have that learn from a target.
OF_TARGETS = ("cv", "smooth", "target_type", "prior", "shuffle", "random_state")


def unknown_keyword(owner: type, name: str) -> TypeError:
    """Error for a parameter that a class does not have; names the one that was meant."""
    known = list(inspect.signature(owner).parameters)
    begun = f"{owner.__name__}() got an unexpected keyword argument {name!r}"
    encodes = "columns" in known
    meant = (INSTEAD if encodes else IN_SCHEMES).get(name)
    # Ours, unless it is words.
    word = None if meant is None else meant.partition("=")[0].partition(":")[0]
    if encodes and "cv" not in known and not {name, word}.isdisjoint(OF_TARGETS):
        return TypeError(f"{begun}: it is for encoders that learn from a target, and this one does not. Leave it out.")
    if meant is not None and word is not None and (word in known or word == "nothing" or not word.islower()):
        return TypeError(f"{begun}. What takes its place here: {meant}.")
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return TypeError(f"{begun}. Did you mean {near[0]!r}?")
    return TypeError(f"{begun}. It has: {', '.join(known)}." if known else f"{begun}. It has no parameters.")
