"""Ways in which a program is served, what does not change, and the report at the end."""

import json
import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder
from sklearn.preprocessing._encoders import _BaseEncoder

from gpu_encode.serve import accel
from gpu_encode.serve.accel.settings import FEWEST_ROWS

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[3]
X = np.array([["a", "x"], ["b", "x"], ["a", "y"]] * 10, dtype=object)
y = np.arange(30) % 2
SCRIPT = """
import sys
import numpy as np
from sklearn.preprocessing import OneHotEncoder
print(sys.argv[1:], __name__, OneHotEncoder().fit_transform(np.array([["a"], ["b"]] * 5, dtype=object)).shape)
"""


def names_of_methods():
    classes = (OneHotEncoder, OrdinalEncoder, TargetEncoder, _BaseEncoder)
    return {(each, name): method for each in classes for name, method in vars(each).items() if callable(method)}


def run(*command, **environment):
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def test_uninstall_puts_everything_back():
    before = names_of_methods()
    accel.install()
    accel.install()
    assert names_of_methods() != before
    accel.uninstall()
    accel.uninstall()
    assert names_of_methods() == before


def test_classes_stay_scikit_learns(served):
    encoder = OneHotEncoder(drop="first")
    assert type(encoder).__module__ == "sklearn.preprocessing._encoders"
    assert clone(encoder).get_params() == encoder.get_params()
    assert "OneHotEncoder" in encoder._repr_html_()
    assert type(TargetEncoder().get_metadata_routing()).__name__ == "MetadataRouter"


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OrdinalEncoder(), TargetEncoder()], ids=str)
def test_pickles_go_both_ways(encoder):
    theirs = pickle.dumps(make_pipeline(clone(encoder)).fit(X, y))
    accel.install(fewest_rows=0)
    ours = pickle.dumps(make_pipeline(clone(encoder)).fit(X, y))
    assert accel.report().n_served == 1
    given = pickle.loads(theirs).transform(X)
    assert accel.report().n_served == 2
    accel.uninstall()
    assert b"gpu_encode" not in ours
    expected = pickle.loads(ours).transform(X)
    assert np.allclose(
        *(each.toarray() if hasattr(each, "toarray") else each for each in (given, expected)), atol=1e-12
    )


def test_subclasses_of_a_users_own_are_served():
    class Loud(OneHotEncoder):
        def transform(self, X):
            return super().transform(X) * 2

    expected = Loud().fit_transform(X)
    accel.install(fewest_rows=0)
    assert (Loud().fit_transform(X) != expected).nnz == 0
    assert [line.method for line in accel.report().lines] == ["Loud.fit_transform"]


