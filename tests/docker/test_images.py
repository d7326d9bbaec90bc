"""Images cannot be built here: each line of a Dockerfile is run elsewhere, or checked below.

.ci/run runs the lines of `RUN` and `CMD` that install and test. The commands that root runs before them are called
here, with stand-ins for the system's programs.
"""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from benchmarks.harness.machine import ROOT, output_of

# What the user runs, what root installs before, and what an image does.
TESTED, USED = "g++ git make", " && gpu-encode warm-up"
IMAGES = {
    "cpu": ("docker/install.sh cpu", TESTED, {"CMD": '["docker/test.sh", "cpu"]'}),
    "cuda": ('docker/install.sh cuda "$CUDA"', TESTED, {"CMD": '["docker/test.sh", "cuda"]'}),
    "serve": ("docker/install.sh use service" + USED, "", {"CMD": '["docker/serve.sh"]'}),
    "encode": (
        'docker/install.sh use "$EXTRAS"' + USED,
        "",
        {"ENTRYPOINT": '["gpu-encode"]', "CMD": '["--help"]'},
    ),
}
CI = (ROOT / ".ci" / "run").read_text()


def instructions(image):
    """Lines of a Dockerfile, each as its instruction and what follows it."""
    text = (ROOT / "docker" / f"{image}.Dockerfile").read_text()
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line]


def given(image, *names):
    """What follows the instructions of these names."""
    return [rest for name, rest in instructions(image) if name in names]


def defaults(image):
    """Values of what is declared with one, by ARG or ENV."""
    return dict(re.findall(r"(\w+)=(\S+)", " ".join(given(image, "ARG", "ENV"))))


def ignored(path, patterns):
    """Whether .dockerignore leaves out a path, or a folder above it."""
    above = [path, *map(str, Path(path).parents)]
    return any(re.fullmatch(pattern, each) for pattern in patterns for each in above)


def as_expression(pattern):
    """A pattern of Docker as a regular expression."""
    parts = re.split(r"(\*\*/|\*|\?|\[[^]]*\])", pattern)
    known = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return "".join(known.get(part, part if part.startswith("[") else re.escape(part)) for part in parts)


PATTERNS = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
LEFT_OUT = list(map(as_expression, PATTERNS))


