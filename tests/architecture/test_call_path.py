"""A call uses few files and few functions, so that a reader can follow it."""

import pytest

from tests.architecture.call_path import calls, file_of, functions_of

# Files, and functions.
LIMITS = {
    "fit_transform": (32, 330),
    "transform": (15, 100),
    "OneHotEncoder": (34, 231),
    "encode_dataset": (51, 730),
}


@pytest.mark.host
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LIMITS)
def test_a_call_goes_through_few_files_and_functions(name, tmp_path):
    functions = functions_of(calls(tmp_path)[name])
    files = {file_of(function) for function in functions}
    assert len(files) > 1
    most_files, most_functions = LIMITS[name]
    assert len(files) <= most_files, sorted(files)
    assert len(functions) <= most_functions, sorted(function.co_qualname for function in functions)
