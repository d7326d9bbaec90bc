"""The parameters of an encoder, read and checked once per call, at fit."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from numbers import Real
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from gpu_encode.fitting.borders import Cut
from gpu_encode.fitting.columns import Selection, value_of_each_key
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.formulas.infrequent import Infrequent, check_rule
from gpu_encode.formulas.scales import check_ranges, check_scale
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.schemes import Greedy, KFold, LeaveOneOut, Ordered, Scheme, naming
from gpu_encode.schemes import resolve as resolve_scheme
from gpu_encode.schemes.plans import FoldPlan, OrderedPlan, Plan, leak_of
from gpu_encode.seam import devices
from gpu_encode.sums.targets import LABELLED, UNDECIDED, Target
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.errors.parameters import bad_option, bad_parameter, check_number, check_option
from gpu_encode.words.errors.targets import as_python
from gpu_encode.words.notices import LeakWarning, warn

INDICATORS = ("unseen", "missing")


@dataclass(frozen=True, eq=False)
class Parameters:
    """Parameters of any encoder; a parameter that an encoder does not have keeps its default.

    Parameters
    ----------
    owner : str
        The encoder's name, for messages.
    statistic : Statistic
    by_key : dict of key to Statistic
        Statistics of keys that have one of their own; all other keys have `statistic`.
    keyed_parameter : str
        The name of the encoder's parameter that gives these statistics.
    scheme_by_key : dict of key to Scheme
        Schemes of keys that have one of their own; all other keys have `scheme`.
    of_numbers : list of KFold
        The schemes that were given as a number of folds.
    target_type : str, list or None
        None for an encoder that reads no target.
    values : list, optional
        Columns of X that are summed instead of a target.
    labelled : bool
        Whether these columns may hold text and dates.
    select : callable, optional
        Gives the selection of a frame, if keys are counted in pairs.
    together : bool
        Whether encodings are computed from all categories at once, for any statistic.
    cut : Cut, optional
        The borders at which the target is cut.
    as_unseen : str
        The word by which `handle_unknown` and `handle_missing` ask for the encoding of categories that no visible row
        has.
    prior : str, float, dict or None
        None for the statistic's own prior; a dict has a prior for each key that it names, and all others have "mean".
    indicators : bool or list of str
        Kept as a tuple of names.
    handle_infrequent : str
        "category": infrequent categories have one encoding together; `as_unseen`: they count as unseen.
    """

    owner: str
    statistic: Statistic
    by_key: Mapping[Any, Statistic] = field(default_factory=dict)
    keyed_parameter: str = "smooth"
    target_type: Any = None
    missing_target: str = "error"
    values: Any = None
    labelled: bool = False
    select: Callable[[Any], Selection] | None = None
    together: bool = False
    cut: Cut | None = None
    categories: Any = "auto"
    scheme: Scheme = field(default_factory=Greedy)
    scheme_by_key: Mapping[Any, Scheme] = field(default_factory=dict)
    of_numbers: Sequence[KFold] = ()
    columns: Any = None
    as_unseen: str = "prior"
    prior: Any = None
    handle_unknown: Any = "prior"
    handle_missing: str = "category"
    min_count: float = 0.0
    min_frequency: Any = None
    max_categories: Any = None
    handle_infrequent: str | None = None
    hierarchy: Any = None
    scale: Any = "identity"
    indicators: Any = False
    drop: Any = None
    dtype: Any = "float64"
    device: str = "auto"

    @classmethod
    def of(cls, encoder: BaseEstimator, statistic: Statistic, **given: Any) -> Self:
        """Read and check the parameters of an encoder that are fields of this class; `given` replaces some of them."""
        # An estimator has each parameter as an attribute; `get_params` takes longer than a small fit.
        attributes = vars(encoder)
        taken = {name: attributes[name] for name in cls.__dataclass_fields__ if name in attributes}
        owner = getattr(encoder, "_owner", type(encoder).__name__)
        parameters = cls(**taken | {"owner": owner, "statistic": statistic} | given)
        parameters.check()
        return parameters

    def __post_init__(self) -> None:
        if isinstance(self.dtype, (type, np.dtype)):
            object.__setattr__(self, "dtype", np.dtype(self.dtype).name)
        object.__setattr__(self, "indicators", list_indicators(self.indicators))

    @property
    def training_columns(self) -> list[Any]:
        """Columns of X that only training reads and that are not encoded: the columns of the scheme, and values."""
        columns = []
        for scheme in self.every_scheme:
            columns += scheme.used_columns()
        return [*columns, *(self.values or [])]

    @property
    def date_columns(self) -> list[Any]:
        """Columns of values for which each new row needs a date of its own."""
        if self.values is None:
            return []
        named = enumerate(self.values)
        return [column for number, column in named if self.statistic.of_target(number).needs.dates]

    @property
    def reads_target(self) -> bool:
        """Whether encodings depend on a target, and not only on the number of rows."""
        return self.target_type is not None

    @property
    def trains_apart(self) -> bool:
        """Whether training rows may get other encodings than new rows with the same values."""
        return self.reads_target or not all(isinstance(scheme, Greedy) for scheme in self.every_scheme)

    @property
    def reads_classes(self) -> bool:
        """Whether the folds of rows depend on their classes, under any scheme."""
        return any(scheme.reads_classes for scheme in self.every_scheme)

    @property
    def every_statistic(self) -> list[Statistic]:
        """The statistics of all keys, without telling which key has which."""
        return [self.statistic, *self.by_key.values()]

    @property
    def every_scheme(self) -> list[Scheme]:
        """The schemes of all keys, each scheme once, without telling which key has which."""
        if not self.scheme_by_key:
            return [self.scheme]
        schemes = [*([] if self._names_all(self.scheme_by_key) else [self.scheme]), *self.scheme_by_key.values()]
        return list({id(scheme): scheme for scheme in schemes}.values())

    def _names_all(self, by_key: Mapping[Any, Any]) -> bool:
        """Whether a dict is known to name every key before there is a table: it has as many keys as `columns`."""
        return isinstance(self.columns, list) and len(self.columns) == len(by_key)

    @property
    def leaves_one_out(self) -> bool:
        """Whether the training rows of all keys see all rows but themselves."""
        return all(isinstance(scheme, LeaveOneOut) for scheme in self.every_scheme)

    @property
    def differs_by_key(self) -> bool:
        """Whether keys may have other statistics, schemes, priors or policies than their neighbours."""
        named = bool(self.by_key) or bool(self.scheme_by_key)
        return named or isinstance(self.prior, dict) or isinstance(self.handle_unknown, dict)

    @property
    def needs_tables(self) -> bool:
        """Whether encodings are computed from all categories at once, so that no row can see sums of its own."""
        return self.together or any(one.needs.table for one in self.every_statistic) or self.infrequent is not None

    @property
    def partial_scheme(self) -> str:
        """The schemes if new rows see only some folds, or each fold apart, or rows by their age; "" for all rows."""
        if not any(map(attrgetter("new_rows_see_folds"), self.every_scheme)):
            return ""
        return repr(dict(self.scheme_by_key) if self.scheme_by_key else self.scheme)

    def check(self) -> None:
        """Raise ValueError for unknown options and numbers out of range."""
        owner, words = self.owner, (self.as_unseen, "nan", "error")
        for policy in self.policies_for_unknown:
            if not isinstance(policy, Real) or isinstance(policy, bool):
                check_option(owner, "handle_unknown", policy, words, "a number", "a dict of one of these per column")
            elif np.isinf(float(policy)):
                raise bad_parameter(owner, "handle_unknown", policy, "must not be infinite")
        check_option(owner, "handle_missing", self.handle_missing, ("category", *words))
        check_option(owner, "missing_target", self.missing_target, ("error", "keep"))
        check_number(owner, "min_count", self.min_count, low=0.0)
        check_indicators(owner, self.indicators)
        if not isinstance(self.drop, (str, Real, np.generic, type(None))):
            raise bad_option(owner, "drop", self.drop, ("None", "'first'", "the label of a class"))
        check_option(owner, "dtype", self.dtype, ("float64", "float32"))
        check_option(owner, "device", self.device, devices.DEVICES)
        if not (isinstance(self.scale, str) and self.scale == "identity"):
            check_scale(owner, self.scale)
        parts: list[Statistic | Cut] = [*self.every_statistic, *([self.cut] if self.cut else [])]
        for part in parts:
            part.check()
        if self.prior is not None or self.statistic.takes_prior:
            read_each(self.prior, "mean", self._check_one_prior, "prior")
        if not (isinstance(self.categories, list) or (isinstance(self.categories, str) and self.categories == "auto")):
            raise bad_option(
                owner, "categories", self.categories, ("'auto'", "a list of one list of categories per column")
            )
        self._check_infrequent()
        self._check_ages()
        # Statistics and schemes of keys are compared later, once each key has its own.
        if (self.statistic.needs.table or self.statistic.needs.distribution) and not self.differs_by_key:
            self._check_table()

    def _check_table(self) -> None:
        """Raise ValueError for parameters that do not go with a statistic of all categories at once."""
        owner = self.owner
        if self.statistic.needs.distribution and getattr(self.scheme, "half_life", None) is not None:
            raise ValueError(
                f"{self.statistic.asked} of {owner} needs whole rows, but half_life gives rows fractional weights. "
                "Take window instead, or statistics of sums: count, sum, mean, var, std, sem, skew, kurt."
            )
        if self.statistic.needs.dates:
            self._check_dates()
        if self.statistic.needs.table and self.statistic.needs.distribution and isinstance(self.scheme, Ordered):
            raise ValueError(
                f"{self.statistic.asked} of {owner} needs the sorted values of a category; with "
                f"{type(self.scheme).__name__}, they would have to be sorted for every row. Take cv=LeaveOneOut(), "
                "cv=KFold() or another scheme with folds."
            )
        if not self.statistic.needs.distribution and isinstance(self.scheme, (LeaveOneOut, Ordered)):
            raise ValueError(
                f"{self.statistic.asked} of {owner} looks at all categories at once; with "
                f"{type(self.scheme).__name__}, it would have to do so for every row. Take cv=KFold() or another "
                "scheme with folds, or do without it."
            )
        if self.hierarchy is not None:
            raise ValueError(
                f"{type(self.statistic).__name__} of {owner} estimates the common value of the categories, so it takes "
                "no hierarchy. Leave out `hierarchy`, or take another smoothing."
            )
        if self.prior is not None and not (isinstance(self.prior, str) and self.prior == "mean"):
            raise ValueError(
                f"{type(self.statistic).__name__} of {owner} estimates the common value of the categories: leave "
                f"out prior={self.prior!r}, or take another smoothing."
            )

    def _check_dates(self) -> None:
        """Raise ValueError for schemes under which a row's own date does not tell which dates the row sees."""
        if getattr(self.scheme, "blow_up", False):
            raise ValueError(
                f"'seconds_since_last' of {self.owner} has one column, but blow_up=True asks for one for each fold. "
                "Leave one of them out."
            )
        columns = self.date_columns
        in_order = isinstance(self.scheme, Ordered)
        if in_order and (self.scheme.burn_in or self.scheme.by_age or columns != [self.scheme.time]):
            raise ValueError(
                f"'seconds_since_last' of {self.owner} takes rows in the order of its own column, but {self.scheme!r} "
                f"has another order. Take cv=Ordered(time=...) of {columns!r}, without burn_in, half_life or window, "
                "or TimeFolds, folds or LeaveOneOut()."
            )

    def _check_ages(self) -> None:
        """Raise ValueError for encodings that need sums over all categories, if these change with the age of rows."""
        if not isinstance(self.scheme, Ordered) or not self.scheme.by_age:
            return
        asked = None
        if isinstance(self.prior, str) and self.prior == "category_mean":
            asked = 'prior="category_mean"'
        elif any(statistic.needs.categories for statistic in self.every_statistic):
            asked = f"{self.keyed_parameter}={self.statistic!r}"
        if asked is not None:
            raise ValueError(
                f"{asked} of {self.owner} needs the means of all categories; with half_life or window of Ordered, they "
                "would have to be computed again for every row. Take cv=TimeFolds(...), or do without it."
            )

    def _check_infrequent(self) -> None:
        """Raise ValueError for limits of infrequent categories that are not valid, or that other parameters forbid."""
        owner = self.owner
        if not (self.min_frequency is None and self.max_categories is None):
            check_rule(owner, self.min_frequency, self.max_categories)
        if self.handle_infrequent is not None:
            check_option(owner, "handle_infrequent", self.handle_infrequent, (self.as_unseen, "category"))
        if self.infrequent is not None and isinstance(self.scheme, (LeaveOneOut, Ordered)):
            raise ValueError(
                f"{owner} decides which categories are infrequent for each fold, but {type(self.scheme).__name__} has "
                "no folds. Leave out min_frequency and max_categories (min_count works), or take cv=KFold()."
            )
        if self.handle_infrequent == "category" and self.hierarchy is not None:
            raise ValueError(
                f'{owner} does not take handle_infrequent="category" together with a hierarchy, whose levels stand for '
                "infrequent categories. Leave one of them out."
            )
        if self.handle_infrequent == "category" and self.statistic.needs.distribution:
            raise ValueError(
                f'{owner} does not take handle_infrequent="category" for {self.statistic.asked}, which cannot be '
                "computed from sums. Leave handle_infrequent out, or take another encoder for these statistics."
            )

    @property
    def infrequent(self) -> Infrequent | None:
        """Which categories are infrequent; None if no limit was given."""
        if self.min_frequency is None and self.max_categories is None:
            return None
        # A search over parameters gives numbers of NumPy, which a saved model cannot hold.
        least, most = (
            limit.item() if isinstance(limit, np.generic) else limit
            for limit in (self.min_frequency, self.max_categories)
        )
        return Infrequent(least, most, self.handle_infrequent == "category")

    def _check_one_prior(self, prior: Any, name: str) -> None:
        owner = self.owner
        # Encodings lie between means and priors, so the scale has to be defined for priors, too.
        low = -np.inf if self.scale == "identity" else 0.0
        high = 1.0 if self.scale == "logit" else np.inf
        if isinstance(prior, str):
            check_option(owner, name, prior, ("mean", "category_mean"), "a number")
        elif not isinstance(prior, Real) or isinstance(prior, bool):
            raise bad_option(owner, name, prior, ("'mean'", "'category_mean'", "a number", "a dict of one per column"))
        else:
            check_number(owner, name, prior, low=low, high=high)

    def check_targets(self, targets: Sequence[Target]) -> None:
        """Raise ValueError for targets from which the encodings cannot be computed; all targets are known by now."""
        kinds = [target.kind for target in targets]
        if UNDECIDED in kinds:
            return
        for statistic in self.every_statistic:
            statistic.check_targets(self.owner, kinds)
        if self.dropped_label is not None:
            _check_dropped(self.owner, self.dropped_label, [target.classes for target in targets])
        for number, target in enumerate(targets):
            if target.kind in LABELLED:
                self._check_labelled(self.statistic.of_target(number), target)
        if self.scale == "identity":
            return
        for number, target in enumerate(targets):
            # For labels, columns of 0 and 1 are summed.
            bounds = (0.0, 1.0)
            if target.kind == "continuous":
                bounds = float(target.values.min()), float(target.values.max())
            for statistic in self.by_key.values() if self._names_all(self.by_key) else self.every_statistic:
                check_ranges(self.owner, self.scale, statistic.of_target(number).ranges(*bounds), target.name)

    def _check_labelled(self, statistic: Statistic, target: Target) -> None:
        """Raise ValueError for statistics that a column of text or dates cannot have."""
        statistic.check_labelled(self.owner, target.name, target.kind)
        if self.scale != "identity":
            raise _number_for_values(self.owner, "scale", self.scale, target.name, target.kind)
        numbers = [
            policy for policy in self.policies_for_unknown if not isinstance(policy, str) and not np.isnan(policy)
        ]
        if numbers and any(statistic.are_values()):
            raise _number_for_values(self.owner, "handle_unknown", numbers[0], target.name, target.kind)

    def of_each_key(self, selection: Selection, frame: Frame | Pieces) -> "list[Parameters]":
        """Give the parameters of each key alone; if a key has other parameters than the encoder, they are checked."""
        if not self.differs_by_key:
            return [self] * len(selection.entries)
        statistics = value_of_each_key(self.keyed_parameter, self.by_key, self.statistic, selection, frame)
        schemes, alike = self.scheme_of_each_key(selection, frame), replace(self, by_key={}, scheme_by_key={})
        priors = value_of_each_key("prior", self.prior, "mean", selection, frame)
        policies = value_of_each_key("handle_unknown", self.handle_unknown, self.as_unseen, selection, frame)
        each = [
            replace(alike, statistic=statistic, scheme=scheme, prior=prior, handle_unknown=policy)
            for statistic, scheme, prior, policy in zip(statistics, schemes, priors, policies, strict=True)
        ]
        for of_key in each:
            of_key.check()
        return each

    def scheme_of_each_key(self, selection: Selection, frame: Frame | Pieces) -> list[Scheme]:
        """Give the scheme of every key."""
        return value_of_each_key("cv", self.scheme_by_key, self.scheme, selection, frame)

    def naming_scheme(self, scheme: Scheme) -> AbstractContextManager[None]:
        """Add to an error the key of the dict that gave the scheme, if a dict gave it."""
        for key, own in self.scheme_by_key.items():
            if own is scheme:
                return naming(f"cv[{key!r}]")
        return nullcontext()

    def folds_given_for(self, scheme: Scheme) -> int | None:
        """Give the folds of a scheme that was given as a number of folds; None for any other scheme."""
        for known in self.of_numbers:
            if known is scheme:
                return known.n_splits
        return None

    def rules(self, selection: Selection, frame: Frame | Pieces) -> list[EncodingRule]:
        """Give the rule by which the sums of every key become encodings."""
        least, infrequent = float(self.min_count), self.infrequent
        scale = tuple(self.scale) if isinstance(self.scale, list) else self.scale
        # Keys against which other keys are counted have missing values as a category.
        policies = [self.missing] * (len(selection.entries) - selection.others) + ["category"] * selection.others
        rules: list[EncodingRule] = []
        # Keys that are encoded in the same way share one rule.
        made: dict[tuple[int, int, str], EncodingRule] = {}
        for entry, (own, missing) in enumerate(zip(self.of_each_key(selection, frame), policies, strict=True)):
            statistic, policy = own.statistic.of_key(entry), own.handle_unknown
            alike = id(own), id(statistic), missing
            if alike not in made:
                made[alike] = EncodingRule(
                    statistic,
                    own.prior,
                    # Without a number the statistic decides.
                    {"nan": float("nan")}.get(policy) if isinstance(policy, str) else float(policy),
                    missing,
                    least,
                    infrequent,
                    scale,
                    isinstance(policy, str) and policy == "error",
                    self.dropped_label,
                )
            rules.append(made[alike])
        return rules

    @property
    def dropped_label(self) -> Any:
        """The label of the class that has no column; None if it is the first class, or if every class has a column."""
        return None if isinstance(self.drop, str) and self.drop == "first" else self.drop

    @property
    def policies_for_unknown(self) -> list[Any]:
        """The policies for unknown values, of all columns."""
        return list(self.handle_unknown.values()) if isinstance(self.handle_unknown, dict) else [self.handle_unknown]

    @property
    def has_nan_policy(self) -> bool:
        """Whether encodings may be NaN because the user asked for NaN."""
        return any(isinstance(policy, str) and policy == "nan" for policy in [*self.policies_for_unknown, self.missing])

    @property
    def missing(self) -> str:
        """The policy for missing values, in the words of `EncodingRule`."""
        return "prior" if self.handle_missing == self.as_unseen else self.handle_missing

    def warn_of_plans(self, plans: Sequence[Plan], count_blind: Callable[[Plan], Any] = lambda _: 0) -> None:
        """Warn, once for each plan, if training encodings contain the target of their own row, or if rows see no rows.

        `count_blind` gives the number of rows of a plan that see no rows at all, or "Some".
        """
        for plan in dict(zip(map(id, plans), plans, strict=True)).values():
            if self.reads_target and (leak := leak_of(plan)):
                warn(leak, LeakWarning)
            if number := count_blind(plan):
                self.warn_of_blind_rows(number, plan)

    def warn_of_blind_rows(self, number: object, plan: Plan) -> None:
        """Warn that this number of rows see no rows at all, unless their encodings may be NaN for other reasons."""
        asked_for = isinstance(plan, FoldPlan) and bool(plan.blind)
        if not asked_for and not self.has_nan_policy:
            why = (
                "their earlier folds or times hold no rows"
                if isinstance(plan, (FoldPlan, OrderedPlan))
                else "there are no other rows"
            )
            warn(f"{number} rows see no rows at all and get NaN: {why}.")


