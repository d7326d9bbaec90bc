"""Where a fitted encoder comes from: version of the library, day, rows, and fingerprints of its columns and sums.

The day is a part of the encoder, as its sums are, and not the time of a file: a model that is loaded and saved again
keeps it.  Two fits to the same rows on one day give equal files; SOURCE_DATE_EPOCH fixes the day.  Fingerprints follow
from the model, so they cost a fit nothing, and no order or chunk of rows matters.
"""

import hashlib
import json
import re
from typing import Any

from gpu_encode.fitting.model import Model, weights_of
from gpu_encode.storage import models
from gpu_encode.storage.archive import Digest, Writer
from gpu_encode.storage.json_fields import read_field

# What each field may hold; exports write these texts into comments.
FIELDS = {
    "library": r"[\w.+!-]{1,40}",
    "day": r"\d{4,12}-\d\d-\d\d",
    "schema": r"[0-9a-f]{16}",
    "learned": r"[0-9a-f]{16}",
}
ARRAY = re.compile(r'"(arrays/\d+\.arrow)"')


def origin_of(encoder: Any) -> dict[str, Any]:
    """Give the origin of a fitted encoder; a field that was never recorded is None."""
    known = encoder._origin or {}
    if "learned" in known:
        return dict(known)
    with Writer(Digest()) as writer:
        return describe(encoder, models.describe(summed(encoder), writer), writer)


def summed(encoder: Any) -> Model:
    """Give the model with the sums of an encoder."""
    return getattr(encoder._model, "sums", None) or encoder._model


def describe(encoder: Any, described: dict[str, Any], writer: Writer) -> dict[str, Any]:
    """Give the origin of an encoder as JSON, from the description of its model, whose arrays the writer has got."""
    known, model = encoder._origin or {}, summed(encoder)
    if "learned" in known:
        return dict(known)
    learned = json.dumps([described.get(name) for name in ("keys", "statistics", "pair_sums")], sort_keys=True)
    # Arrays are numbered in the order in which they are written, but a fingerprint is of their content.
    learned = ARRAY.sub(lambda found: writer.digests.get(found[1], found[0]), learned)
    kinds = [[values.kind for values in key.vocabularies] for key in model.keys]
    targets = [[info.name, info.kind] for info in model.targets]
    return {
        "library": known.get("library"),
        "day": known.get("day"),
        "rows": float(weights_of(model, 0).sum()) if model.statistics else None,
        "schema": fingerprint(json.dumps([model.feature_names or model.n_features, kinds, targets])),
        "learned": fingerprint(learned),
    }


def fingerprint(text: str) -> str:
    """Give 64 bits of the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(document: dict[str, Any]) -> dict[str, Any] | None:
    """Read an origin; files of earlier releases have none."""
    if read_field({"origin": None, **document}, "origin", dict, None) is None:
        return None
    found = document["origin"]
    told = {name: read_field(found, name, str, None) for name in FIELDS}
    for name, text in told.items():
        if text is not None and not re.fullmatch(FIELDS[name], text, re.ASCII):
            raise ValueError(f"the field {name!r} holds {text[:40]!r}")
    rows = read_field(found, "rows", float, None)
    if rows is not None and not rows >= 0.0:
        raise ValueError(f"the field 'rows' holds {rows!r}")
    return {
        "library": told["library"],
        "day": told["day"],
        "rows": rows,
        **{name: told[name] for name in [*FIELDS][2:]},
    }