def test_few_rows_are_left_to_scikit_learn():
    accel.install()
    OneHotEncoder().fit(X)
    (line,) = accel.report().lines
    assert (line.method, line.served_by, line.reason, line.n_calls, line.n_rows) == (
        *("OneHotEncoder.fit", "scikit-learn", "few rows"),
        *(1, 30),
    )
    OneHotEncoder().fit(np.repeat(X, FEWEST_ROWS // 10, axis=0))
    assert accel.report().n_served == 1
    assert "few rows" in str(accel.report())


def test_a_target_of_float32_is_left_to_scikit_learn(served):
    TargetEncoder().fit(X, np.linspace(0, 1, 30, dtype=np.float32))
    (line,) = accel.report().lines
    assert line.reason == "a target of float32, whose mean scikit-learn rounds to its type"


def test_other_versions_are_left_to_scikit_learn(monkeypatch, capsys):
    before = names_of_methods()
    monkeypatch.setattr(sklearn, "__version__", "1.10.0")
    accel.install()
    assert names_of_methods() == before
    assert capsys.readouterr().err == (
        "gpu_encode.accel: not tested with scikit-learn 1.10.0, which serves every call itself.\n"
    )
    assert str(accel.report()) == "gpu_encode.accel: no encoder was called."


def test_calls_are_logged(caplog):
    accel.install(fewest_rows=0, verbose=True)
    with caplog.at_level(logging.INFO, "gpu_encode.accel"):
        OneHotEncoder().fit(X)
    assert caplog.messages == ["OneHotEncoder.fit of 30 rows: cpu"]


def test_a_notebook_is_served():
    accel.load_ipython_extension(None)
    OneHotEncoder().fit(X)
    assert len(accel.report().lines) == 1
    accel.unload_ipython_extension(None)
    assert not accel.report().lines


def test_a_device_that_is_none():
    with pytest.raises(ValueError, match="device"):
        accel.install(device="gpu")


def test_a_script_runs_with_its_arguments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    out, err = run("-m", "gpu_encode.accel", "--report", "--fewest-rows", "0", str(script), "-m", "--report")
    assert out == "['-m', '--report'] __main__ (10, 2)\n"
    assert "OneHotEncoder.fit_transform  cpu" in err
    out, err = run("-m", "gpu_encode.accel", str(script))
    assert (out, err) == ("[] __main__ (10, 2)\n", "")


def test_a_module_runs_with_its_arguments():
    out, err = run("-m", "gpu_encode.accel", "--report", "-m", "json.tool", "--help")
    assert out.startswith("usage:")
    assert err == "gpu_encode.accel: no encoder was called.\n"


def test_a_program_that_names_nothing():
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run("-m", "gpu_encode.accel")
    assert "name a script, or a module after -m" in caught.value.stderr


def test_the_environment_serves_a_program(tmp_path):
    # The line of the .pth file, as Python's `site` runs it.
    (line,) = (ROOT / "gpu_encode_accel.pth").read_text().splitlines()
    script = tmp_path / "script.py"
    # Twice, as in a virtual environment where PYTHONPATH is set.
    script.write_text(f"{line}\n{line}\n{SCRIPT}")
    for value, said in {"0": False, "": False, "1": False, "report": True, "verbose": True}.items():
        _, err = run(str(script), GPU_ENCODE_ACCEL=value, GPU_ENCODE_ACCEL_ROWS="0", PYTHONPATH=str(ROOT))
        assert err.count("OneHotEncoder.fit_transform  cpu") == said, value
    code = f"import sys\n{line}\nimport json; print(json.dumps([n for n in sys.modules if n.startswith('gpu_encode')]))"
    out, _ = run("-c", code, GPU_ENCODE_ACCEL="")
    assert json.loads(out) == []


def test_a_wrong_word_is_one_line_and_the_program_runs():
    (line,) = (ROOT / "gpu_encode_accel.pth").read_text().splitlines()
    code = f"{line}\n{line}\nprint('done')"
    for wrong in ({"GPU_ENCODE_ACCEL": "yes\x1b"}, {"GPU_ENCODE_ACCEL": "1", "GPU_ENCODE_ACCEL_ROWS": "few"}):
        name, word = list(wrong.items())[-1]
        out, err = run("-c", code, PYTHONPATH=str(ROOT), **wrong)
        assert out == "done\n"
        assert err.startswith(f"gpu_encode.accel: {name}={word!r} is not ")
        assert err.endswith("nothing is served.\n")
        assert err.count("\n") == 1


def test_an_isolated_python_ignores_the_variable():
    (line,) = (ROOT / "gpu_encode_accel.pth").read_text().splitlines()
    code = f"import sys\n{line}\nprint('gpu_encode' in sys.modules)"
    for option in ("-IS", "-ES"):
        assert run(option, "-c", code, GPU_ENCODE_ACCEL="yes") == ("False\n", "")


def test_installing_loads_nothing_heavy():
    code = (
        "import sys, gpu_encode.accel as a; a.install(); print(sorted({'numpy', 'sklearn', 'pandas'} & {*sys.modules}))"
    )
    out, _ = run("-c", code)
    assert "sklearn" not in out
    assert "pandas" not in out
