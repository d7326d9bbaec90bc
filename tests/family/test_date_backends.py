"""Statistics of text and dates have the same bits on every backend, whichever rows a row sees."""

import pytest

import gpu_encode as ge
from gpu_encode.seam.ops import use_backend
from tests.backends import ON_CUDA
from tests.family.members import same
from tests.family.test_statistic_dates import ASKED, SCHEMES, X

IN_ORDER = {"shop": {"when": ["seconds_since_last", "count"]}}
CASES = {name: (cv, ASKED, X) for name, cv in SCHEMES.items()}
CASES["ordered"] = ge.Ordered(time="when"), IN_ORDER, X.dropna().reset_index(drop=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("cv", "asked", "rows"), CASES.values(), ids=CASES)
def test_backends(cv, asked, rows):
    tables = []
    for name in ("numpy", *(ON_CUDA or ["compiled"])):
        with use_backend(name):
            encoder = ge.StatisticEncoder(asked, cv=cv)
            tables.append((encoder.fit_transform(rows), encoder.transform(rows)))
    for one, other in zip(*tables, strict=True):
        same(one, other)
