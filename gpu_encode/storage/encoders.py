"""A fitted encoder as JSON and arrays: its parameters, scikit-learn's fitted attributes, and its model."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import gpu_encode
from gpu_encode.fitting.compatibility import keys_of
from gpu_encode.fitting.model import Model, kept_columns
from gpu_encode.storage import models, origin
from gpu_encode.storage.archive import Reader, Writer
from gpu_encode.storage.json_fields import read_field, read_option
from gpu_encode.storage.parameters import decode, encode, parameters_of, show
from gpu_encode.storage.parameters import describe as describe_parameters
from gpu_encode.tables.frames.column_choice import is_choice
from gpu_encode.words.notices import warn

# Classes that files may name: the public encoders.  Each is loaded by its name when a file names it.
ENCODERS = tuple(name for name in gpu_encode.__all__ if name.endswith("Encoder"))
CONTAINERS = (None, "default", "pandas", "polars")


def describe(encoder: Any, writer: Writer) -> dict[str, Any]:
    """Give a fitted encoder as JSON; warn about parameters that are left out."""
    name = name_of(encoder)
    check_is_fitted(encoder, "_model")
    parameters = encoder.get_params(deep=False)
    if is_choice(parameters.get("columns")) and not isinstance(parameters["columns"], str):
        # A file cannot hold a function or a selector; it holds the columns that these chose.
        parameters["columns"] = keys_of(encoder._model)
    described, left_out = describe_parameters(parameters, writer)
    defaults = type(encoder)().get_params(deep=False) | {"cv__random_state": 0}
    for parameter, value in left_out.items():
        warn(
            f"{parameter}={show(value)} is not saved: it only matters for training. "
            f"The loaded encoder has {parameter}={defaults[parameter]!r}."
        )
    names = getattr(encoder, "feature_names_in_", None)
    document = {
        "library": gpu_encode.__version__,
        "estimator": name,
        "parameters": described,
        "device": encoder.device_,
        "output": getattr(encoder, "_sklearn_output_config", {}).get("transform"),
        "feature_names_in": None if names is None else [str(name) for name in names],
        "model": models.describe(origin.summed(encoder), writer),
    }
    document["origin"] = origin.describe(encoder, document["model"], writer)
    # The results that were learned from all keys together, in addition to the sums.
    if (learned := getattr(encoder._model, "learned", None)) is not None:
        document["learned"] = {name: encode(value, writer) for name, value in learned.to_fields().items()}
    return document


def describe_unfitted(encoder: Any, writer: Writer) -> dict[str, Any]:
    """Give the class and the parameters of an encoder as JSON; refuse parameters that no file can hold."""
    name = name_of(encoder)
    described, left_out = describe_parameters(encoder.get_params(deep=False), writer)
    for parameter, value in left_out.items():
        raise TypeError(f"{name} cannot be saved before its fit: no file can hold {parameter}={show(value)}.")
    return {"estimator": name, "parameters": described, "fitted": False}


def name_of(encoder: Any) -> str:
    """Give the name of an encoder's class, or raise TypeError if files may not name it."""
    name = type(encoder).__name__
    if name not in ENCODERS or getattr(gpu_encode, name) is not type(encoder):
        raise TypeError(f"{name} cannot be saved, only {' and '.join(ENCODERS)}, and no subclass. Pickle it instead.")
    return name


def rebuild(reader: Reader) -> Any:
    """Give the encoder that `describe` or `describe_unfitted` described."""
    document = reader.document
    name = read_field(document, "estimator", str)
    if name not in ENCODERS:
        raise ValueError(f"it names the encoder {name!r}, which is none of {', '.join(ENCODERS)}")
    kind = getattr(gpu_encode, name)
    encoder = kind(**parameters_of(kind, read_field(document, "parameters", dict), reader))
    if document.get("fitted") is False:
        return encoder
    encoder.set_output(transform=read_option(document, "output", CONTAINERS))
    model = models.rebuild(read_field(document, "model", dict), reader)
    encoder.n_features_in_ = model.n_features
    names = models.read_names(document, "feature_names_in", model.n_features)
    if names is not None:
        encoder.feature_names_in_ = np.array(names, dtype=object)
    if hasattr(kind, "_rebuild"):
        fields = read_field(document, "learned", dict)
        encoder._rebuild(model, {field: decode(value, reader) for field, value in fields.items()})
    else:
        encoder._publish(model)
    encoder.device_ = read_option(document, "device", ("cpu", "cuda"))
    encoder._origin = origin.read(document)
    if type(encoder._model) is not Model and model.permutations > 1:
        raise ValueError(f"outputs of {name} are repeated {model.permutations} times, which no scheme asks for")
    if reader.affords(sum(map(model.table_bytes, range(len(model.keys))))):
        # This makes errors appear now, and not at the first transform, if parts of the file do not fit together.
        check_widths(encoder._model)
    return encoder


def check_widths(model: Model) -> None:
    """Compute the encodings of all categories; raise ValueError unless each of their columns has a name."""
    tables = model.tables
    if type(model) is not Model:
        return
    shapes = [encodings.values.shape for per_target in tables for encodings in per_target]
    columns = kept_columns(model, [*range(model.permutations * sum(views * outputs for _, views, outputs in shapes))])
    n_named = len(model.encoded_names([""] * model.n_features)) - len(model.keys) * len(model.indicators)
    if len(columns) != n_named:
        raise ValueError(f"its tables have {len(columns)} columns of encodings, and there are {n_named} names")
