"""Files of rows: those that are read, those that are written, and work that was interrupted."""

import difflib
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

KEPT = (
    "What is finished ({megabytes:,.1f} MB) is kept in {folder}: the same call with resume=True (--resume) goes on "
    "from it. Delete the folder if you do not want that."
)
LEAVE_OUT = (
    '. Leave such rows out by drop_missing_target=True (--drop-missing-target), or pass missing_target="keep" '
    "(--missing-target keep): most encoders then encode them, and learn nothing of them but their categories."
)
KINDS_OF_SOURCES = (
    "the path of a file or folder, a glob, a list of paths, a URL, a pyarrow.dataset.Dataset of files, a "
    "deltalake.DeltaTable, or a query: a LazyFrame of polars, a relation of DuckDB, a stream of Arrow"
)
TABLES = ("DataFrame", "Table", "ndarray")


def _near(word: str, known: Sequence[str]) -> str:
    """Say which known words one that is not known may stand for."""
    near = difflib.get_close_matches(word, known)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def not_a_source(type_name: str) -> TypeError:
    """Error for something that names no files."""
    held = " A table in memory goes to encoder.fit_transform(X, y)." if type_name in TABLES else ""
    return TypeError(f"source is a {type_name}. Give {KINDS_OF_SOURCES}.{held}")


def no_encoder(found: object) -> TypeError:
    """Error for something else where an encoder belongs, such as its file or its class."""
    hint = ""
    if isinstance(found, type):
        hint = f" Write {found.__name__}()."
    elif isinstance(found, (str, PurePath)):
        hint = f" Load a saved one, gpu_encode.load({str(found)!r})."
    kind = type(found).__name__
    return TypeError(f"encoder must be an encoder, such as TargetEncoder(). Got a {kind} instead.{hint}")


def table_as_source(type_name: str) -> TypeError:
    """Error for a table, which encoders take as it is."""
    return TypeError(
        f"source is a table ({type_name}), which encoders take as it is: encoder.fit_transform(X, y), "
        f"encoder.transform(X). Here give {KINDS_OF_SOURCES}, such as frame.lazy() of polars or table.to_reader() of "
        "Arrow."
    )


def no_sources() -> ValueError:
    """Error for a list or dataset of no files."""
    return ValueError(f"source names no file. Give {KINDS_OF_SOURCES}.")


def no_such_source(path: str) -> FileNotFoundError:
    """Error for a path or glob that finds nothing."""
    return FileNotFoundError(f"source: there is no file or folder {path!r}, and as a glob it matches nothing.")


def delta_table(text: str) -> ImportError:
    """Error for a table of Delta Lake, of which files are not all that there is to know."""
    return ImportError(
        f"source {text!r} is a Delta table: its log says which of its files count. Give deltalake.DeltaTable({text!r}) "
        "(pip install deltalake), or a list of the files that its file_uris() names."
    )


def unknown_format(path: str, suffixes: Sequence[str]) -> ValueError:
    """Error for a file whose suffix says nothing."""
    hint = _near(PurePath(path).suffix, suffixes)
    return ValueError(f"{path!r}: no known format has this suffix.{hint} Choose from {', '.join(suffixes)}.")


def unknown_destination(path: str, suffixes: Sequence[str]) -> ValueError:
    """Error for a destination that is neither a file of a known format nor said to be a folder."""
    return ValueError(
        f"destination {path!r}: no known format has this suffix.{_near(PurePath(path).suffix, suffixes)} Choose from "
        f"{', '.join(suffixes)}; for a folder of this name write {path + '/'!r}."
    )


def other_kind(text: str, is_folder: bool) -> FileExistsError:
    """Error for a destination that is to be a folder and is a file, or the other way round."""
    kinds = ("folder", "file") if is_folder else ("file", "folder")
    return FileExistsError(f"the destination {text!r} is to be a {kinds[0]}, and is a {kinds[1]}. Name another.")


def already_there(text: str) -> FileExistsError:
    """Error for a destination that is there."""
    return FileExistsError(
        f"the destination {text!r} is there already. Give overwrite=True (--overwrite) to replace it at the end."
    )


def holds_others(text: str, other: str) -> FileExistsError:
    """Error for a destination folder with something else than rows."""
    return FileExistsError(
        f"the destination {text!r} holds {other!r}, which is no file of rows, and would go away with the folder. "
        "Remove it, or name another."
    )


def closed_folder(path: str) -> PermissionError:
    """Error for a folder that one may not look into."""
    return PermissionError(f"no permission to read the folder {path!r} of the source.")