@pytest.mark.parametrize("image", IMAGES)
def test_only_known_lines_are_run(image):
    run, packages, started = IMAGES[image]
    assert given(image, "RUN") == [f'/opt/prepare.sh "$USER_ID" {packages}'.rstrip(), run]
    assert {name: rest for name, rest in instructions(image) if name in ("CMD", "ENTRYPOINT")} == started
    known = {"ARG", "FROM", "COPY", "RUN", "USER", "WORKDIR", "ENV", "CMD", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK"}
    assert {name for name, _ in instructions(image)} <= known


def test_ci_runs_them():
    lines = [line.strip().split(" 2>&1")[0] for line in CI.splitlines()]
    assert "docker/install.sh cpu" in lines
    assert "docker/test.sh cpu" in lines
    assert f'VENV="$scratch/use" docker/install.sh use service,{defaults("encode")["EXTRAS"]}' in lines
    assert "docker/test.sh use" in CI
    assert "docker/serve.sh &" in (ROOT / "docker" / "test.sh").read_text()
    # What the other would install is found, and not downloaded.
    cuda = defaults("cuda")["CUDA"]
    assert f'INSTALL_ARGS=--dry-run VENV="$scratch/cuda" docker/install.sh cuda {cuda}' in lines


@pytest.mark.parametrize("image", IMAGES)
def test_the_order_of_lines(image):
    first, *others = [each for each in instructions(image) if each[0] in ("COPY", "RUN", "USER", "WORKDIR", "CMD")]
    # Root prepares; the checkout is there before it is installed, by the user who runs the tests.
    assert first == ("COPY", "docker/prepare.sh /opt/")
    beside = ["WORKDIR"] if image == "encode" else []
    assert [name for name, _ in others] == ["RUN", "USER", "WORKDIR", "COPY", "RUN", *beside, "CMD"]
    assert given(image, "USER") == ["$USER_ID"]


@pytest.mark.parametrize("image", IMAGES)
def test_what_is_called_can_be(image):
    copied = [rest.split()[0] for rest in given(image, "COPY") if not rest.startswith("--")]
    called = [line.split()[0] for line in given(image, "RUN") if line.startswith("docker/")]
    for path in (*copied, *called, "docker/test.sh", "docker/serve.sh"):
        assert os.access(ROOT / path, os.X_OK), path
        assert not ignored(path, LEFT_OUT)


@pytest.mark.parametrize("image", IMAGES)
def test_the_interpreter_is_one_that_the_package_takes(image):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {defaults(image)['PYTHON']}" in project["classifiers"]
    assert given(image, "FROM") == ["python:${PYTHON}-slim"]


def test_a_copy_is_the_checkout():
    tracked = (output_of("git", "ls-files") or "").splitlines()
    if not tracked:
        pytest.skip("only a checkout knows its files")
    assert [path for path in tracked if ignored(path, LEFT_OUT)] == []
    # What names the commit stays, and what git ignores does not come along.
    assert not any(ignored(path, LEFT_OUT) for path in (".git/HEAD", ".git/refs/heads/main", ".git/objects/ab/cdef"))
    for line in (ROOT / ".gitignore").read_text().splitlines():
        assert f"**/{line.removesuffix('/')}" in PATTERNS


def test_the_commit_has_a_name_in_a_copy(tmp_path):
    """Git needs neither its settings nor its hooks to tell where it is."""
    commit = output_of("git", "rev-parse", "HEAD")
    if not commit:
        pytest.skip("only a checkout has a commit")
    clone = ["git", "clone", "--quiet", "--no-checkout", "--shared", str(ROOT), str(tmp_path / "copy")]
    subprocess.run(clone, check=True, capture_output=True)
    folder = tmp_path / "copy" / ".git"
    for path in sorted(folder.rglob("*"), reverse=True):
        if ignored(str(path.relative_to(tmp_path / "copy")), LEFT_OUT):
            path.rmdir() if path.is_dir() else path.unlink()
    assert not (folder / "config").exists()
    named = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder.parent, capture_output=True, text=True, check=True)
    assert named.stdout.strip() == commit


@pytest.mark.parametrize("image", IMAGES)
def test_what_root_prepares_is_what_the_user_finds(image, tmp_path):
    for name in ("apt-get", "useradd", "install", "rm"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/log"\n')
        program.chmod(0o755)
    settings = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    packages = IMAGES[image][1].split()
    given_words = [defaults(image)["USER_ID"], *packages]
    subprocess.run([ROOT / "docker" / "prepare.sh", *given_words], env=settings, check=True)
    *installed, user, folders = (tmp_path / "log").read_text().splitlines()
    if packages:
        update, install, removed = installed
        assert update == "apt-get update"
        assert install.split()[1:] == ["install", "--yes", "--no-install-recommends", *packages]
        assert removed.startswith("rm -rf /var/lib/apt/lists/")
    else:
        assert installed == []
    (owned,) = (rest.split() for rest in given(image, "COPY") if rest.startswith("--chown"))
    name, group = owned[0].removeprefix("--chown=").split(":")
    assert user.split()[-1] == name
    assert f"--uid {defaults(image)['USER_ID']} " in user
    assert "--user-group" in user
    # The user may write to the folder of the checkout and to that of the environment.
    workdir = given(image, "WORKDIR")[0]
    assert owned[1:] == [".", "."]
    assert folders == f"install --directory --owner={name} --group={group} {workdir} {defaults(image)['VENV']}"


@pytest.mark.parametrize("image", IMAGES)
def test_the_environment_is_the_first_on_the_path(image):
    assert defaults(image)["PATH"] == f"{defaults(image)['VENV']}/bin:$PATH"


def test_prepare_asks_for_the_number_of_the_user():
    done = subprocess.run([ROOT / "docker" / "prepare.sh"], check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert "the number of the user" in done.stderr
