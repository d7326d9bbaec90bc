"""Readouts that do not go together with a scheme, a hierarchy or a target."""

from collections.abc import Sequence
from typing import Any


def scheme_without_tables(owner: str, statistic: Any, scheme: object) -> ValueError:
    """Error for a scheme whose rows see sums of their own, where codes follow from all categories at once."""
    return ValueError(
        f"{statistic.asked} of {owner} looks at all categories at once, which {type(scheme).__name__} would ask "
        "for every row. Take cv=KFold() or another scheme with folds, or do without it."
    )


def values_in_a_row_order(owner: str, statistic: Any, scheme: object) -> ValueError:
    """Error for values in order under a scheme whose rows see one row after another."""
    return ValueError(
        f"{statistic.asked} of {owner} needs the values of a category in order, which {type(scheme).__name__} would "
        "ask of the rows before every row. Take cv=LeaveOneOut(), cv=KFold() or another scheme with folds."
    )


def hierarchy_of_tables(owner: str, statistic: object) -> ValueError:
    """Error for levels above a column, where codes follow from all categories at once."""
    return ValueError(
        f"{type(statistic).__name__} of {owner} has a common value of its own, from which categories differ, and so "
        "takes no hierarchy. Leave out `hierarchy`, or take another smoothing."
    )


def target_of_another_kind(owner: str, found: str, kinds: Sequence[str]) -> ValueError:
    """Error for a target of a kind that an encoder has no codes for; worded so that scikit-learn's checks know it."""
    advice = 'Pass target_type="continuous"' if "continuous" in kinds else "Pass labels, such as y > threshold"
    return ValueError(
        f"Unknown label type: {owner} needs a {' or '.join(kinds)} target, but y is {found}. {advice}, or take "
        "TargetEncoder."
    )


def prior_of_tables(owner: str, statistic: object, prior: object) -> ValueError:
    """Error for a prior beside a model that estimates its own."""
    return ValueError(
        f"{type(statistic).__name__} of {owner} estimates the common value of the categories: leave out "
        f"prior={prior!r}, or take another smoothing."
    )


def infrequent_by_row(owner: str, scheme: object) -> ValueError:
    """Error for infrequent categories under a scheme whose rows see sums of their own."""
    return ValueError(
        f"{owner} tells infrequent categories by all that a fold sees; rows of {type(scheme).__name__} see sums of "
        "their own. Leave out min_frequency and max_categories (min_count works), or take cv=KFold()."
    )


def pooled_beside_hierarchy(owner: str) -> ValueError:
    """Error for one code of all infrequent categories where there is another place for them."""
    return ValueError(
        f'{owner} does not take handle_infrequent="category" beside a hierarchy, whose levels are the place of '
        "infrequent categories. Leave one of them out."
    )


def pooled_distributions(owner: str, statistic: Any) -> ValueError:
    """Error for one code of all infrequent categories where it is read off values in order."""
    return ValueError(
        f'{owner} does not take handle_infrequent="category" for {statistic.asked}, which no sums give. Leave '
        "handle_infrequent out, or make an encoder of its own for them."
    )


def beyond_scale(owner: str, scale: object, computed: str, values: str, least: float, largest: float) -> ValueError:
    """Error for codes that may have no place on their scale."""
    wanted = "shares between 0 and 1" if scale == "logit" else "numbers of at least 0"
    return ValueError(
        f"scale={scale!r} of {owner} is for {wanted}, but {computed} of {values} may be anything from {least:g} to "
        f'{largest:g}. Take scale="identity", leave it out, or give other values.'
    )
