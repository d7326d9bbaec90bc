"""Files of models whose indicators were one column or none say so by true and false, and are read as ever."""

from pathlib import Path
from typing import Any

import pytest

from gpu_encode import TargetEncoder, load
from tests.storage.altered import assert_refused, changed
from tests.storage.fitted import NEW, TABLE, TARGETS
from tests.storage.test_round_trip import bits


def saved(path: Path, indicators: Any) -> bytes:
    TargetEncoder(columns=["city", ("city", "zip")], indicators=indicators).fit(TABLE, TARGETS["binary"]).save(path)
    return path.read_bytes()


def with_indicators(content: bytes, indicators: Any) -> bytes:
    return changed(content, lambda document: document["model"].update(indicators=indicators))


@pytest.mark.parametrize("asked", [True, False])
def test_files_of_earlier_releases(asked: bool, path: Path) -> None:
    content = saved(path, asked)
    expected = load(path)
    path.write_bytes(with_indicators(content, asked))
    found = load(path)
    assert bits(found.transform(NEW)) == bits(expected.transform(NEW))
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()


@pytest.mark.parametrize("indicators", [["absent"], ["unseen", "unseen"], [True], [["unseen"]]])
def test_others_are_refused(indicators: Any, path: Path) -> None:
    content = with_indicators(saved(path, ["unseen", "missing"]), indicators)
    assert_refused(path, content, "is damaged: .*the field 'indicators' holds")
