"""Files of rows: those that are read, those that are written, and work that was interrupted."""

import difflib
import errno
from collections.abc import Sequence
from pathlib import PurePath

KEPT = (
    "What is finished is kept in {folder}: the same call with resume=True (--resume) goes on from it. "
    "Delete the folder if you do not want that."
)
LEAVE_OUT = "Rows without a target can be left out: drop_missing_target=True (--drop-missing-target)."
KINDS_OF_SOURCES = "the path of a file or folder, a glob, a list of paths, or a pyarrow.dataset.Dataset of files"


def _near(word: str, known: Sequence[str]) -> str:
    """Say which known words one that is not known may stand for."""
    found = difflib.get_close_matches(word, known)
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


def nested_in_csv(column: str, kind: str) -> ValueError:
    """Error for a column of lists or structs in a CSV file."""
    return ValueError(f"column {column!r} holds {kind}, which CSV cannot: write Parquet, or leave it out")


def not_a_source(type_name: str) -> TypeError:
    """Error for something that names no files."""
    return TypeError(f"source is a {type_name}. Give {KINDS_OF_SOURCES}.")


def no_sources() -> ValueError:
    """Error for a list or dataset of no files."""
    return ValueError(f"source names no file. Give {KINDS_OF_SOURCES}.")


def no_such_source(path: str) -> FileNotFoundError:
    """Error for a path or glob that finds nothing."""
    return FileNotFoundError(f"source: there is no file or folder {path!r}, and as a glob it matches nothing.")


def folder_in_list(path: str) -> ValueError:
    """Error for a folder in a list of files."""
    return ValueError(f"source: {path!r} in the list is a folder. List its files, or give the folder alone.")


def repeated_source(path: str) -> ValueError:
    """Error for a file that is listed twice."""
    return ValueError(f"source lists {path!r} twice, and its rows would count twice. List each file once.")


