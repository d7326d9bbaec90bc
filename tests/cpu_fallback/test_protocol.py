"""Both backends are the protocol: the same public names with the same signatures."""

import inspect

import pytest

import cpu_fallback
import cpu_fallback.compiled
from gpu_encode.ops import Ops

OPERATIONS = sorted(
    name for name, member in vars(Ops).items() if inspect.isfunction(member) and not name.startswith("_")
)


@pytest.mark.parametrize("backend", [cpu_fallback, cpu_fallback.compiled])
def test_a_backend_has_exactly_the_operations_of_the_protocol(backend):
    assert sorted(backend.__all__) == OPERATIONS


@pytest.mark.parametrize("name", OPERATIONS)
def test_signatures_are_those_of_the_protocol(name):
    promised = list(inspect.signature(getattr(Ops, name)).parameters.values())[1:]
    for backend in (cpu_fallback, cpu_fallback.compiled):
        given = list(inspect.signature(getattr(backend, name)).parameters.values())
        assert [(one.name, one.kind) for one in given] == [(one.name, one.kind) for one in promised]
