"""Encode rows of files by what these rows teach: `encode_dataset`, pass by pass."""

import copy
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from pyarrow.dataset import Dataset

from cpu_fallback.cached import cached_property
from gpu_encode.encoders.base import LIBRARY_OF_X, Encoder, check_encoder
from gpu_encode.fitting.columns import Selection
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.fitting.tasks import most_classes
from gpu_encode.scale import messages
from gpu_encode.scale.files import memory
from gpu_encode.scale.files.disk_tables import TrainingFiles, survey
from gpu_encode.scale.files.memory import Room, slice_of
from gpu_encode.scale.files.orders import Orders, Placing
from gpu_encode.scale.files.run import Options, Run, Summary, open_destination
from gpu_encode.scale.files.source import (
    Chunk,
    Reading,
    Roles,
    Size,
    Source,
    find_roles,
    open_source,
    refuse_stray_text,
    with_columns,
)
from gpu_encode.scale.files.staging import (
    check_repeatable,
    describe_parameters,
    end_publication,
    path_of_model,
    read_sums,
    write_sums,
)
from gpu_encode.scale.files.text import TextRules
from gpu_encode.scale.files.writing import FEWEST_ROWS
from gpu_encode.scale.messages import NotShuffledError
from gpu_encode.scale.parts import EncodingPlan, Part, PartialSums, Profile, encode, fit, measure, plan
from gpu_encode.scale.parts.plans import carried
from gpu_encode.scale.parts.profiles import profile_rows
from gpu_encode.scale.parts.sums import AddedRows, NewCategories, categories_repeat, join_new
from gpu_encode.schemes import Ordered, Splits
from gpu_encode.seam import devices
from gpu_encode.words import notices
from gpu_encode.words.annotations import ArrowStream, FilePath, LazyFrame
from gpu_encode.words.errors.parameters import check_option
from gpu_encode.words.progress import Teller

# After this number of seconds the sums so far are saved, so that an interrupted run loses little.
SAVE_AFTER = 60.0