def _check_dropped(owner: str, label: object, classes: Sequence[NDArray[Any] | None]) -> None:
    """Raise ValueError unless each target with classes has a class of this label, and another class."""
    every: list[list[Any]] = [labels.tolist() for labels in classes if labels is not None]
    if not every or any(label not in labels for labels in every):
        absent: list[Any] = next((labels for labels in every if label not in labels), [])
        shown = f"y holds {', '.join(map(repr, absent[:10]))}" if absent else "y is a quantity"
        raise ValueError(
            f"drop={as_python(label)} of {owner} is no class: {shown}. Give None, 'first' or the label of a class."
        )
    if any(len(labels) == 1 for labels in every):
        raise ValueError(f"drop={as_python(label)} leaves no column: y holds one class only. Choose drop=None.")


def _number_for_values(owner: str, parameter: str, found: object, column: object, kind: str) -> ValueError:
    """Give the error for a number that would be mixed with text or dates."""
    held = "text" if kind == "text" else "dates"
    return ValueError(
        f"{parameter}={found!r} of {owner} is for numbers, but statistics of the column {column!r} are {held}. Leave "
        "it out, or give this column an encoder of its own."
    )


def read_each(given: Any, others: Any, read: Callable[[Any, str], Any], name: str) -> tuple[Any, dict[Any, Any]]:
    """Read a parameter that is one value for all keys, or a dict with a value for each key that it names.

    Parameters
    ----------
    given : object or dict
    others : object
        The value of keys that a dict does not name: the default of the parameter.
    read : callable
        ``read(value, name)`` checks a value and gives its meaning; `name` is for messages.
    name : str

    Returns
    -------
    for_others : object
    named : dict
        Empty if one value is for all keys.
    """
    if not isinstance(given, Mapping):
        return read(given, name), {}
    return read(others, name), {key: read(value, f"{name}[{key!r}]") for key, value in given.items()}


