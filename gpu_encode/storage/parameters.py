"""Parameters as JSON: plain values are not changed; every other value is an object with one tag and its content."""

import datetime
import math
import pkgutil
import re
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode import formulas, schemes
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.storage.archive import Reader, Writer
from gpu_encode.storage.json_fields import read_counts, read_field
from gpu_encode.tables.categories import objects
from gpu_encode.tables.categories.hierarchy import Derived
from gpu_encode.tables.categories.vocabulary import Vocabulary

HOMES = ("gpu_encode.tables.categories.", "gpu_encode.formulas.", "gpu_encode.schemes.")


def concrete_classes(base: Any) -> list[type]:
    """List the subclasses of a base class that are defined in folders below this one."""
    subclasses = [kind for kind in base.__subclasses__() if kind.__module__.startswith(HOMES)]
    concrete: list[type] = [kind for subclass in subclasses for kind in concrete_classes(subclass)]
    return concrete or [base]


for _module in pkgutil.walk_packages(formulas.__path__, f"{formulas.__name__}."):
    import_module(_module.name)
# Classes that a file may name; no other class is ever made from a file.
CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for base in (schemes.Scheme, Statistic, Derived)
    for kind in concrete_classes(base)
    if kind is not schemes.Splits  # it holds row numbers
}
SCALAR_TYPES = {
    kind.__name__: kind
    for kind in (
        *(np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64),
        *(np.uint8, np.uint16, np.uint32, np.uint64),
    )
}
# Parameters that `transform` does not need.
TRAINING_ONLY = ("cv", "random_state")
_DTYPE = re.compile(r"[<>|](?:b1|[iuf][1248]|[mM]8(?:\[\d{0,9}[a-zA-Z]+\])?|[SU]\d{1,9}|O)")
# Axes of NumPy's arrays.
MOST_AXES = 64
_MICROSECOND = datetime.timedelta(microseconds=1)


class UnwritableError(Exception):
    """A value that no file can hold; the text names the value."""