def encode_dataset(
    source: FilePath | Sequence[FilePath] | Dataset | LazyFrame | ArrowStream,
    destination: FilePath,
    encoder: Encoder,
    *,
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    groups: str | None = None,
    keep_target: bool = True,
    drop_missing_target: bool = False,
    missing_text: Sequence[str] = (),
    missing_words: Sequence[str] | None = None,
    text: Sequence[str] = (),
    delimiter: str | None = None,
    quote: str | None = None,
    encoding: str | None = None,
    memory_limit: int | str | None = None,
    tables: Literal["auto", "memory", "disk"] = "auto",
    model: FilePath | None = None,
    compression: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | Teller | None = None,
) -> Summary:
    """Learn encodings from files of any size, and write their rows encoded.

    The encodings and the fitted encoder have the same bits as ``encoder.fit_transform`` on one table of all rows.  Only
    a few chunks of rows are in memory at a time.

    Parameters
    ----------
    source : path, glob, folder, list of paths, URL, pyarrow.dataset.Dataset, deltalake.DeltaTable, or a query
        Parquet, CSV (.csv, .tsv, either also with .gz) or Arrow (.arrow, .feather) files with the same columns.  The
        files of a folder are read in the order of their relative paths, and folders such as ``day=3`` become columns. A
        query is read once: a LazyFrame of polars, a relation of DuckDB, or any stream of Arrow, such as a
        `RecordBatchReader`.
    destination : path
        A file, or a folder (a path that ends with a slash, or has no suffix).  In a folder, each of several source
        files has its counterpart; a single source file is written as one file for each chunk.  The output appears
        only when it is complete.  A URL of a file or folder is possible, too: the finished output is uploaded there.
    encoder : TargetEncoder
        It is fitted when this function returns, unless the tables are on disk.
    target : str or list of str, optional
        Column to learn from, or several; None for encoders that read no target.
    weight : str, optional
        Column of row weights.
    groups : str, optional
        Column of groups, for a scheme that needs groups and does not name a column.
    keep_target : bool, default=True
        Whether the target, weight and group columns are written, too, after all other columns.
    drop_missing_target : bool, default=False
        Leave out rows without a target.
    missing_text : sequence of str, optional
        Texts that stand for a missing value in files of any format, such as "?".
    missing_words : sequence of str, optional
        Words that stand for a missing value in CSV files, in place of those of `pandas.read_csv` ("NA", "null",
        "None", ...).  An empty cell, in quotes or not, is always a missing value.
    text : sequence of str, optional
        Columns of CSV files to read as text, whatever they look like; also columns that folders name (``zip=501``).
        "NA" is text there, too.
    delimiter, quote, encoding : str, optional
        How CSV files are written, if not with commas (in .tsv tabs), double quotes ("" for none) and in UTF-8, or what
        the byte-order mark says.
    memory_limit : int or str, optional
        Most bytes of memory that this process may take, such as "2GiB", Python and its libraries included.  Default:
        what the process holds now, and a quarter of the free memory.
    tables : {"auto", "memory", "disk"}, default="auto"
        Where categories, their sums and encodings are kept.  "disk": in files of the hidden folder, with one bucket of
        the categories in memory at a time; `encoder` stays unfitted.  "auto" chooses "disk" if they do not fit into
        `memory_limit`.
    model : path, optional
        Where to save what new rows need: the file of `encoder.save`, or, with tables on disk, a folder that
        `transform_dataset` takes in place of an encoder.  It appears together with the output.
    compression : str, optional
        Compression of Parquet and Arrow files; by default that of the source.
    overwrite : bool, default=False
        Whether an existing output is replaced, at the end, and an existing model.  A folder is replaced only if it
        holds nothing but files of rows.
    resume : bool, default=False
        Continue an interrupted run of the same call; the result has the same bits.  This is refused for statistics that
        are functions, since no file can hold them, and for queries, which may give other rows.
    progress : True or callable, optional
        True shows bars on stderr, or in a notebook (which needs ipywidgets).  A callable is called as ``progress(stage,
        rows_done, rows_in_all)``.

    Returns
    -------
    Summary
        Rows, files, bytes, seconds by stage, and the highest memory use.

    Raises
    ------
    ValueError, TypeError, OSError
        For bad input, damaged files or a full disk.  Then nothing is written to the destination.  If some sums or files
        were finished, they stay in a hidden folder beside it, and the error says so.

    Notes
    -----
    Rows that fit into one chunk are read once.  Otherwise every pass reads them again.  In addition to the chunks,
    memory holds the categories and their sums, and the distinct values of a column of groups or times that the scheme
    reads, with 16 bytes or more each.

    If categories do not fit into `memory_limit`, this shows while rows are read.  Then up to 67 million of the
    remaining rows are read to estimate the number of categories, and tables go to disk: keys and targets of rows are
    written to files by a hash of the category, rows are summed file by file, and they find their encodings there, with
    the same bits.  The disk needs room for these rows.  This works for `TargetEncoder` with folds of any kind, and with
    `LeaveOneOut` for one target of classes without weights.  It does not work if all categories are needed at once (a
    hierarchy, infrequent categories, `categories` as a list, `JamesStein`, `GLMM`, the mean of categories as prior),
    nor for orders and weights by age: then an error names a limit that is enough.  An interrupted run makes these files
    again.

    Random orders, and orders in time, take two more passes, over rows that are stored as small numbers in the hidden
    folder until the end.

    These need all rows at once: splits, splitters of scikit-learn other than `KFold` and `PredefinedSplit`, ``Ordered``
    with `values` or in a dict as `cv`, and a number of `borders`.  All rows are then in memory together; if the limit
    has no room for them, they are refused.  Instead of splits, a column of fold numbers, named as `cv`, works in
    chunks.

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
    ...     summary = encode_dataset(f"{folder}/rows.parquet", f"{folder}/encoded.parquet", encoder, target="sold")
    ...     pyarrow.parquet.read_table(f"{folder}/encoded.parquet").to_pydict()
    {'city': [1.0, 1.0, 0.0, 1.0], 'sold': [0, 1, 1, 1]}
    """
    # A wrong parameter is an error before any file is looked at.
    check_encoder(encoder)
    if target is None and encoder._parameters().reads_target:
        raise ValueError(f"{type(encoder).__name__} learns from a target: name its column, as in target='sold'.")
    check_option("encode_dataset", "tables", tables, ("auto", "memory", "disk"))
    # What a killed run has just published is the work that is to be resumed.
    ended = end_publication(destination) if resume else set()
    replaces = overwrite or (model is not None and Path(os.path.realpath(model)) in ended)
    path = None if model is None else path_of_model(model, replaces, "overwrite=True replaces it at the end")
    limit, replaces = memory.limit_of(memory_limit), overwrite or bool(ended)
    options = Options(limit, compression, replaces, resume, progress, None, tables, path)
    choices = Choices(target, weight, groups, keep_target, drop_missing_target)
    rules = TextRules(missing_text, missing_words, text, delimiter, quote, encoding)
    return run_encoding(open_source(source, rules), destination, encoder, choices, options)


