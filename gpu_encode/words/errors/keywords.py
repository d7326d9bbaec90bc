"""Parameters of other libraries, and the parameters that replace them here."""

import difflib
import inspect

# For encoders: replacements of parameters of category_encoders, feature-engine, cuML, NVTabular, CatBoost and pandas.
INSTEAD = {
    **dict.fromkeys(("cols", "variables", "cat_features", "cat_cols", "features"), "columns"),
    **dict.fromkeys(("min_samples_leaf", "smoothing"), "smooth=Sigmoid(k=min_samples_leaf, f=smoothing)"),
    **dict.fromkeys(("m", "p_smooth", "cat_smooth"), "smooth=MEstimate(m)"),
    **dict.fromkeys(("sigma", "randomized"), "cv: training encodings need no noise if no row sees its own target"),
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
# The same for schemes and smoothings.
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
# Options of category_encoders, and their names here: the first allowed one is suggested.
OPTIONS = {"value": ("category", "prior"), "return_nan": ("nan",)}
# The parameter of a scheme that names a column.
OF_COLUMNS = {"KFold": "by", "GroupKFold": "groups", "TimeFolds": "time"}
# Parameters of encoders that learn from a target.
OF_TARGETS = ("cv", "smooth", "target_type", "prior", "shuffle", "random_state")


def unknown_keyword(owner: type, name: str) -> TypeError:
    """Error for a parameter that a class does not have; it names the parameter that was probably meant."""
    # Parameters without a name are written as Python writes them: *lengths.
    several = inspect.Parameter.VAR_POSITIONAL
    parameters = inspect.signature(owner).parameters
    known = [f"*{one.name}" if one.kind is several else one.name for one in parameters.values()]
    begun = f"{owner.__name__}() got an unexpected keyword argument {name!r}"
    encodes = "columns" in known
    meant = (INSTEAD if encodes else IN_SCHEMES).get(name)
    # The name of our parameter, unless the replacement is a sentence.
    word = None if meant is None else meant.partition("=")[0].partition(":")[0]
    if encodes and "cv" not in known and not {name, word}.isdisjoint(OF_TARGETS):
        return TypeError(f"{begun}: it is for encoders that learn from a target, and this one does not. Leave it out.")
    if meant is not None and word is not None and (word in known or word == "nothing" or not word.islower()):
        return TypeError(f"{begun}. Here it is replaced by: {meant}.")
    near = difflib.get_close_matches(name, [one for one in known if one.isidentifier()], n=1)
    if near:
        return TypeError(f"{begun}. Did you mean {near[0]!r}?")
    return TypeError(f"{begun}. It has: {', '.join(known)}." if known else f"{begun}. It has no parameters.")
