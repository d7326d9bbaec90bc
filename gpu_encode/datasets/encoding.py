"""Rows of files encoded from what they themselves say: counted, summed and encoded in chunks."""

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gpu_encode import devices
from gpu_encode.datasets import destinations, memory
from gpu_encode.datasets.described import as_json, described_parameters, described_run, is_describable, is_repeatable
from gpu_encode.datasets.orders import Orders
from gpu_encode.datasets.progress import Progress, Teller
from gpu_encode.datasets.roles import Roles, roles, with_columns
from gpu_encode.datasets.run import Run
from gpu_encode.datasets.saved_sums import read_sums, write_sums
from gpu_encode.datasets.source import Chunk, Size, Source, opened
from gpu_encode.datasets.staging import Staging, failures_explained
from gpu_encode.datasets.summary import Summary
from gpu_encode.encoders.base import Encoder
from gpu_encode.errors import datasets as errors
from gpu_encode.parts import EncodingPlan, Part, PartialSums, Profile, encode, fit, measure, plan, profile

# Seconds after which the sums measured so far are saved, so that little is lost with an interrupted run.
SAVE_AFTER = 60.0


def encode_dataset(
    source: Any,
    destination: Any,
    encoder: Any,
    *,
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    groups: str | None = None,
    keep_target: bool = True,
    drop_missing_target: bool = False,
    missing_text: Sequence[str] = (),
    text: Sequence[str] = (),
    memory_limit: int | str | None = None,
    compression: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | Teller | None = None,
) -> Summary:
    """Learn codes from files of any size, and write their rows encoded.

    The codes, and the fitted encoder, are bit for bit those of ``encoder.fit_transform`` on one table of all rows,
    while no more rows are in memory than those of a few chunks.

    Parameters
    ----------
    source : path, glob, folder, list of paths or pyarrow.dataset.Dataset
        Parquet, CSV (.csv, .tsv, either also with .gz) or Arrow (.arrow, .feather) files of the same columns.  Of a
        folder, files are read in the order of their relative paths, and folders such as ``day=3`` make columns.
    destination : path
        A file; or a folder (a path that ends with a slash, or has no suffix), in which each of several source files
        has its counterpart, and a single one is written in parts of one chunk.  It appears whole, at the end.
    encoder : TargetEncoder
        Is fitted when this returns.
    target : str or list of str, optional
        Column to learn from, or several; None for encoders that read no target.
    weight, groups : str, optional
        Columns of row weights, and of groups for a scheme that wants them.
    keep_target : bool, default=True
        Whether the target, weight and group columns pass through, last and in input order.
    drop_missing_target : bool, default=False
        Leave out rows without a target.
    missing_text : sequence of str, optional
        Texts that stand for a missing value, such as "?".
    text : sequence of str, optional
        Columns of CSV files to read as text, whatever they look like.
    memory_limit : int or str, optional
        Bytes that this process may take, such as "2GiB"; a quarter of what is free, beside what it holds, unless given.
    compression : str, optional
        Of Parquet and Arrow files; that of the source unless given.
    overwrite : bool, default=False
        Replace a destination file that is there, at the end.  A folder is never replaced.
    resume : bool, default=False
        Go on from what an interrupted run of the same call had finished, with the same bits at the end.  Not with
        statistics that are functions, which no file holds.
    progress : True or callable, optional
        True: a bar on stderr.  A callable is called as ``progress(stage, rows_done, rows_in_all)``.

    Returns
    -------
    Summary
        Rows, files, bytes, seconds by stage, most memory.

    Raises
    ------
    ValueError, TypeError, OSError
        For bad input, damaged files, a full disk.  Nothing is then at the destination.  If sums or files were finished,
        they stay in a hidden folder beside it, and the error says so.

    Notes
    -----
    Beside the chunks, memory holds the categories and their sums; and the distinct values of a column that the scheme
    reads, groups or times, 16 bytes and more each.  Random orders, and orders in time, take two passes more over rows
    as small numbers, which lie in the hidden folder for as long.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow
    >>> import pyarrow.parquet
    >>> from gpu_encode import KFold, TargetEncoder, encode_dataset
    >>> rows = pyarrow.table({"city": ["Bonn", "Lima", "Bonn", "Lima"], "sold": [0, 1, 1, 1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(rows, f"{folder}/rows.parquet")
    ...     encoder = TargetEncoder(columns=["city"], cv=KFold(2, order="contiguous"), smooth=0.0)
    ...     summary = encode_dataset(f"{folder}/rows.parquet", f"{folder}/codes.parquet", encoder, target="sold")
    ...     pyarrow.parquet.read_table(f"{folder}/codes.parquet").to_pydict()
    {'city': [1.0, 1.0, 0.0, 1.0], 'sold': [0, 1, 1, 1]}
    """
    # What is wrong with a parameter is said before files are looked at.
    if not isinstance(encoder, Encoder):
        raise errors.not_an_encoder(type(encoder).__name__)
    if target is None and encoder._options().reads_target:
        raise errors.target_needed(type(encoder).__name__)
    memory.limit_of(memory_limit)
    return run_encoding(
        opened(source, missing_text, text),
        destination,
        encoder,
        target,
        weight,
        groups,
        keep_target=keep_target,
        drop_missing_target=drop_missing_target,
        memory_limit=memory_limit,
        compression=compression,
        overwrite=overwrite,
        resume=resume,
        progress=progress,
    )