def folder_without_rows(folder: str, suffixes: Sequence[str]) -> FileNotFoundError:
    """Error for a folder without files of a known format."""
    return FileNotFoundError(
        f"source: the folder {folder!r} holds no file of rows ({', '.join(suffixes)}). "
        "Files and folders whose names begin with a dot or an underscore do not count."
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


def several_formats(first: str, other: str) -> ValueError:
    """Error for files of several formats in one source."""
    return ValueError(f"source has files of several formats: {first!r} and {other!r}. Give files of one format.")


def uneven_partitions(first: str, known: Sequence[str], other: str, found: Sequence[str]) -> ValueError:
    """Error for folders of which only some say something of their rows."""
    return ValueError(
        f"The folders of {first!r} name the columns {list(known)}, but those of {other!r} name {list(found)}. "
        "All files of a source must lie in folders of the same names, such as day=1/city=Bonn."
    )


def dataset_without_files(type_name: str) -> TypeError:
    """Error for a dataset of Arrow that is not made of files."""
    return TypeError(f"source is a {type_name}, which is not made of files. Give {KINDS_OF_SOURCES}.")


def filtered_dataset() -> ValueError:
    """Error for a dataset of Arrow that leaves out rows."""
    return ValueError(
        "source is a dataset with a filter. Give the dataset itself; write the rows that are wanted first."
    )


def source_is_gone(path: str) -> FileNotFoundError:
    """Error for a file that was there, and is not any more."""
    return FileNotFoundError(f"the source file {path!r} is not there any more. Put it back, and run again.")


def source_is_closed(path: str) -> PermissionError:
    """Error for a file that may not be read."""
    return PermissionError(f"no permission to read the source file {path!r}.")


def source_changed(path: str) -> ValueError:
    """Error for a file that is not what it was when work began."""
    return ValueError(f"the source file {path!r} changed while it was read. Run again when nobody writes to it.")


def damaged_source(path: str, place: str, reason: str) -> ValueError:
    """Error for a file that cannot be read; `place` says where in it."""
    return ValueError(f"cannot read {path!r}{place}: {reason}")


def repeated_in_file(path: str, column: str) -> ValueError:
    """Error for a name of two columns in one file."""
    return ValueError(f"{path!r} has several columns named {column!r}: rename them.")


def column_and_folder(path: str, column: str) -> ValueError:
    """Error for a name that a file has as a column and in its path."""
    return ValueError(
        f"{path!r} has a column {column!r}, and a folder {column}=... above it says the same. Rename one."
    )


def column_in_one_file(column: str, having: str, lacking: str) -> ValueError:
    """Error for a column that not all files have."""
    return ValueError(
        f"column {column!r} is in {having!r}, but not in {lacking!r}. All files of a source must have the same columns."
    )


def column_of_other_type(column: str, first: str, known: str, other: str, found: str) -> ValueError:
    """Error for a column that has another type in another file."""
    return ValueError(
        f"column {column!r} is {known} in {first!r}, but {found} in {other!r}. "
        "All files of a source must have the same types: write one of them anew."
    )


def no_such_column(role: str, column: object, names: Sequence[str]) -> ValueError:
    """Error for a name that no file has."""
    hint = _near(str(column), names)
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    return ValueError(f"{role}: the source has no column {column!r}.{hint} It has: {shown}.")


def not_a_column_name(role: str, found: object) -> TypeError:
    """Error for something else where the name of a column is wanted."""
    plural = " or a list of them" if role == "target" else ""
    return TypeError(f"{role} must be the name of a column{plural}, a str. Got a {type(found).__name__} instead.")


def word_instead_of_list(parameter: str, found: str) -> TypeError:
    """Error for a single word where a list of words is wanted, which its letters would be taken for."""
    return TypeError(f"{parameter} must be a list of words. Got the word {found!r} instead: write [{found!r}].")


def not_an_encoder(type_name: str) -> TypeError:
    """Error for something that does not encode."""
    return TypeError(f"encoder must be an encoder, such as TargetEncoder(). Got a {type_name} instead.")


def column_of_two_roles(column: str, one: str, other: str) -> ValueError:
    """Error for a column that is two things at once."""
    return ValueError(f"column {column!r} is {one} and {other}. Give each its own column.")


def nothing_but_targets() -> ValueError:
    """Error for files that have no column to encode."""
    return ValueError(
        "The source has no columns but those of the target, weight and groups: nothing is left to encode."
    )


def repeated_in_output(column: str) -> ValueError:
    """Error for a column beside the features that has the name of an encoded one."""
    return ValueError(f"the output would have two columns named {column!r}: rename it in the input")


def fitted_without_names() -> ValueError:
    """Error for an encoder that knows columns by position alone."""
    return ValueError(
        "The encoder was fitted on an array without column names, and files have names: fit it on a table, or call its "
        "transform on arrays."
    )


def bad_memory_limit(found: object) -> ValueError:
    """Error for a limit that is no number of bytes."""
    return ValueError(
        f"memory_limit must be a whole number of bytes or a text such as '2GiB' or '500 MB'. Got {found!r}."
    )


def memory_too_small(limit: int, needed: int, held: int) -> ValueError:
    """Error for a limit that leaves no room for one chunk."""
    return ValueError(
        f"memory_limit is {limit / 2**20:,.0f} MiB, of which this process holds {held / 2**20:,.0f} MiB already, and "
        f"the smallest chunk needs more than is left. Give at least {-(-needed // 2**20):,} MiB."
    )


def rows_too_many_at_once(limit: int, needed: int) -> ValueError:
    """Error for a limit that leaves no room for all rows, where the scheme or borders need all of them at once."""
    return ValueError(
        f"This scheme, or these borders, take all rows at once, and memory_limit is {limit / 2**20:,.0f} MiB. Give at "
        f"least {-(-needed // 2**20):,} MiB; or folds, which take rows in chunks, or borders as a list."
    )


def bad_progress(found: object) -> TypeError:
    """Error for something that cannot be told of progress."""
    return TypeError(f"progress must be True, None or a function of (stage, rows_done, rows_in_all). Got {found!r}.")


def bad_compression(found: object, suffix: str, allowed: Sequence[str]) -> ValueError:
    """Error for a compression that the format does not have."""
    choices = f"Choose from {', '.join(allowed)}" if allowed else "Leave it out: the suffix .csv.gz compresses"
    return ValueError(f"compression {found!r} is not one of {suffix} files. {choices}.")


def no_folder_for(folder: str, name: str) -> FileNotFoundError:
    """Error for a destination in a folder that is not there."""
    return FileNotFoundError(f"there is no folder {folder!r} to write {name!r} to.")


def folder_is_closed(folder: str) -> PermissionError:
    """Error for a folder that nothing may be written to."""
    return PermissionError(f"no permission to write to the folder {folder!r}.")


def folder_is_there(path: str) -> FileExistsError:
    """Error for a destination folder with files in it."""
    return FileExistsError(
        f"the destination {path!r} is there already and not an empty folder. Remove it, or name another."
    )


def file_is_there(path: str) -> FileExistsError:
    """Error for a destination file that is there."""
    return FileExistsError(f"the destination {path!r} is there already. Give overwrite=True to replace it at the end.")


def destination_is_source(path: str) -> ValueError:
    """Error for writing over what is read."""
    return ValueError(f"the destination {path!r} is, or holds, a file of the source. Name another.")


def destination_in_source(path: str, folder: str) -> ValueError:
    """Error for writing into the folder that is read."""
    return ValueError(f"the destination {path!r} is in the source folder {folder!r}. Name another.")


def disk_is_full(destination: str) -> OSError:
    """Error for a disk without space left."""
    return OSError(
        errno.ENOSPC,
        f"the disk is full (no space left on device): nothing is at {destination!r}, and the source is untouched. "
        "Free some space, or write elsewhere",
    )


def staging_in_use(folder: str) -> FileExistsError:
    """Error for a destination that another process writes to."""
    return FileExistsError(f"another run is writing to this destination (in {folder!r}). Wait for it, or end it.")


def other_work(folder: str, what: str, before: object, now: object) -> ValueError:
    """Error for going on with work that is not the same."""
    shown = [repr(each) if len(repr(each)) <= 200 else repr(each)[:200] + "..." for each in (before, now)]
    return ValueError(
        f"cannot go on with the interrupted run in {folder!r}: {what} was {shown[0]} there and is {shown[1]} now. "
        "Run without resume to start afresh, or with what it was."
    )


def unreadable_manifest(path: str) -> ValueError:
    """Error for notes of an interrupted run that nothing can be made of."""
    return ValueError(
        f"cannot go on with an interrupted run: {path!r} is damaged, or of another version of gpu-encode. "
        "Run without resume to start afresh."
    )


def unreadable_sums(path: str, reason: str) -> ValueError:
    """Error for saved sums that are damaged."""
    return ValueError(
        f"cannot go on with an interrupted run: {path!r} is damaged: {reason}. Run without resume to start afresh."
    )


def not_repeatable() -> ValueError:
    """Error for going on with random folds that nobody can draw again."""
    return ValueError(
        "resume=True needs folds and orders that are drawn the same again: cv is a splitter, or random_state is not an "
        "integer."
    )


def not_describable(found: str) -> TypeError:
    """Error for going on with codes that follow from something that no file holds."""
    return TypeError(
        f"resume=True needs an encoder that a file can hold, and it has {found}. Run without resume to start afresh."
    )


def target_needed(owner: str) -> ValueError:
    """Error for an encoder that learns from a target, without one."""
    return ValueError(f"{owner} learns from a target: name its column, as in target='sold'.")
