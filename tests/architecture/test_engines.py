"""Engines replace every method of an encoder that gets a table in partitions."""

import inspect
from importlib import import_module
from itertools import product

from gpu_encode.encoders.base import ENGINES, Encoder

CALLS = ("fit", "fit_transform", "transform", "partial_fit", "forget", "drift")


def test_engines_take_what_encoders_take():
    for name, call in product(ENGINES, CALLS):
        own = list(inspect.signature(getattr(Encoder, call)).parameters)[1:]
        signature = inspect.signature(getattr(import_module(ENGINES[name]), call))
        assert signature.bind("encoder", **dict.fromkeys(own)), (name, call)