@devices.memory_explained()
def run_encoding(
    rows: Source,
    destination: Any,
    encoder: Any,
    target: Any,
    weight: Any,
    groups: Any,
    *,
    keep_target: bool,
    drop_missing_target: bool,
    memory_limit: Any,
    compression: Any,
    overwrite: bool,
    resume: bool,
    progress: Any,
    chunk_rows: int | None = None,
    before_publishing: Callable[[], object] = lambda: None,
) -> Summary:
    """Do what `encode_dataset` does; chunks may be forced, and something be done before the output appears."""
    begun = time.perf_counter()
    limit = memory.limit_of(memory_limit)
    repeatable = is_describable([encoder._options().statistic], resume) and is_repeatable(encoder)
    if resume and not repeatable:
        raise errors.not_repeatable()
    place = destinations.chosen(rows, destination, compression, overwrite)
    found = roles(rows.schema, target, weight, groups)
    if drop_missing_target:
        rows = rows.without_incomplete(found.targets)
    choices = {"target": target, "weight": weight, "groups": groups, "keep_target": keep_target}
    described = as_json(described_run(rows, place, choices | described_parameters(encoder)))
    with failures_explained(place), Staging(place, repeatable) as staging, Progress(progress) as shown:
        run = Run(rows, place, shown, limit, chunk_rows)
        run.seconds["opening"] = time.perf_counter() - begun
        task = Encoding(run, staging, encoder, found, keep_target, repeatable)
        work = staging.begin(described, resume)
        work = {"grid": task.grid().rows, "part_rows": task.grid().rows} | work
        staging.note(described, work)
        task.encode(work)
        before_publishing()
        staging.publish()
    return run.summary()


