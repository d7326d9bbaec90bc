"""What a run does, as JSON: two runs of which all is the same give the same bits, and one may go on from the other."""

import hashlib
import io
import json
import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import gpu_encode
from gpu_encode.datasets.destinations import Destination
from gpu_encode.datasets.source import Source
from gpu_encode.errors import datasets as errors
from gpu_encode.storage import archive, encoders
from gpu_encode.storage.parameters import UnwritableError, describe, encode, show


def described_run(source: Source, destination: Destination, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Describe what is read and written.

    Parameters
    ----------
    source : Source
    destination : Destination
    choices : mapping of str to object
        What else decides what is written, as JSON has it.
    """
    found: dict[str, Any] = {"the version of gpu-encode": gpu_encode.__version__}
    for file, state in zip(source.files, source.states, strict=True):
        found[f"size and time of the last change of {file.path}"] = list(state)
    found |= {
        "the files of the source": len(source.files),
        "the columns": source.schema.to_string(show_schema_metadata=False, show_field_metadata=False),
        "the texts that are missing values": list(source.missing_text),
        "the columns without which rows are left out": list(source.complete),
        "the compression": destination.compression,
        "the suffix of the output": destination.suffix,
    }
    return found | dict(choices)


def described_parameters(encoder: Any) -> dict[str, Any]:
    """Describe the parameters of an encoder, each by itself.

    Examples
    --------
    >>> described_parameters(gpu_encode.TargetEncoder(cv=3))["parameter cv"]
    3
    """
    found = {}
    for name, value in encoder.get_params(deep=False).items():
        if name == "device":
            continue  # it changes no bit
        content = io.BytesIO()
        writer = archive.Writer(content)
        try:
            document = describe({name: value}, writer)[0][name]
        except TypeError:
            document = show(value)
        arrays = writer._names
        if arrays:
            document = {"value": document, "arrays": sorted(mark.hex() for mark in arrays)}
        found[f"parameter {name}"] = document
    return found


def is_describable(readouts: Sequence[Any], resume: bool) -> bool:
    """Whether a file can hold what codes follow from, or else a run cannot be told from another.

    Raises
    ------
    TypeError
        If it cannot, and an interrupted run is to be gone on with.

    Examples
    --------
    >>> is_describable([gpu_encode.StatisticEncoder([max])._options().readout], resume=False)
    False
    """
    try:
        encode(list(readouts), archive.Writer(io.BytesIO()))
    except UnwritableError as reason:
        if resume:
            raise errors.not_describable(str(reason)) from None
        return False
    return True


def described_fitted(encoder: Any) -> dict[str, Any]:
    """Describe a fitted encoder by a digest of what saving it would write."""
    content = io.BytesIO()
    with archive.Writer(content) as writer, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        document = encoders.describe(encoder, writer)
        # How it was fitted and where plays no part.
        writer.finish({name: document[name] for name in ("parameters", "model", "output")})
    return {"the fitted encoder": hashlib.sha256(content.getvalue()).hexdigest()}


def is_repeatable(encoder: Any) -> bool:
    """Whether the encoder's scheme draws the same folds and orders every time.

    Examples
    --------
    >>> is_repeatable(gpu_encode.TargetEncoder(random_state=None))
    False
    """
    return isinstance(getattr(encoder._options().scheme, "random_state", 0), Integral)


def as_json(value: Any) -> Any:
    """Give a value as a manifest gives it back."""
    return json.loads(json.dumps(value))