def describe(given: dict[str, Any], writer: Writer, owner: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """Give the parameters of an encoder or of its scheme as JSON.

    Parameters
    ----------
    writer : Writer
        Receives the arrays.
    owner : str, default=""
        Prefix of the names in messages.

    Returns
    -------
    described : dict
    left_out : dict of str to object
        Parameters that only matter for training and cannot be written.
    """
    described: dict[str, Any] = {}
    left_out: dict[str, Any] = {}
    for name, value in given.items():
        try:
            if name == "cv":
                described[name], inner = describe_cv(value, writer)
                left_out |= inner
            else:
                described[name] = encode(value, writer)
        except UnwritableError as reason:
            if name not in TRAINING_ONLY:
                raise TypeError(
                    f"{owner}{name} cannot be saved: it holds {reason}. "
                    "Pickle it instead, with functions that have names."
                ) from None
            described[name] = {"unwritten": show(value)}
            left_out[owner + name] = value
    return described, left_out


def describe_cv(cv: Any, writer: Writer) -> tuple[Any, dict[str, Any]]:
    """Give a scheme, a number of folds, the name of their column, or a dict of these, as JSON."""
    if isinstance(cv, dict):
        of_keys = [(encode(key, writer), *describe_cv(one, writer)) for key, one in cv.items()]
        left_out = {f"cv[{key!r}]" + name[2:]: value for key, _, inner in of_keys for name, value in inner.items()}
        return {"dict": [[key, described] for key, described, _ in of_keys]}, left_out
    if isinstance(cv, schemes.Scheme):
        return describe_scheme(cv, writer)
    return describe_folds(cv, writer), {}


def describe_scheme(scheme: Any, writer: Writer) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give a scheme as JSON; raise UnwritableError if it has a value for each row, which would make the file large."""
    given = scheme.get_params(deep=False)
    # A list in `by` is a list of columns.
    listed = {name for name, value in given.items() if name == "by" and isinstance(value, list | tuple)}
    lasting = [value for name, value in given.items() if name not in {"random_state", *listed}]
    plain = all(
        isinstance(value, bool | int | float | str | np.generic | datetime.timedelta | None) for value in lasting
    )
    if type(scheme) is not CLASSES.get(type(scheme).__name__) or not plain:
        raise UnwritableError(show(scheme))
    described, left_out = describe(given, writer, "cv__")
    return {"class": type(scheme).__name__, "parameters": described}, left_out


def describe_folds(cv: Any, writer: Writer) -> Any:
    """Give a number of folds, or the name of a column of fold numbers, as JSON."""
    if isinstance(cv, int | str | np.integer | None):
        return encode(cv, writer)
    raise UnwritableError(show(cv))


def show(value: Any) -> str:
    """Represent a value in one line, without its address in memory, which would differ every time."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(repr(value).split()))[:200]


def encode(value: Any, writer: Writer) -> Any:
    """Give a value as JSON.

    Raises
    ------
    UnwritableError
        If neither JSON nor Arrow can hold it, or if files may not name its class.
    """
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is list:
        return [encode(element, writer) for element in value]
    if type(value) is CLASSES.get(type(value).__name__):
        parameters = value.get_params(deep=False).items()
        return {
            "class": type(value).__name__,
            "parameters": {name: encode(parameter, writer) for name, parameter in parameters},
        }
    for kind, tag, write, _ in _TAGS:
        if type(value) is kind or (kind in _WITH_SUBCLASSES and isinstance(value, kind)):
            return {tag: write(value, writer)}
    if objects.kind_of_pandas(type(value)) is not None:
        return {"of_pandas": encode_of_pandas(value)}
    return encode(simplify(value), writer)


def encode_of_pandas(value: Any) -> list[Any]:
    """Give an interval or a period as its kind, its type, and the text or number that stands for it in categories."""
    held = objects.from_objects([value], None)
    return [held.kind, held.dtype, held.array[0].as_py() if held.kind == "interval" else int(held.array[0])]


def decode_of_pandas(content: Any) -> Any:
    """Give the interval or period that `encode_of_pandas` described."""
    kind, dtype, value = content
    array = pa.array([value], pa.large_string()) if kind == "interval" else np.array([value], np.int64)
    return Vocabulary.from_arrow(pa.array(array), {"kind": kind, "dtype": dtype}).to_numpy()[0]


def simplify(value: Any) -> Any:
    """Turn a value of another library's type, or of a subclass, into a type that can be written."""
    if objects.is_null(value):
        return None
    if hasattr(value, "asm8") and getattr(value, "tzinfo", None) is None:
        return value.asm8  # pandas keeps nanoseconds, which Python does not have
    for plain in (int, float, str):
        if isinstance(value, plain):
            return plain(value)
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(value, method):  # an index, a series, an array of another library
            return getattr(value, method)()
    raise UnwritableError(f"{show(value)} of type {type(value).__name__}")


def encode_type(value: type, _: Writer) -> str:
    """Give a NumPy scalar type by its name."""
    if SCALAR_TYPES.get(value.__name__) is not value:
        raise UnwritableError(f"the type {value.__name__}")
    return value.__name__


def encode_scalar(value: Any, writer: Writer) -> list[Any]:
    """Give a NumPy scalar as its dtype and its value."""
    if not _DTYPE.fullmatch(value.dtype.str):
        raise UnwritableError(f"a NumPy scalar of {value.dtype}")
    return [value.dtype.str, int(value.view(np.int64)) if value.dtype.kind in "mM" else encode(value.item(), writer)]


def encode_array(array: Array, writer: Writer) -> dict[str, Any]:
    """Give a NumPy array as its dtype, its shape and its values: numbers in an Arrow array, others as JSON."""
    if not _DTYPE.fullmatch(array.dtype.str):
        raise UnwritableError(f"an array of {array.dtype}")
    document: dict[str, Any] = {"dtype": array.dtype.str, "shape": list(array.shape)}
    flat = array.reshape(-1)
    if array.dtype.kind in "OSU":
        return {**document, "values": encode(flat.tolist(), writer)}
    flat = np.ascontiguousarray(flat, flat.dtype.newbyteorder("="))
    return {**document, "array": writer.add(pa.array(flat.view(np.int64) if array.dtype.kind in "mM" else flat))}


def decode(document: Any, reader: Reader) -> Any:
    """Give the value that `encode` wrote."""
    if isinstance(document, list):
        return [decode(element, reader) for element in document]
    if not isinstance(document, dict):
        return document
    if "class" in document:
        return decode_object(document, reader)
    [(tag, content)] = document.items()
    if tag == "of_pandas":
        return decode_of_pandas(content)
    for _, known_tag, _, read in _TAGS:
        if tag == known_tag:
            return read(content, reader)
    raise ValueError(f"a value has the unknown tag {tag!r}")


def decode_object(document: dict[str, Any], reader: Reader) -> Any:
    """Make a scheme, smoothing or hierarchy from its name and parameters."""
    name = read_field(document, "class", str)
    if name not in CLASSES:
        raise ValueError(f"it names the class {name!r}, which no model holds")
    known = CLASSES[name]
    given = parameters_of(known, read_field(document, "parameters", dict), reader)
    return known(*given.pop("lengths", ()), **given)


def parameters_of(known: Any, described: dict[str, Any], reader: Reader) -> dict[str, Any]:
    """Give the parameters of a class by their names, without parameters that could not be written."""
    described = {**getattr(known, "parameters_before", {}), **described}
    if sorted(described) != sorted(known._get_param_names()):
        raise ValueError(f"the parameters of {known.__name__} are {sorted(described)}")
    return {
        name: decode(value, reader)
        for name, value in described.items()
        if name not in TRAINING_ONLY or not isinstance(value, dict) or "unwritten" not in value
    }


def read_dtype(text: Any, _: Reader | None = None) -> np.dtype[Any]:
    """Give a dtype that parameters and labels may have."""
    if not isinstance(text, str) or not _DTYPE.fullmatch(text):
        raise ValueError(f"{text!r} is no type of values")
    return np.dtype(text)


def decode_scalar(content: Any, reader: Reader) -> Any:
    """Give a NumPy scalar that `encode_scalar` described."""
    dtype, value = read_dtype(content[0]), decode(content[1], reader)
    reader.spend(dtype.itemsize)
    return np.array(value, np.int64).view(dtype)[()] if dtype.kind in "mM" else np.array(value, dtype)[()]


def decode_array(document: Any, reader: Reader) -> Array:
    """Give a NumPy array that `encode_array` described."""
    dtype = read_dtype(read_field(document, "dtype", str))
    shape = read_counts(document, "shape", 0, 1 << 62)
    if len(shape) > MOST_AXES:
        raise ValueError(f"an array has {len(shape)} axes")
    # The lengths of an array's axes become sizes later, also if the array is empty.
    reader.spend(dtype.itemsize * math.prod(max(length, 1) for length in shape))
    if dtype.kind not in "OSU":
        native = dtype.newbyteorder("=")
        stored = np.dtype(np.int64) if dtype.kind in "mM" else native
        array = reader.array(document.get("array"), pa.from_numpy_dtype(stored))
        numbers: Array = array.to_numpy(zero_copy_only=False)
        return numbers.view(native).reshape(shape).astype(dtype)
    values = decode(read_field(document, "values", list), reader)
    if len(values) != math.prod(shape):
        raise ValueError(f"an array of the shape {shape} has {len(values)} values")
    array = np.empty(len(values), dtype)
    array[:] = values
    if dtype.kind != "O" and array.tolist() != values:
        raise ValueError(f"the values of an array are not of {dtype}")
    return array.reshape(shape)


_WITH_SUBCLASSES = (tuple, dict, np.ndarray, np.dtype, np.generic, type)


def encode_time(value: Any, _: Writer) -> str:
    """Give a time, a date or both as text."""
    return value.isoformat()


# For each type: its tag, and the functions that write and read its content.
_TAGS: list[tuple[type, str, Callable[[Any, Writer], Any], Callable[[Any, Reader], Any]]] = [
    (float, "float", lambda value, _: repr(value), lambda content, _: float(content)),
    (bytes, "bytes", lambda value, _: value.hex(), lambda content, _: bytes.fromhex(content)),
    (Decimal, "decimal", lambda value, _: str(value), lambda content, _: Decimal(content)),
    (datetime.datetime, "datetime", encode_time, lambda content, _: datetime.datetime.fromisoformat(content)),
    (datetime.date, "date", encode_time, lambda content, _: datetime.date.fromisoformat(content)),
    (datetime.time, "time", encode_time, lambda content, _: datetime.time.fromisoformat(content)),
    (
        datetime.timedelta,
        "timedelta",
        lambda value, _: value // _MICROSECOND,
        lambda content, _: content * _MICROSECOND,
    ),
    (
        tuple,
        "tuple",
        lambda value, writer: encode(list(value), writer),
        lambda content, reader: tuple(decode(content, reader)),
    ),
    (
        dict,
        "dict",
        lambda value, writer: encode([list(pair) for pair in value.items()], writer),
        lambda content, reader: dict(decode(content, reader)),
    ),
    (np.ndarray, "ndarray", encode_array, decode_array),
    (np.dtype, "dtype", lambda value, _: value.str, read_dtype),
    (np.generic, "scalar", encode_scalar, decode_scalar),
    (type, "type", encode_type, lambda content, _: SCALAR_TYPES[content]),
]
