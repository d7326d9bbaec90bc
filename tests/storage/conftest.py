from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_encode import MEstimate, Ordered, Prefixes, TargetEncoder, load
from tests.storage.fitted import TABLE, TARGETS


def encoder_of_everything() -> TargetEncoder:
    y = pa.table({"a": TARGETS["continuous"], "b": TARGETS["multiclass"]})
    parameters: dict[str, Any] = {"columns": ["city", ("city", "device"), "zip"], "hierarchy": {"zip": Prefixes(4)}}
    parameters |= {"target_type": ["continuous", "multiclass"], "cv": Ordered(2, average=False)}
    return TargetEncoder(smooth=MEstimate(2.0), prior={"city": np.float32(0.5)}, **parameters).fit(TABLE, y)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Any]:
    path = tmp_path_factory.mktemp("saved") / "encoder.model"
    encoder = encoder_of_everything()
    encoder.save(path)
    return path.read_bytes(), encoder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "encoder.model"


@pytest.fixture
def reloaded(path: Path) -> Any:
    """Save an encoder, and load it again."""

    def again(encoder: Any) -> Any:
        encoder.save(path)
        return load(path)

    return again
