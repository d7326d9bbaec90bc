"""The public names: complete, documented by examples that run, and a superset of scikit-learn's."""

import doctest
import inspect
import re
import subprocess
import sys
import threading
import typing

import pytest
from sklearn.base import BaseEstimator
from sklearn.preprocessing import TargetEncoder as Theirs
from typing_extensions import TypeAliasType

import gpu_encode
from gpu_encode import TargetEncoder

CLASSES = [name for name in gpu_encode.__all__ if inspect.isclass(getattr(gpu_encode, name))]


def test_the_list_of_names_is_complete():
    in_order = sorted(gpu_encode.__all__, key=lambda name: (not name.isupper(), name))
    assert in_order == gpu_encode.__all__
    assert set(gpu_encode._HOME) == set(gpu_encode.__all__)
    assert set(dir(gpu_encode)) == {*gpu_encode.__all__, "__version__"}


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="module 'gpu_encode' has no attribute 'TargetEncodr'"):
        gpu_encode.TargetEncodr  # noqa: B018


def test_help_tells_every_name_once_and_no_other():
    lines = re.findall(r"^    ([A-Z]\w+(?:, \w+)*|[a-z]\w+(?:, \w+)*)(?:  |$)", gpu_encode.__doc__, re.MULTILINE)
    assert sorted(", ".join(lines).split(", ")) == sorted(gpu_encode.__all__)


def test_names_live_where_they_are_said_to():
    for name in gpu_encode.__all__:
        found = getattr(gpu_encode, name)
        assert found.__name__ == name
        assert found.__module__.startswith(f"gpu_encode.{gpu_encode._HOME[name]}"), name


@pytest.mark.parametrize("name", gpu_encode.__all__)
def test_every_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = getattr(gpu_encode, name)
    (test,) = doctest.DocTestFinder(recurse=False).find(found, name, globs={})
    assert test.examples, f"{name} has no example"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.DocTestRunner(optionflags=flags, verbose=False).run(test)
    assert result.failed == 0


def test_every_parameter_is_documented():
    offenders = []
    for name in CLASSES:
        found, told = getattr(gpu_encode, name), inspect.getdoc(getattr(gpu_encode, name))
        assert issubclass(found, BaseEstimator | Warning), name
        parameters = found._get_param_names() if issubclass(found, BaseEstimator) else []
        offenders += [f"{name}: {each}" for each in parameters if not re.search(rf"\n\*?{each} : ", told)]
    assert offenders == []


def signatures(name):
    """Return the function, or the constructor and an estimator's methods, each with the text that describes it."""
    found = getattr(gpu_encode, name)
    if not inspect.isclass(found):
        return {name: (found, found.__doc__)}
    methods = [method for method in dir(found) if not method.startswith("_")] if hasattr(found, "fit") else []
    functions = {method: inspect.getattr_static(found, method) for method in methods}
    constructor = {"__init__": (found.__init__, found.__doc__)} if inspect.isfunction(found.__init__) else {}
    return constructor | {
        method: (function, function.__doc__)
        for method, function in functions.items()
        if inspect.isfunction(function) and function.__module__.startswith("gpu_encode")
    }


def members_of(annotation):
    """Yield a type and its parts; NumPy's own types and `type[...]` are not taken apart."""
    yield annotation
    if isinstance(annotation, TypeAliasType):
        yield from members_of(annotation.__value__)
    origin = typing.get_origin(annotation)
    if origin is not type and not getattr(origin, "__module__", "").startswith("numpy"):
        for part in typing.get_args(annotation):
            for each in part if isinstance(part, list) else [part]:
                yield from members_of(each)


def untold(parameter, told):
    """Return what a parameter's type lacks compared with its description; nothing if it lacks nothing."""
    if parameter.annotation is parameter.empty:
        return "no type"
    members = list(members_of(parameter.annotation))
    if typing.Any in members:
        return "any type"
    listed = re.search(rf"^ *(?:\w+, )*{parameter.name}(?:, \w+)* : .*?\{{(\".*?)\}}", told or "", re.MULTILINE)
    words = {word.strip().strip('"') for word in listed[1].split(",")} if listed else set()
    return sorted(words - {word for word in members if isinstance(word, str)})


def test_parameters_have_types_and_words_are_listed_in_them():
    offenders = []
    for name in gpu_encode.__all__:
        for method, (function, told) in signatures(name).items():
            parameters = inspect.signature(function).parameters.values()
            found = {each.name: untold(each, told) for each in parameters if each.name != "self"}
            offenders += [f"{name}.{method}({each}): {what}" for each, what in found.items() if what]
    assert offenders == []


def test_signatures_name_types_and_do_not_spell_them_out():
    offenders = []
    for name in gpu_encode.__all__:
        for method, (function, _) in signatures(name).items():
            shown = str(inspect.signature(function))
            if len(shown) > 1500 or "numpy._typing" in shown:
                offenders.append(f"{name}.{method}: {len(shown)} characters")
    assert offenders == []


def test_parameters_are_a_superset_of_scikit_learns():
    ours = inspect.signature(TargetEncoder.__init__).parameters
    theirs = inspect.signature(Theirs.__init__).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    # These two are deprecated in scikit-learn, and not here.
    defaults = {name: parameter.default for name, parameter in theirs.items()} | {"shuffle": True, "random_state": 0}
    for name, parameter in ours.items():
        if name in theirs:
            assert parameter.default == defaults[name]
            assert parameter.kind is theirs[name].kind
        else:
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY


def test_methods_take_what_scikit_learns_take():
    for method in ("fit", "transform", "get_feature_names_out", "set_output", "get_params", "set_params"):
        theirs = inspect.signature(getattr(Theirs, method)).parameters
        ours = inspect.signature(getattr(TargetEncoder, method)).parameters
        assert list(ours)[: len(theirs)] == list(theirs), method


def test_fitted_attributes_are_a_superset_of_scikit_learns():
    X, y = [["a"], ["b"]] * 5, [0, 1] * 5
    theirs = {name for name in vars(Theirs().fit(X, y)) if name.endswith("_") and not name.startswith("_")}
    ours = TargetEncoder().fit(X, y)
    assert [name for name in theirs if not hasattr(ours, name)] == []


def test_docstrings_tell_parameters_in_the_order_of_the_signature():
    for name in [name for name in gpu_encode.__all__ if name.endswith("Encoder")]:
        encoder = getattr(gpu_encode, name)
        parameters = re.split(r"\n(Attributes|See Also)\n", inspect.getdoc(encoder))[0]
        told = ", ".join(re.findall(r"^(\w[\w, ]*) : ", parameters, re.MULTILINE)).split(", ")
        assert told == list(inspect.signature(encoder).parameters), name


NAMED_BY_THREADS = """
import threading, gpu_encode
errors, together = [], threading.Barrier(8)
def use(name):
    together.wait()
    try:
        getattr(gpu_encode, name)
    except Exception as error:
        errors.append(error)
names = [*gpu_encode.__all__[::4], "load"][-8:]
threads = [threading.Thread(target=use, args=(name,)) for name in names]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(threads) == 8 and not errors, errors
"""


def test_threads_may_be_the_first_to_use_names():
    subprocess.run([sys.executable, "-c", NAMED_BY_THREADS], check=True, timeout=120)


def test_one_thread_at_a_time_loads_a_name():
    """Two threads that import modules in different orders may find a module half loaded, now and then."""
    found = []
    thread = threading.Thread(target=lambda: found.append(gpu_encode.KFold))
    with gpu_encode.LOADING:
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
    thread.join()
    assert found == [gpu_encode.KFold]
