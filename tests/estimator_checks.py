"""scikit-learn's checks of estimators, as one test for each estimator."""

from typing import Any

from sklearn.utils.estimator_checks import check_estimator


def unexpected(estimator: Any, expected_to_fail: dict[str, str] | None = None) -> dict[str, Any]:
    """Name the checks with an unexpected end: failures, and passes of checks that were expected to fail."""
    results = check_estimator(estimator, expected_failed_checks=expected_to_fail, on_skip=None, on_fail=None)
    assert len(results) > 40
    return {
        each["check_name"]: each["exception"] or "passed"
        for each in results
        if each["status"] == "failed" or (each["status"] == "passed" and each["expected_to_fail"])
    }
