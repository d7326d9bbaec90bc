"""The methods of an encoder for data of Dask: workers profile, sum and encode the partitions that they have."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from sklearn.utils.validation import check_is_fitted

from gpu_encode.encoders.base import Encoder, wanted_container
from gpu_encode.scale import parts
from gpu_encode.scale.dask import tasks
from gpu_encode.scale.dask.exchange import exchange, receive
from gpu_encode.scale.dask.partitions import FramePartitions, Partitions, read
from gpu_encode.scale.dask.trees import add_in_tree, earlier_sums
from gpu_encode.scale.files.encoding import plain_output
from gpu_encode.scale.messages import RowInPartitionError
from gpu_encode.scale.parts import EncodingPlan, with_categories
from gpu_encode.scale.parts.plans import for_new_rows, unfitted
from gpu_encode.words import notices
from gpu_encode.words.errors.targets import no_target

E = TypeVar("E", bound=Encoder)

# All partitions send rows to all groups: with more groups the pieces are smaller, with fewer groups tasks are larger.
MOST_GROUPS = 64
MOST_ROWS = 1 << 26


def fit(encoder: E, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> E:
    """Learn the encodings of new rows now, in two passes over the partitions; rows stay on the workers.

    Parameters
    ----------
    encoder : TargetEncoder
    X : dask.dataframe.DataFrame, or list of Delayed
        Partitions of pandas or cuDF, or Delayed tables of any kind.
    y, sample_weight, groups : Dask series, frame or array, or list of Delayed
        They have the same partitions as X.

    Returns
    -------
    encoder, fitted

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> from gpu_encode import TargetEncoder
    >>> rows = dd.from_pandas(pd.DataFrame({"shop": ["a", "b", "a"], "sold": [1, 0, 1]}), npartitions=2)
    >>> TargetEncoder(smooth=0.0).fit(rows[["shop"]], rows["sold"]).encodings_
    [array([1., 0.])]
    """
    import dask

    partitions = read_training(encoder, X, y, sample_weight, groups)
    (learned,) = dask.compute(fit_lazily(encoder, *plan_rows(encoder, for_new_rows(encoder), partitions))[0])
    # A fit alone gives no training encodings, and can use a simpler scheme than the encoder's.
    spoken = [(message, category) for message, category in learned.warnings if category is not notices.LeakWarning]
    adopt(encoder, learned._replace(warnings=spoken))
    return encoder


def fit_transform(encoder: Encoder, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Any:
    """Learn the encodings of new rows now, and give the training encodings lazily.

    Parameters
    ----------
    encoder, X, y, sample_weight, groups
        As in `fit`.

    Returns
    -------
    dask.dataframe.DataFrame, or list of Delayed
        With the partitions and the index of X.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> from gpu_encode import LeaveOneOut, TargetEncoder
    >>> rows = dd.from_pandas(pd.DataFrame({"shop": ["a", "b", "a"], "sold": [1.0, 0.5, 3.0]}), npartitions=2)
    >>> encodings = TargetEncoder(smooth=0.0, cv=LeaveOneOut()).fit_transform(rows[["shop"]], rows["sold"])
    >>> encodings.compute()["shop"].tolist()
    [3.0, 2.0, 1.0]
    """
    import dask

    encoder._check_container(X)
    partitions = read_training(encoder, X, y, sample_weight, groups)
    asked = in_container(encoder, partitions)
    encoding_plan, partitions = plan_rows(asked, unfitted(asked), partitions)
    # The persisted tables grow only with the categories; if a worker is lost, its tables are computed again.
    learned, tables, meta = dask.persist(*fit_lazily(asked, encoding_plan, partitions))
    learned, meta = dask.compute(learned, meta)
    adopt(encoder, learned)
    if encoding_plan.order is not None:
        encode = encode_in_sequence if encoding_plan.order == "rows" else encode_in_groups
        return encode(partitions, encoding_plan.n_rows, learned, tables, meta)
    return (partitions if needs_target(encoding_plan) else partitions.without_target()).table(
        tasks.encode_partition, meta, tables
    )


def transform(encoder: Encoder, X: Any) -> Any:
    """Give the encodings of new rows, lazily.

    Parameters
    ----------
    encoder : TargetEncoder
        Its present state is used, even if it is fitted again before the encodings are computed.
    X : dask.dataframe.DataFrame, or list of Delayed

    Returns
    -------
    dask.dataframe.DataFrame, or list of Delayed
        With the partitions and the index of X.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> from gpu_encode import TargetEncoder
    >>> encoder = TargetEncoder(smooth=0.0).fit(pd.DataFrame({"shop": ["a", "b", "b"]}), [1, 0, 1])
    >>> rows = dd.from_pandas(pd.DataFrame({"shop": ["b", "never seen"]}), npartitions=2)
    >>> round(encoder.transform(rows).compute(), 4)["shop"].tolist()
    [0.5, 0.6667]
    """
    encoder._check_container(X)
    check_is_fitted(encoder, "_model")
    partitions = read(X)
    samples = partitions.samples()
    asked = in_container(encoder, partitions)
    meta = None if samples is None else asked.transform(samples[0])
    # The encoder is copied, since it may be fitted again in the meantime.
    return partitions.table(tasks.transform_partition, meta, copy(asked))


def drift(encoder: Encoder, X: Any) -> list[dict[str, Any]]:
    """Compare new rows with the training rows of the encoder now; each worker counts its partitions."""
    model = encoder._counted()
    return read(X).add_up(tasks.count_partition, copy(encoder)).beside(model)


def partial_fit(*_: Any, **__: Any) -> None:
    """Refuse data of Dask: fit another encoder and merge it instead."""
    raise TypeError(
        "partial_fit does not take data of Dask. Fit another encoder of the same parameters to it and merge: "
        "encoder.merge(clone(encoder).fit(X, y))."
    )


def forget(*_: Any, **__: Any) -> None:
    """Refuse data of Dask: its partitions can be forgotten one by one."""
    raise TypeError(
        "forget does not take data of Dask. Give it the partitions one by one, as tables of this process: "
        "encoder.forget(X.get_partition(0).compute(), y.get_partition(0).compute())."
    )


def read_training(encoder: Encoder, X: Any, y: Any, sample_weight: Any, groups: Any) -> Partitions:
    """Read the arguments of a call on training rows, before anything is computed."""
    partitions = read(X, y, sample_weight, groups)
    check_training(encoder, partitions)
    return partitions


def check_training(encoder: Encoder, partitions: Partitions) -> None:
    """Raise ValueError if a needed target is missing, or for the reasons of `in_container`."""
    if partitions.vectors[0] is None and encoder._parameters().reads_target:
        raise no_target(type(encoder).__name__)
    in_container(encoder, partitions)


def in_container(encoder: Encoder, partitions: Partitions) -> Encoder:
    """Give an encoder with the output that the user asks for; in a Dask frame, frames take the place of arrays.

    Raises
    ------
    ValueError
        If the user asks for an output that Dask frames do not support.
    """
    wanted = wanted_container(encoder)
    if isinstance(partitions, FramePartitions) and wanted == "polars":
        raise ValueError(
            "set_output(transform='polars') is impossible in a Dask frame. Give X as X.to_delayed(), a list of "
            "Delayed objects, to get such a list back; or set_output(transform='default')."
        )
    return plain_output(encoder) if isinstance(partitions, FramePartitions) and wanted == "numpy" else encoder


def plan_rows(encoder: Encoder, asked: Encoder, partitions: Partitions, *_: Any) -> tuple[EncodingPlan, Partitions]:
    """Profile all rows and make the plan; also give the partitions with their lengths.

    Parameters
    ----------
    encoder : Encoder
    asked : Encoder
        The same encoder, unfitted, with the scheme that decides which rows each row sees.
    partitions : Partitions
    """
    import dask

    blank, parameters = unfitted(encoder), encoder._parameters()
    profiled = partitions.with_columns(columns_to_profile(asked, partitions))
    try:
        total = profiled.add_up(tasks.profile_partition, asked._parameters())
    except RowInPartitionError as error:
        lengths = dask.compute(*profiled.map(tasks.count_rows, None)[: error.partition])
        raise error.counted(lengths) from None
    # Encoded columns and outputs are always those of the encoder's own scheme.
    encoding_plan = replace(parts.plan(asked, total.profile), encoder=blank, parameters=parameters)
    return encoding_plan, replace(partitions, lengths=total.lengths, checksums=total.checksums)


def columns_to_profile(encoder: Encoder, partitions: Partitions) -> Sequence[Any]:
    """List the columns of X that the first pass reads, at least one; all if some are given by position or missing."""
    wanted, known = parts.scheme_columns(encoder), partitions.column_names
    if known is None or not all(isinstance(name, str) and name in known for name in wanted):
        return known or []
    return wanted or known[:1]


def fit_lazily(encoder: Encoder, encoding_plan: EncodingPlan, partitions: Partitions) -> list[Any]:
    """Give Delayed objects of the learned state, of the tables of training encodings, and of an output without rows."""
    import dask

    shared = dask.delayed(encoding_plan, traverse=False)
    sums = add_in_tree(partitions.map(tasks.measure_partition, shared))
    return list(dask.delayed(tasks.fit_tables, nout=3)(unfitted(encoder), shared, sums, partitions.samples()))


def needs_target(encoding_plan: EncodingPlan) -> bool:
    """Whether the encoding of a training row depends on its own target; with folds, it depends only on its fold."""
    return encoding_plan.needs_labels or not encoding_plan.by_folds


def encode_in_sequence(partitions: Partitions, _: int, learned: tasks.Learned, tables: Any, meta: Any) -> Any:
    """Encode rows in their own order: each partition needs the sums of the partitions before it, and no other rows."""
    import dask

    ready = replace(partitions, extra=earlier_sums(partitions.map(tasks.sum_partition, tables)))
    if learned.needs_categories:
        deltas = add_in_tree(ready.map(tasks.mean_deltas_of_partition, tables))
        tables = dask.delayed(with_categories)(tables, [deltas])
    return ready.table(tasks.encode_in_sequence, meta, tables)


def encode_in_groups(partitions: Partitions, n_rows: int, learned: tasks.Learned, tables: Any, meta: Any) -> Any:
    """Encode rows in another order: sort them into groups of neighbours, encode the groups, send encodings back."""
    import dask

    number = max(min(partitions.number, MOST_GROUPS), -(-n_rows // MOST_ROWS))
    orders = range(learned.n_orders)
    dealt = partitions.deal(partial(tasks.deal_ordered, number), tables, number * learned.n_orders)
    met = dealt.map(tasks.join_groups, None)
    groups = [met[order * number : (order + 1) * number] for order in orders]
    earlier = [earlier_sums([dask.delayed(tasks.sum_group)(rows, tables) for rows in of_order]) for of_order in groups]

    def scan_groups(function: Callable[..., Any], order: int, tables: Any) -> list[Any]:
        pairs = zip(groups[order], earlier[order], strict=True)
        return [dask.delayed(function)(group, before, tables, order) for group, before in pairs]

    if learned.needs_categories:
        deltas = [add_in_tree(scan_groups(tasks.mean_deltas_of_group, order, tables)) for order in orders]
        tables = dask.delayed(with_categories)(tables, deltas)
    encodings = [rows for order in orders for rows in scan_groups(tasks.encode_group, order, tables)]
    select, borders = dask.delayed(tasks.select_rows), dask.delayed([*partitions.first_rows, n_rows], traverse=False)
    selected = [select(group, rows, borders) for group, rows in enumerate(encodings)]
    by_partition = exchange("returned", selected, partitions.number, receive)
    found = replace(partitions.without_target(), extra=by_partition)
    return found.table(partial(tasks.encode_from_groups, number), meta, tables)


def adopt(encoder: Encoder, learned: tasks.Learned) -> None:
    """Give an encoder what was learned on the workers, and repeat the warnings that were raised there."""
    encoder._adopt(learned.model, learned.device)
    for message, category in learned.warnings:
        notices.warn(message, category)