class Encoding:
    """The passes of one run."""

    def __init__(
        self, run: Run, staging: Staging, encoder: Any, found: Roles, keep_target: bool, repeatable: bool
    ) -> None:
        self._run, self._staging, self._encoder, self._roles = run, staging, encoder, found
        self._keep_target, self._repeatable = keep_target, repeatable
        self._selected = found.selected(encoder, run.source.schema)

    def grid(self) -> Size:
        """Chunks of all columns."""
        return self._run.size(self._roles.names, len(self._selected.entries), len(self._selected.entries))

    def encode(self, work: dict[str, Any]) -> None:
        """Do all passes."""
        run, found = self._run, self._roles
        encoding_plan = plan(self._encoder, self._survey(work))
        sums = self._measure(encoding_plan, work)
        with run.timed("measuring"):
            tables = fit(self._encoder, encoding_plan, sums)
        del sums
        tables = replace(tables, encoder=with_plain_output(tables.encoder))
        empty = self._written(encode(tables, Part(self._nothing().select(found.features))), self._nothing())
        size = self._pass_size(found.names, work, empty.num_columns)
        columns = found.measured(self._selected)
        tables, placing = Orders(run, tables, found, columns, size, self._staging.partial).placing()

        def written(chunk: Chunk) -> Any:
            part = found.part(chunk)
            return self._written(encode(tables, part, placing(part)), chunk.table)

        outputs = run.destination.outputs(run.source, work["part_rows"])
        left_out = run.destination.left_out(run.source)
        needed = {found.features[place] for place in self._selected.needed}
        run.write(
            self._staging,
            outputs,
            empty,
            written,
            size,
            [name for name in left_out if name not in needed],
            from_start=encoding_plan.order == "rows",
        )

    def _nothing(self) -> Any:
        return self._run.source.schema.empty_table()

    def _written(self, encoded: Any, table: Any) -> Any:
        """Give what is written of a chunk."""
        return with_columns(encoded, table.select(self._roles.aside)) if self._keep_target else encoded

    def _pass_size(self, columns: Sequence[str], work: dict[str, Any], n_outputs: int = 0) -> Size:
        """Chunks of one pass; folds dealt out within classes want the same ones in all passes."""
        size = self._run.size(columns, len(self._selected.entries), n_outputs)
        if not getattr(self._encoder._options().scheme, "stratify", False):
            return size
        return Size(work["grid"], batch_rows=min(size.batch_rows, work["grid"]))

    def _survey(self, work: dict[str, Any]) -> Profile:
        """Count rows, and what y and the scheme's columns hold."""
        run, total = self._run, Profile()
        used = [self._roles.features[place] for place in self._selected.training_only]
        columns = [*self._roles.aside, *used]
        with run.reading("surveying", columns, self._pass_size(columns, work)) as chunks:
            for chunk in chunks:
                with self._roles.advised(chunk), run.timed("surveying"):
                    total += profile(self._encoder, self._roles.part(chunk))
        return total

    def _measure(self, encoding_plan: EncodingPlan, work: dict[str, Any]) -> PartialSums:
        """Sum the rows, from where an interrupted run left off."""
        run, saved = self._run, self._staging.sums
        total = read_sums(saved) if saved.exists() else PartialSums()
        if total.n_rows < run.source.n_rows:
            columns = self._roles.measured(self._selected)
            wait, last = SAVE_AFTER, time.perf_counter()
            size = self._pass_size(columns, work)
            with run.reading("measuring", columns, size, total.n_rows) as chunks:
                for chunk in chunks:
                    with run.timed("measuring"):
                        total = total.plus(measure(encoding_plan, self._roles.part(chunk)), in_place=True)
                    if time.perf_counter() - last > wait and total.n_rows < run.source.n_rows:
                        # Large sums are saved less often.
                        wait, last = max(SAVE_AFTER, 20 * self._save(total)), time.perf_counter()
            self._save(total)
        return total

    def _save(self, sums: PartialSums) -> float:
        """Save sums, and give the seconds that it took."""
        begun = time.perf_counter()
        if self._repeatable:
            path = self._staging.partial / "sums"
            write_sums(path, sums)
            self._staging.keep(path, self._staging.sums)
        return time.perf_counter() - begun


def with_plain_output(encoder: Any) -> Any:
    """Give the encoder with tables of X's own kind as output, whatever `set_output` said."""
    plain = copy.copy(encoder)
    # A copy shares its settings with the original.
    plain._sklearn_output_config = {"transform": "default"}
    if getattr(plain, "sparse_output", False):
        plain.sparse_output = False  # files have columns
    return plain
