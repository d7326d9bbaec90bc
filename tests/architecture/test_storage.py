"""Files can hold every encoder, and whatever its codes are read off sums by."""

import pkgutil
from importlib import import_module

import gpu_encode
from gpu_encode import formulas
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.storage.encoders import ENCODERS
from gpu_encode.storage.parameters import CLASSES


def concrete(base):
    """Give the subclasses of a class that have none themselves, in this library."""
    own = [each for each in base.__subclasses__() if each.__module__.startswith("gpu_encode.")]
    return {found for each in own for found in concrete(each)} if own else {base}


def test_every_encoder_can_be_saved():
    assert set(ENCODERS) == {name for name in gpu_encode.__all__ if name.endswith("Encoder")}


def test_every_statistic_can_be_saved():
    for module in pkgutil.iter_modules(formulas.__path__):
        import_module(f"{formulas.__name__}.{module.name}")
    missing = {found.__name__ for found in concrete(Statistic) if CLASSES.get(found.__name__) is not found}
    assert not missing, f"not in CLASSES of gpu_encode/storage/parameters.py: {missing}"
