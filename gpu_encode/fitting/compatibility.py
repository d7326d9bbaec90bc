"""Check the parameters and columns that must be the same in all calls of `partial_fit` and in merged encoders."""

from collections.abc import Sequence
from itertools import compress
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gpu_encode.fitting.columns import Selection
from gpu_encode.fitting.inputs import SummedColumn
from gpu_encode.fitting.model import Model, position_of
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.formulas.infrequent import Infrequent
from gpu_encode.formulas.ranks import Ranks
from gpu_encode.formulas.smoothing import Smoothing
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.formulas.summaries import Summaries
from gpu_encode.schemes import Scheme
from gpu_encode.sums.category_sums import SumSpec
from gpu_encode.sums.targets import UNDECIDED
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.errors.parameters import no_ages
from gpu_encode.words.errors.tables import other_columns
from gpu_encode.words.errors.targets import merge_of_other_targets
from gpu_encode.words.errors.values import in_one_line

# Parameters of statistics that have another name in the encoder.
ENCODER_NAMES = {
    "smoothing": "smooth",
    "unknown": "unknown_value",
    "missing": "encoded_missing_value",
}


def check_same_statistic(known: Model, parameters: Parameters) -> None:
    """Raise ValueError if the statistic has changed since the first call."""
    if not known.rules:
        return
    # The statistics of several keys are compared key by key, once it is known which key has which statistic.
    if parameters.by_key:
        return
    before, now = known.rules[0].statistic, parameters.statistic
    earlier, later = parameters_of(before), parameters_of(now)
    name = first_other(earlier, later)
    if name is None:
        return
    if isinstance(before, Summaries) and isinstance(now, Summaries):
        earlier |= as_user_gave(before, keys_of(known), values_of(known) if before.of_columns else None)
        later |= as_user_gave(now, parameters.columns, parameters.values)
    raise _other_parameters(name, earlier[name], later[name])


def check_same_columns(
    known: Model, frame: Frame | Pieces, selection: Selection, summed: Sequence[SummedColumn]
) -> None:
    """Raise ValueError if a later call encodes or sums other columns of X than the first call."""
    entries, later_entries = (
        [tuple(map(frame.label, entry.columns)) for entry in columns.entries]
        for columns in (known.selection, selection)
    )
    if entries != later_entries:
        raise other_columns(entries, later_entries)
    names, later_names = [info.name for info in known.targets], [column.target.name for column in summed]
    if summed and names != later_names:
        of_columns = any(rule.statistic.names_targets for rule in known.rules)
        raise _other_parameters("values", names if of_columns else None, later_names)


def first_other(earlier: dict[str, Any], later: dict[str, Any]) -> str | None:
    """Give the name of the first parameter that has changed; equal numbers of different types are the same."""
    for name, other in later.items():
        one = earlier.get(name, other)
        equal = isinstance(one, Real) and isinstance(other, Real) and bool(one == other)
        if not equal and repr(one) != repr(other):
            return name
    return None


def as_user_gave(statistic: Summaries, keys: Any, values: Any) -> dict[str, Any]:
    """Give statistics and values as the user gave them; statistics by key are a dict, which has the values, too."""
    if statistic.pairs is None:
        return {"statistics": statistic.statistics, "values": values if statistic.of_columns else None}
    by_key = {
        key: {value: statistics for value, statistics in zip(values, per_value, strict=True) if statistics}
        for key, per_value in zip(keys, statistic.pairs, strict=True)
    }
    return {"statistics": by_key, "values": None}


def keys_of(known: Model) -> list[Any]:
    """Give the names of the encoded columns and joint keys; without names, their positions."""
    names = known.feature_names or range(known.n_features)
    members = [tuple(names[position] for position in entry.members) for entry in known.selection.entries]
    return [key if len(key) > 1 else key[0] for key in members]


