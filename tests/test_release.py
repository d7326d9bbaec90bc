"""All files of a release agree on version, Pythons, dependencies, tools and scripts."""

import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import gpu_encode
from tests.architecture.test_imports import GUESTS

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.host
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def read(path):
    return yaml.safe_load((ROOT / path).read_text())


def steps():
    """Return every step of every job of the workflows."""
    return [step for path in WORKFLOWS for job in read(path)["jobs"].values() for step in job["steps"]]


def test_there_is_one_version():
    assert "version" in PROJECT["dynamic"]
    assert read("CITATION.cff")["version"] == gpu_encode.__version__
    assert read("conda/recipe.yaml")["context"]["version"] == gpu_encode.__version__


def test_the_recipe_asks_for_what_the_project_asks_for():
    python, *others = read("conda/recipe.yaml")["requirements"]["run"]
    assert [text.replace(" ", "") for text in others] == PROJECT["dependencies"]
    assert python == f"python {PROJECT['requires-python']}"


def test_each_push_is_tested_with_every_python():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert read(".github/workflows/checks.yml")["jobs"]["quick"]["strategy"]["matrix"]["python"] == named


def test_hooks_before_a_commit_take_the_tools_of_the_project():
    hooks = [hook for repository in read(".pre-commit-config.yaml")["repos"] for hook in repository["hooks"]]
    assert {tool for hook in hooks for tool in hook["additional_dependencies"]} <= {
        *PROJECT["optional-dependencies"]["lint"]
    }


def test_actions_are_named_by_commit_and_leave_no_credentials():
    for step in steps():
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    lines = [line for path in WORKFLOWS for line in path.read_text().splitlines() if " uses: " in line]
    assert all(re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line) for line in lines)


def test_builds_of_a_release_are_attested():
    [job] = read(".github/workflows/release.yml")["jobs"].values()
    used = [step.get("uses", step.get("run")).split("@")[0] for step in job["steps"]]
    order = [used.index(each) for each in (".ci/package dist", "actions/attest-build-provenance", ".ci/publish dist")]
    assert order == sorted(order)
    assert job["steps"][order[-1]]["if"] == "vars.PUBLISH == 'true'"
    assert job["permissions"] == {"contents": "read", "id-token": "write", "attestations": "write"}


def test_a_release_is_built_by_tools_of_known_hashes():
    pinned = re.sub(r"\\\n\s*", "", (ROOT / ".github/build.txt").read_text())
    lines = [line for line in pinned.splitlines() if not line.startswith("#")]
    assert {"build", "hatchling", "twine"} <= {line.partition("==")[0] for line in lines}
    assert all(re.fullmatch(r"\S+==\S+( ; [^-]+)?( ?--hash=sha256:[0-9a-f]{64})+", line) for line in lines)
    package = (ROOT / ".ci/package").read_text()
    assert "--require-hashes --requirement .github/build.txt" in package
    assert "-m build --no-isolation" in package
    assert package.index("-m build") < package.index('twine" check --strict') < package.index('gpu-encode" --version')
    assert "--require-hashes --requirement .github/build.txt" in (ROOT / ".ci/publish").read_text()


def test_workflows_call_what_exists():
    commands = [step["run"] for step in steps() if "run" in step]
    assert len(commands) >= 6
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands:
        program, *words = shlex.split(re.sub(r"\$\{\{.*?\}\}", "expression", command))
        if program == "make":
            assert {word for word in words if "=" not in word} <= {*targets}, command
        else:
            assert os.access(ROOT / program, os.X_OK), command


def test_lanes_are_the_guests_and_the_core():
    workflow = read(".github/workflows/checks.yml")
    lanes = re.search(r"^GUESTS = (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE).group(1).split()
    assert workflow["jobs"]["lanes"]["strategy"]["matrix"]["lane"] == ["core", *lanes]
    assert lanes == [*GUESTS, "cli"]
    assert all((ROOT / "tests" / lane).is_dir() for lane in lanes)
