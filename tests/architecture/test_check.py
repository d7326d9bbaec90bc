"""The tests that a change can break are chosen, and the tests without time are named."""

import os
import subprocess
import sys

import pytest

from tests.architecture import check
from tests.architecture.imports import ROOT, modules

FILES = "gpu_encode/scale/files"


@pytest.mark.parametrize(
    ("changed", "nearest"),
    [
        (
            "gpu_encode/scale/files/staging.py",
            ["tests/scale/files/test_publishing.py", "tests/scale/files/test_stores.py"],
        ),
        ("cpu_fallback/compiled/sums.py", ["tests/cpu_fallback/test_sums.py"]),
        # A string names the module, as for modules that are loaded only when they are needed.
        ("cpu_fallback/compiled/__init__.py", ["tests/cpu_fallback/test_protocol.py"]),
        ("gpu_encode/schemes/orders.py", ["tests/laws/test_orders.py", "tests/laws/test_no_leak.py"]),
        # The public name stands for the module.
        ("gpu_encode/encoders/one_hot.py", ["tests/family/test_one_hot.py"]),
        ("docs/family.md", ["tests/guides/test_family.py"]),
        ("pyproject.toml", ["tests/test_release.py"]),
        ("tests/laws/encoding.py", ["tests/laws/test_orders.py"]),
        ("tests/laws/test_orders.py", ["tests/laws/test_orders.py"]),
    ],
)
def test_the_nearest_tests_of_a_change(changed, nearest):
    found = check.tests_of([changed])
    assert len(found) == len(set(found))
    assert set(nearest) <= set(found[:20])


def test_every_file_of_the_library_has_tests_of_its_own_room():
    without = []
    for module, path in modules().items():
        rooms = check.rooms_of(path.relative_to(ROOT).as_posix())
        if "." in module and not any(test.startswith(tuple(rooms)) for test in check.test_files()):
            without.append(module)
    # Addresses of guests, and what stands for the whole.
    assert {module.count(".") for module in without} <= {1}


def test_what_a_change_cannot_break_is_left_out():
    assert "tests/laws/test_orders.py" not in check.tests_of(["tests/laws/test_options.py", "docs/family.md"])
    assert check.tests_of(["tests/guides/test_family.py"]) == ["tests/guides/test_family.py"]
    assert check.tests_of(["no-file" + "-of-any-test"]) == []


def test_changes_are_those_since_a_commit_and_what_is_not_committed(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "ROOT", tmp_path)
    for name in ("committed", "changed", "removed"):
        (tmp_path / name).write_text("before")
    check.git("init", "--quiet", "--initial-branch", "main")
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for message in ("first", "second"):
        check.git("add", ".")
        check.git(*author, "commit", "--quiet", "-m", message)
        (tmp_path / "committed").write_text("after")
    assert check.changed_since(None) == []
    (tmp_path / "changed").write_text("after")
    (tmp_path / "removed").unlink()
    (tmp_path / "new").touch()
    assert check.changed_since(None) == ["changed", "new"]
    assert check.changed_since("HEAD~1") == ["changed", "committed", "new"]


@pytest.mark.parametrize(("seconds", "left", "passed"), [("0", 1, 0), ("600", 0, 1)])
def test_where_time_is_over_tests_are_named(seconds, left, passed):
    test = "tests/architecture/test_line_count.py"
    program = f"import sys; from tests.architecture import check; sys.exit(check.run([{test!r}]))"
    environment = {**os.environ, "CHECK_SECONDS": seconds}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.count(f"left to continuous integration: 1 tests of {test}") == left
    assert done.stdout.count("1 passed") == passed