def values_of(known: Model) -> list[Any]:
    """Give the names of the columns of values; columns without a name are called x0, x1 ..."""
    named = known.feature_names is not None
    return [info.name if named else position_of(info.name, None) for info in known.targets]


def check_same_parameters(
    known: Model,
    parameters: Parameters,
    rules: Sequence[EncodingRule],
    specs: Sequence[SumSpec],
    keys: Sequence[CategoryIndex],
) -> None:
    """Raise ValueError if a parameter that shapes the encodings has changed since the first call."""
    decided = [info.kind != UNDECIDED for info in known.targets]
    before = of_all_entries(known, [sums.spec for sums in compress(known.statistics[0], decided)])
    now = of_all_entries(parameters, [*compress(specs, decided)])
    for old_rule, rule, old_key, key in zip(known.rules, rules, known.keys, keys, strict=True):
        earlier = parameters_of(old_rule.statistic) | entry_parameters(old_rule, old_key, parameters.as_unseen, before)
        later = parameters_of(rule.statistic) | entry_parameters(rule, key, parameters.as_unseen, now)
        name = first_other(earlier, later)
        if name is not None:
            raise _other_parameters(name, earlier[name], later[name])


def _other_parameters(name: str, before: object, now: object) -> ValueError:
    """Error for a parameter that shapes the encodings and has changed since earlier calls."""
    return ValueError(
        f"partial_fit was called with other parameters than before: {name} is now {in_one_line(now)} and was "
        f"{in_one_line(before)}. Set it back, or call fit to start again."
    )


def of_all_entries(source: Model | Parameters, specs: Sequence[SumSpec]) -> dict[str, Any]:
    """Give the parameters that all entries share; `drop` as the class at which the outputs of each target begin."""
    drop = "first" if any(spec.first_output for spec in specs) else None
    return {"indicators": source.indicators, "dtype": source.dtype, "drop": drop}


def entry_parameters(rule: EncodingRule, key: CategoryIndex, as_unseen: str, of_all: dict[str, Any]) -> dict[str, Any]:
    """Give the parameters of an entry that must not change between calls, by their names in the encoder."""
    infrequent, of_statistic = rule.infrequent or Infrequent(), parameters_of(rule.statistic)
    others = {
        "handle_unknown": "error" if rule.refuses_unknown else as_unseen if rule.unseen is None else rule.unseen,
        "handle_missing": as_unseen if rule.missing == "prior" else rule.missing,
        "prior": rule.prior,
        "min_count": rule.min_count,
        "min_frequency": infrequent.min_frequency,
        "max_categories": infrequent.max_categories,
        "handle_infrequent": "category" if infrequent.pooled else as_unseen,
        "scale": rule.scale,
        "hierarchy": key.entry.rule,
        "drop": of_all["drop"] if rule.drop is None else rule.drop,
        "categories": key.vocabularies[0].to_numpy().tolist() if key.given else "auto",
    }
    # If the statistic has a parameter of the same name, it is the statistic's parameter that the user gave.
    return {name: value for name, value in {**of_all, **others}.items() if name not in of_statistic}


def parameters_of(statistic: Statistic) -> dict[str, Any]:
    """Give the parameters of a statistic, by the names that they have in its encoder."""
    if isinstance(statistic, Smoothing):
        return {"smooth": statistic}
    if isinstance(statistic, Summaries):
        statistics = statistic.statistics if statistic.pairs is None else statistic.pairs
        return {"statistics": statistics, "values": statistic.of_columns, "ddof": statistic.ddof}
    names = ENCODER_NAMES | ({"seed": "random_state"} if isinstance(statistic, Ranks) else {})
    # The listed categories themselves are compared elsewhere.
    given = {name: value for name, value in statistic.get_params(deep=False).items() if name != "listed"}
    return {names.get(name, name): value for name, value in given.items()}