class Choices(NamedTuple):
    """A caller's choices about columns; the fields mean the same as the parameters of `encode_dataset`."""

    target: Any = None
    weight: str | None = None
    groups: str | None = None
    keep_target: bool = True
    drop_missing_target: bool = False


@devices.explain_memory()
def run_encoding(rows: Source, destination: Any, encoder: Any, choices: Choices, options: Options) -> Summary:
    """Do what `encode_dataset` does."""
    parameters = encoder._parameters()
    repeatable = check_repeatable(parameters, options.resume)
    output = open_destination(rows, destination, options)
    roles = find_roles(rows.schema, choices.target, choices.weight, choices.groups, parameters)
    selected = roles.selected(parameters, rows.schema)
    passed = [*map(roles.features.__getitem__, selected.passed)]
    output.check_types(pa.schema([*map(rows.schema.field, passed)]))
    if rows.contents[0].rules is not None:
        written = [*passed, *(roles.beside if choices.keep_target else ())]
        compared = compared_columns(roles, selected, parameters)
        rows = rows.copying(written, roles.measured(selected), compared, output.suffix)
    with Run.start(rows, output, options, repeatable) as run:
        refuse_stray_text(run.source, asked_kinds(parameters, roles.targets))
        if choices.drop_missing_target:
            run.source = run.source.without_incomplete(roles.targets)
        encoding = Encoding(run, encoder, roles, selected, choices.keep_target)
        run.begin(choices._asdict() | describe_parameters(encoder), encoding.needed, encoding.plan_work)
        encoding.encode()
        if not encoding.on_disk and encoder._model is not None:
            for key in encoder._model.keys:
                run.categories[key.entry.name] = key.n_categories
        if encoding.model is not None and not encoding.on_disk:
            encoder.save(encoding.model)
        run.staging.publish(options.model)
    return run.summary()


def asked_kinds(parameters: Parameters, targets: Sequence[str]) -> dict[str, Any]:
    """Give the kind that the encoder asks for, for each column of the target; an empty dict if it reads no target."""
    if not parameters.reads_target:
        return {}
    asked = parameters.target_type if parameters.cut is None else "continuous"
    kinds = asked if isinstance(asked, (list, tuple)) and len(asked) == len(targets) else [asked] * len(targets)
    return dict(zip(targets, kinds, strict=True))


def compared_columns(roles: Roles, selected: Selection, parameters: Parameters) -> dict[str, bool]:
    """List the columns of text files in which two values are the same or not: categories, classes, groups and folds.

    For each column, also say whether this holds only if it has no fractions, as for numbers that may be classes.
    """
    names = {roles.features[column]: False for entry in selected.entries for column in entry.members}
    for name, kind in asked_kinds(parameters, roles.targets).items():
        if kind != "continuous":
            names[name] = kind == "auto"
    for scheme in parameters.every_scheme:
        if all(role != "time" for _, role in scheme.reads()):
            used = (*scheme.used_columns(), roles.groups)
            names |= {name: False for name in used if isinstance(name, str)}
    return names