def dataset_without_files(type_name: str) -> TypeError:
    """Error for a dataset of Arrow that is not made of files."""
    return TypeError(f"source is a {type_name}, which is not made of files. Give {KINDS_OF_SOURCES}.")


def source_is_gone(path: str) -> FileNotFoundError:
    """Error for a file that was there, and is not any more."""
    return FileNotFoundError(f"the source file {path!r} is not there any more. Put it back, and run again.")


class SourceChangedError(ValueError):
    """Error for a file that is not what it was when work began, so that nothing finished fits it."""


def source_changed(path: str) -> SourceChangedError:
    """Error for a file that is not what it was when work began."""
    return SourceChangedError(
        f"the source file {path!r} changed while it was read. Run again when nobody writes to it: from the start, "
        "since nothing that was finished fits it."
    )


def type_unknown_to(column: object, kind: object, format_name: str, advice: str) -> ValueError:
    """Error for a column that a format, or Arrow itself, cannot hold."""
    return ValueError(f"column {column!r} holds {kind!s}, which {format_name} cannot: {advice}")


def column_in_one_file(column: str, having: str, lacking: str) -> ValueError:
    """Error for a column that not all files have."""
    return ValueError(
        f"column {column!r} is in {having!r}, but not in {lacking!r}. All files of a source must have the same columns."
    )


def check_outputs(names: Sequence[str]) -> None:
    """Raise ValueError for an output with two columns of one name."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the output would have two columns named {name!r}: rename it in the input")


def no_such_column(role: str, column: object, names: Sequence[str]) -> ValueError:
    """Error for a name that no file has."""
    hint = _near(str(column), names)
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    return ValueError(f"{role}: the source has no column {column!r}.{hint} It has: {shown}.")


def not_a_column_name(role: str, found: object) -> TypeError:
    """Error for something else where the name of a column is wanted."""
    plural = " or a list of them" if role == "target" else ""
    return TypeError(f"{role} must be the name of a column{plural}, a str. Got a {type(found).__name__} instead.")


def bad_compression(found: object, suffix: str, allowed: Sequence[str]) -> ValueError:
    """Error for a compression that the format does not have."""
    choices = f"Choose from {', '.join(allowed)}" if allowed else "Leave it out: the suffix .csv.gz compresses"
    return ValueError(f"compression {found!r} is not one of {suffix} files. {choices}.")


class RefusedResumeError(ValueError):
    """Work that was interrupted, and that this call cannot go on with."""


def other_work(folder: str, what: str, before: object, now: object) -> RefusedResumeError:
    """Error for going on with work that is not the same."""
    shown = [repr(value) if len(repr(value)) <= 200 else repr(value)[:200] + "..." for value in (before, now)]
    return RefusedResumeError(
        f"cannot go on with the interrupted run in {folder!r}: {what} was {shown[0]} there and is {shown[1]} now. "
        "Run without resume to start afresh, or with what it was."
    )


def unreadable_sums(path: str, reason: str) -> RefusedResumeError:
    """Error for saved sums that are damaged."""
    return RefusedResumeError(
        f"cannot go on with an interrupted run: {path!r} is damaged: {reason}. Run without resume to start afresh."
    )


class Need(NamedTuple):
    """A limit, the least that is enough, the key that takes most, its categories, and whether they were all counted."""

    limit: int
    enough: int
    key: str
    n_categories: int
    counted: bool


class CategoriesError(ValueError):
    """Error for categories that are more than the limit has room for.

    Parameters
    ----------
    need : Need
    n_categories : list of int
        Of each key.
    """

    def __init__(self, need: Need, n_categories: list[int]) -> None:
        about = "about " if need.counted else "perhaps "
        super().__init__(
            f"memory_limit is {need.limit / 2**20:,.0f} MiB, and what is learned of the categories does not fit: "
            f"{need.key!r} has {about}{need.n_categories:,} of them. Give at least {-(-need.enough // 2**20):,} MiB, "
            "or encode fewer columns at a time."
        )
        self.n_categories = n_categories


def not_on_disk(reason: str) -> ValueError:
    """Error for encodings that do not come of tables on disk."""
    return ValueError(f'tables="disk": {reason}. Or pass tables="memory".')


def not_fitted() -> str:
    """Words for an encoder that has no room for what it would have learned."""
    return (
        "The categories have no room in memory_limit, so that their tables are on disk and the encoder is not fitted: "
        "give model= (--model) a path, for new rows."
    )