def check_rows_add_up(call: str, parameters: Parameters, learned: Sequence[Model]) -> None:
    """Raise ValueError if what new rows see is not the sum of what calls on some of the rows have learned.

    `merge` adds rows whose folds `fit` has found, so that folds may follow from the values of rows.  The models of
    earlier calls may have been learned under another scheme.
    """
    for scheme in parameters.every_scheme:
        if scheme.by_age:
            raise no_ages(call, scheme)
        if getattr(scheme, "blow_up", False):
            raise ValueError(f"{call} has no folds, which blow-up columns need. Call fit or fit_transform.")
        if scheme.new_rows_see_folds and (call != "merge" or scheme.needs_row_numbers):
            raise _no_calibration_rows(call, scheme)
    for model in learned:
        if model.partial_scheme != parameters.partial_scheme:
            raise _other_rows_seen(call, model.partial_scheme)


def _no_calibration_rows(call: str, scheme: Scheme) -> ValueError:
    """Error for a call that cannot tell which rows calibrate."""
    by_value = "" if scheme.needs_row_numbers else " For more rows, fit another encoder to them and merge."
    return ValueError(
        f"{call} cannot tell which rows of earlier calls calibrate, and under cv={in_one_line(scheme)} new rows see "
        f'these alone. Call fit on all rows that count; or let new rows see all rows, by Holdout(new_rows="all").'
        f"{by_value}"
    )


def _other_rows_seen(call: str, fitted: str) -> ValueError:
    """Error for an encoder whose `cv` now lets new rows see other rows than when it was fitted."""
    before = f"new rows saw rows as under {in_one_line(fitted)}" if fitted else "new rows saw all rows"
    return ValueError(
        f"{call} needs the cv under which an encoder was fitted: {before} then, and would see others under the cv of "
        "now. Set cv back, or call fit again."
    )


def merge_models(encoder: Any, model: Model, others: Sequence[Any]) -> Model:
    """Add to an encoder's model the models of other encoders of the same type, parameters and columns."""
    learned, parameters = model, encoder._parameters()
    check_rows_add_up("merge", parameters, [model])
    for other in others:
        if type(other) is not type(encoder):
            raise TypeError(f"Cannot merge {type(other).__name__} into {type(encoder).__name__}. Give fitted encoders.")
        check_is_fitted(other)
        check_mergeable_parameters(encoder, other)
        check_mergeable_columns(model, other._summed)
        check_rows_add_up("merge", parameters, [other._summed])
        learned = learned.merge(other._summed)
    return learned


def check_mergeable_parameters(one: BaseEstimator, other: BaseEstimator) -> None:
    """Raise ValueError unless two encoders have the same parameters."""
    mine, theirs = one.get_params(deep=True), other.get_params(deep=True)
    for name in sorted({*mine, *theirs}):
        if not are_equal(mine.get(name), theirs.get(name)):
            raise ValueError(
                f"Cannot merge encoders of different parameters: {name} is {mine.get(name)!r} and {theirs.get(name)!r}."
            )


def check_mergeable_columns(one: Model, other: Model) -> None:
    """Raise ValueError unless two models have the same columns and targets."""
    if one.feature_names != other.feature_names or one.n_features != other.n_features:
        mine, theirs = one.feature_names or one.n_features, other.feature_names or other.n_features
        raise ValueError(
            f"Cannot merge encoders of different columns: {mine} and {theirs}. Fit all on the same columns, in the "
            "same order."
        )
    if [target.name for target in one.targets] != [target.name for target in other.targets]:
        raise merge_of_other_targets()


def are_equal(a: Any, b: Any) -> bool:
    """Compare parameters; objects that have parameters themselves are compared by these."""
    if isinstance(a, BaseEstimator) and isinstance(b, BaseEstimator):
        return type(a) is type(b) and repr(a.get_params()) == repr(b.get_params())
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    try:
        return bool(a == b) or repr(a) == repr(b)
    except (TypeError, ValueError):
        return repr(a) == repr(b)
