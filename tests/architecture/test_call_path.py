"""A call goes through few files, so that a reader can follow it."""

import pytest

from tests.architecture.call_path import calls, files_of

LIMITS = {"fit_transform": 35, "transform": 20, "OneHotEncoder": 37, "encode_dataset": 61}


@pytest.mark.host
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LIMITS)
def test_a_call_goes_through_few_files(name, tmp_path):
    files = files_of(calls(tmp_path)[name])
    assert len(files) > 1
    assert len(files) <= LIMITS[name], sorted(files)