class Encoding:
    """The passes of one run.

    Parameters
    ----------
    run : Run
    encoder : Encoder
    roles : Roles
    selected : Selection
    keep_target : bool
    """

    def __init__(self, run: Run, encoder: Any, roles: Roles, selected: Selection, keep_target: bool) -> None:
        self._run, self._encoder, self._roles = run, encoder, roles
        # Columns that are written after the encodings.
        self._beside = roles.beside if keep_target else [*roles.index]
        self._parameters, self.on_disk = encoder._parameters(), False
        # The model is written beside the output, and appears together with it.
        self.model = None if run.options.model is None else run.staging.model_path(run.options.model)
        self._selected, self._columns = selected, run.source.schema.names
        self._n_keys = len(self._selected.entries)
        self.needed = {*map(roles.features.__getitem__, self._selected.needed)}
        self._chosen = roles.chosen(encoder, self._selected)
        self._no_rows = run.source.schema.empty_table()

    @cached_property
    def grid(self) -> Size:
        """The grid of the chunks that have all columns."""
        run, names, n_keys = self._run, self._columns, self._n_keys
        size = run.size(names, n_keys, n_keys)
        if not self._parameters.reads_classes or self._parameters.target_type in ("binary", "continuous"):
            return size
        # All passes take these chunks, so the columns of the output must be known before the first one.
        n_classes = most_classes(self._plan(size).targets)
        run.check_classes(names, n_keys, n_classes)
        return run.size(names, n_keys, n_keys * max(n_classes, 1))

    def plan_work(self) -> dict[str, Any]:
        """Say how many rows a piece of work has; a run that continues this one later uses the same numbers."""
        return {"grid": self.grid.rows, "part_rows": self.grid.rows}

    def encode(self) -> None:
        """Encode all rows: in several passes over chunks, or at once if the scheme needs all rows."""
        if needs_all_rows(self._parameters):
            if self._run.options.tables == "disk":
                raise _not_on_disk("this scheme, or these borders, need all rows at once")
            self._encode_at_once()
        else:
            self._encode_chunks()

    def _encode_at_once(self) -> None:
        """Encode all rows as one table."""
        run, roles = self._run, self._roles
        run.keep_all_rows(self._n_keys)
        size = Size(max(1, run.source.n_rows))
        with run.reading("measuring", self._columns, size) as chunks:
            chunk = next(chunks, Chunk(self._no_rows, 0, 0))
            part, plain = roles.part(chunk), plain_output(self._encoder)
            if self._chosen is not None:
                plain.columns = self._chosen
            with run.timed("measuring"):
                encoded = plain.fit_transform(part.X, part.y, sample_weight=part.sample_weight, groups=part.groups)
        self._encoder._adopt(plain._model, plain.device_)
        table = self._add_aside(encoded, chunk.table)

        def encode_rows(chunk: Chunk) -> Any:
            return table.slice(chunk.first_row, chunk.table.num_rows)

        run.write(table.slice(0, 0), encode_rows, size)

    def _encode_chunks(self) -> None:
        """Profile, measure and encode all rows chunk by chunk."""
        run = self._run
        run.keep_rows(self.grid)
        encoding_plan = self._plan(self._pass_size(self._beside_keys()))
        run.check_classes(self._columns, self._n_keys, most_classes(encoding_plan.targets))
        if self._run.options.tables == "disk":
            self._encode_on_disk(encoding_plan, None)
            return
        sums: list[PartialSums] = []
        refused = None
        try:
            sums.append(self._measure(encoding_plan))
        except messages.CategoriesError as error:
            if self._run.options.tables == "memory":
                raise
            # The frames of a traceback would keep their variables alive.
            refused = error.with_traceback(None)
        memory.release()
        if refused is None:
            self._encode_in_memory(encoding_plan, sums)
        else:
            self._encode_on_disk(encoding_plan, refused)

    def _encode_in_memory(self, encoding_plan: EncodingPlan, sums: list[PartialSums]) -> None:
        """Make tables from the sums, which are taken out of their list, and encode all rows chunk by chunk."""
        run, roles = self._run, self._roles
        with run.timed("measuring"):
            # Now that the tables exist, nothing here holds the sums any more.
            tables = fit(self._encoder, encoding_plan, sums.pop())
        memory.release()
        tables = replace(tables, encoder=plain_output(tables.encoder))
        empty = self._add_aside(encode(tables, Part(self._no_rows.select(roles.features))), self._no_rows)
        size = self._pass_size(self._columns, empty.num_columns)
        if encoding_plan.order is None and not encoding_plan.needs_labels:
            size = run.overlapping(size, empty.num_columns)
        placing: Placing | None = None
        if encoding_plan.order is not None:
            tables, placing = Orders(run, tables, roles, roles.measured(self._selected), size).placing()

        def encode_rows(chunk: Chunk) -> Any:
            part = roles.part(chunk)
            return self._add_aside(encode(tables, part, placing and placing(part)), chunk.table)

        from_start = encoding_plan.order == "rows"
        run.write(empty, encode_rows, size, from_start=from_start)

    def _encode_on_disk(self, encoding_plan: EncodingPlan, refused: messages.CategoriesError | None) -> None:
        """Encode all rows chunk by chunk with tables on disk; `refused` is the error if memory was too small."""
        run, roles = self._run, self._roles
        reading, measured = Reading(roles, encoding_plan.parameters), roles.measured(self._selected)
        beside = self._beside_keys()
        try:
            shared = survey(run, encoding_plan, reading, beside, self._pass_size(beside))
        except NotShuffledError as error:
            if refused is None:
                raise _not_on_disk(error.reason) from None
            refused.add_note(f"Tables on disk do not help: {error.reason}.")
            raise refused from None
        if self.model is None and refused is not None:
            notices.warn(
                "The categories do not fit into memory_limit, so their tables are on disk and the encoder is not "
                "fitted. To encode new rows later, give a path as model= (--model).",
                UserWarning,
            )
        size = self._pass_size(self._columns, len(shared.model.encoded_names(roles.features)))
        room = run.room(encoding_plan, measured, self._n_keys)
        counted = None
        if refused is not None:
            counted, run.enough_memory = refused.n_categories, -(-refused.enough >> 20) << 20
        files = TrainingFiles(run, shared, room, measured, counted, size.rows)
        files.spill(self._pass_size(measured))
        files.learn(self.model)

        def encode_rows(chunk: Chunk) -> Any:
            return files.encode(chunk, self._beside)

        run.write(encode_rows(Chunk(self._no_rows, 0, 0)), encode_rows, size)
        self.on_disk = True

    def _add_aside(self, encoded: Any, table: Any) -> Any:
        """Give the table to write for a chunk."""
        return with_columns(encoded, table.select(self._beside))

    def _pass_size(self, columns: Sequence[str], n_outputs: int = 0) -> Size:
        """Choose the size of chunks for a pass; folds dealt out within classes need the same chunks in all passes."""
        size = self._run.size(columns, self._n_keys, n_outputs)
        if not self._parameters.reads_classes:
            return size
        rows = self._run.work["grid"]
        return Size(rows, batch_rows=min(size.batch_rows, rows))

    def _beside_keys(self) -> list[str]:
        """Columns that are read in addition to those of the categories."""
        return [*self._roles.aside, *map(self._roles.features.__getitem__, self._selected.training_only)]

    def _plan(self, size: Size) -> EncodingPlan:
        """Plan the encoding from the number of rows, and the values of y and of the scheme's columns."""
        encoder = copy.copy(self._encoder)
        if self._chosen is not None:
            # The encoder may choose columns by type, but in a chunk a column that is not read has no type.
            encoder.columns = self._chosen

        def profile_chunk(chunk: Chunk) -> Profile:
            return profile_rows(self._parameters, self._roles.part(chunk))

        return plan(encoder, sum(self._run.each("profiling", self._beside_keys(), size, profile_chunk), Profile()))

    def _measure(self, encoding_plan: EncodingPlan) -> PartialSums:
        """Sum the rows; continue where an interrupted run stopped."""
        run, saved = self._run, self._run.staging.sums
        total = read_sums(saved) if saved.exists() else PartialSums()
        if total.n_rows < run.source.n_rows:
            columns, new = self._roles.measured(self._selected), NewCategories()
            wait, last = SAVE_AFTER, time.perf_counter()
            size = self._pass_size(columns)
            room = run.room(encoding_plan, columns, self._n_keys)
            if not encoding_plan.needs_labels:
                size = room.shorten(size)
            with run.reading("measuring", columns, size, total.n_rows) as chunks:
                for chunk in chunks:
                    with run.timed("measuring"):
                        total, left = self._add(total, new, self._roles.part(chunk), encoding_plan, room)
                    if left is not None:
                        del chunk
                        holder = [total]
                        del total
                        rest = chain([left], map(self._roles.part, chunks))
                        raise room.refuse(holder, new, rest)
                    is_complete, passed = total.n_rows == run.source.n_rows, time.perf_counter() - last
                    if is_complete or passed > wait:
                        join_new(total, new, [*new])
                    if passed > (SAVE_AFTER if is_complete else wait):
                        # Large sums are saved less often.
                        wait, last = max(SAVE_AFTER, 20 * self._save(total)), time.perf_counter()
            memory.release()
        return total

    def _add(
        self, total: PartialSums, new: NewCategories, part: Part, encoding_plan: EncodingPlan, room: Room
    ) -> tuple[PartialSums, Part | None]:
        """Add the sums of a part, piece by piece if memory is short; also give the rows that do not fit."""
        while part.X.num_rows:
            if total.n_rows and categories_repeat(encoding_plan, total, part):
                piece = part if encoding_plan.needs_labels else slice_of(part, 0, room.rows_to_look_up(total, new))
                if not self._add_to_known(total, new, piece, encoding_plan, room):
                    return total, part
                total = replace(total, n_rows=total.n_rows + piece.X.num_rows)
                part = slice_of(part, piece.X.num_rows, part.X.num_rows)
                del piece
                if part.X.num_rows:
                    memory.release()
                continue
            rows = room.rows_of_piece(total, new, part.X.num_rows)
            if encoding_plan.needs_labels:
                # Folds that are dealt out within classes need whole parts.
                rows = part.X.num_rows
            if rows < min(FEWEST_ROWS, part.X.num_rows) and total.n_rows:
                return total, part
            rows = max(rows, FEWEST_ROWS)
            piece, part = slice_of(part, 0, rows), slice_of(part, rows, part.X.num_rows)
            sums = measure(encoding_plan, piece)
            if rows < 2 * piece.X.num_rows:
                # What was freed since would stay beside what joining needs.
                memory.release()
            total = total.plus(sums, in_place=True)
            del sums
            if room.needed(room.keys(total, new)) > room.limit:
                return total, part
            del piece
        return total, None

    def _add_to_known(
        self, total: PartialSums, new: NewCategories, part: Part, encoding_plan: EncodingPlan, room: Room
    ) -> bool:
        """Add a part to sums in place, new categories some at a time; False if their sums do not fit."""
        with part.named():
            added = AddedRows(encoding_plan, part, total, new)
            for entry in range(self._n_keys):
                others = added.add_known(entry)
                while len(others):
                    rows = room.rows_of_piece(total, new, len(others), entry)
                    if rows < min(FEWEST_ROWS, len(others)):
                        return False
                    added.add_new(entry, others[:rows])
                    others = others[rows:]
                    if room.needed(room.keys(total, new)) > room.limit:
                        return False
        return True

    def _save(self, sums: PartialSums) -> float:
        """Save sums, and give the seconds that it took."""
        begun = time.perf_counter()
        # Rows in memory are summed again in less time than their sums are written.
        if self._run.staging.keeps and self._run.source.loaded is None:
            staging = self._run.staging
            path = staging.partial / "sums"
            write_sums(path, sums)
            staging.keep(path, staging.sums)
        return time.perf_counter() - begun


def _not_on_disk(reason: str) -> ValueError:
    """Error for encodings that cannot be made with tables on disk."""
    return ValueError(f'tables="disk": {reason}. Or pass tables="memory".')


def needs_all_rows(parameters: Parameters) -> bool:
    """Whether the encodings need all rows at once, because their sums cannot be made from the sums of chunks."""
    alone = parameters.values is not None or parameters.scheme_by_key
    return (parameters.cut is not None and parameters.cut.needs_all_rows) or any(
        carried(scheme) is None
        # Listed splits may have to be summed one by one.
        or (isinstance(scheme, Splits) and not hasattr(scheme.cv, "split"))
        or (isinstance(scheme, Ordered) and alone)
        for scheme in parameters.every_scheme
    )


def plain_output(encoder: Any) -> Any:
    """Give the encoder with output in the library of X, whatever `set_output` was called with."""
    plain = copy.copy(encoder)
    # A copy shares its settings with the original.
    plain._sklearn_output_config = {"transform": LIBRARY_OF_X}
    if getattr(plain, "sparse_output", False):
        plain.sparse_output = False  # files have columns
    return plain