def read_scheme(encoder: Any) -> dict[str, Any]:
    """Read the `cv` of an encoder, one for all keys, as fields of `Parameters`."""
    scheme = resolve_scheme(encoder.cv, getattr(encoder, "shuffle", True), encoder.random_state, encoder._owner)
    of_numbers = [scheme] if isinstance(scheme, KFold) and scheme is not encoder.cv else []
    return {"scheme": scheme, "of_numbers": of_numbers}


def read_schemes(encoder: Any, by_default: Any = 5, auto: Any = None) -> dict[str, Any]:
    """Read the `cv` of an encoder whose keys may have schemes of their own, as fields of `Parameters`.

    Parameters
    ----------
    encoder : Encoder
    by_default : object
        The scheme of keys that a dict does not name.
    auto : object, optional
        The meaning of "auto", if `cv` may be "auto".
    """
    # If one scheme is given for several keys, they share the scheme and its random draw.
    read: dict[int, tuple[Any, Scheme]] = {}
    of_numbers: list[KFold] = []

    def read_one(cv: Any, name: str) -> Scheme:
        given = auto if auto is not None and isinstance(cv, str) and cv == "auto" else cv
        if id(given) not in read:
            scheme = resolve_scheme(given, encoder.shuffle, encoder.random_state, encoder._owner, name)
            several = getattr(scheme, "blow_up", False) or not getattr(scheme, "average", True)
            if several and isinstance(encoder.cv, Mapping):
                law = "must give one column for each encoding: give columns of such a scheme an encoder of their own"
                raise bad_parameter(encoder._owner, name, scheme, law)
            read[id(given)] = given, scheme
            if isinstance(scheme, KFold) and scheme is not given:
                of_numbers.append(scheme)
        return read[id(given)][1]

    scheme, by_key = read_each(encoder.cv, by_default, read_one, "cv")
    return {"scheme": scheme, "scheme_by_key": by_key, "of_numbers": of_numbers}


def list_indicators(indicators: Any) -> Any:
    """Give the names of the indicators as a tuple: True means "unseen"; anything but bool and list stays as it is."""
    if isinstance(indicators, bool):
        return ("unseen",) if indicators else ()
    return tuple(indicators) if isinstance(indicators, list) else indicators


def check_indicators(owner: str, indicators: Any) -> None:
    """Raise ValueError unless these names, as `list_indicators` gives them, are known and different."""
    known = isinstance(indicators, tuple) and all(isinstance(name, str) and name in INDICATORS for name in indicators)
    if not known or len(set(indicators)) < len(indicators):
        given = list(indicators) if isinstance(indicators, tuple) else indicators
        raise bad_option(owner, "indicators", given, ("True", "False", f"a list of some of {list(INDICATORS)}"))
