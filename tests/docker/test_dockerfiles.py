"""What a linter does not see in docker/: nothing can be built here, so the files are held against one another."""

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILES = ["cpu.Dockerfile", "cuda.Dockerfile"]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
IGNORED = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]


def instructions(name):
    """Give the instructions of a Dockerfile, each with its text, the values of its arguments put in."""
    found, arguments = [], {}
    for line in (ROOT / "docker" / name).read_text().replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        word, text = line.split(maxsplit=1)
        for argument, value in arguments.items():
            text = re.sub(rf"\$({argument}\b|{{{argument}}})", value, text)
        if word == "ARG":
            arguments.update([text.split("=")])
        found.append((word, text))
    return found


def packages(extra):
    """Give what an extra installs, that of the extras of ours that it names too."""
    found = []
    for requirement in EXTRAS[extra]:
        ours = re.fullmatch(r"gpu-encode\[(.*)\]", requirement)
        found += [each for name in ours[1].split(",") for each in packages(name)] if ours else [requirement]
    return found


def of(name, word):
    """Give the texts of all instructions of one kind."""
    return [text for found, text in instructions(name) if found == word]


def copied(name):
    """Give the sources of every COPY."""
    return [
        source
        for text in of(name, "COPY")
        for source in [part for part in shlex.split(text) if not part.startswith("--")][:-1]
    ]


def left_out(path, patterns=IGNORED):
    """Say whether .dockerignore keeps a path out: a pattern that fits the path or a folder above it."""
    ways = [re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*") for pattern in patterns]
    ways = [re.sub(r"\\\[(.*?)\\\]", r"[\1]", way) for way in ways]
    parts = path.split("/")
    return any(re.fullmatch(way, "/".join(parts[:n])) for way in ways for n in range(1, len(parts) + 1))


def git(*arguments):
    """Ask git for paths; a test that needs them is left out where there is no repository."""
    try:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not in a clone, or no git")


@pytest.fixture
def made(tmp_path):
    """Run a script of docker/ with a `make` that does nothing but write down how it was called."""
    log = tmp_path / "log"
    stand_in = tmp_path / "make"
    stand_in.write_text(
        '#!/bin/sh\nprintf "%s|" "OPS_BACKENDS=$OPS_BACKENDS RAPIDS=$RAPIDS" "$@" '
        f'>>"{log}"; echo >>"{log}"; exit "${{STATUS:-0}}"\n'
    )
    stand_in.chmod(0o755)

    def run(script, *arguments, **settings):
        log.write_text("")
        read = ("OPS_BACKENDS", "RAPIDS", "PYTEST_ARGS", "GPU_ARGS")
        plain = {key: os.environ[key] for key in os.environ if key not in read}
        done = subprocess.run(
            [ROOT / "docker" / script, *arguments],
            env={**plain, "PATH": f"{tmp_path}:{os.environ['PATH']}", **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        return done, [line.split("|")[:-1] for line in log.read_text().splitlines()]

    return run


def test_the_dockerfiles_are_these():
    assert sorted(path.name for path in (ROOT / "docker").glob("*Dockerfile*")) == DOCKERFILES


@pytest.mark.parametrize("name", DOCKERFILES)
def test_an_image_ends_as_a_user_without_rights(name):
    users = of(name, "USER")
    assert users
    assert users[-1].isdecimal()
    assert int(users[-1]) > 0
    words = [word for word, _ in instructions(name)]
    before = [text for word, text in instructions(name)[: words.index("USER")] if word == "RUN"]
    assert before == ['/opt/prepare.sh "1000"']


@pytest.mark.parametrize("name", DOCKERFILES)
def test_what_is_copied_exists_and_is_sent(name):
    assert "." in copied(name)
    for source in copied(name):
        assert (ROOT / source).exists()
        assert not left_out(source)


@pytest.mark.parametrize("name", DOCKERFILES)
def test_an_image_installs_the_checkout_and_tests_it_by_the_same_scripts(name):
    device = name.removesuffix(".Dockerfile")
    assert of(name, "COPY")[-1] == "--chown=encoder:encoder . ."
    words = [word for word, _ in instructions(name)]
    assert words[-1] == "CMD"
    assert of(name, "CMD") == [f'["docker/test.sh", "{device}"]']
    ran = of(name, "RUN")
    assert [line.split()[:2] for line in ran[1:]] == [["docker/install.sh", device]]
    for script in ("prepare.sh", "install.sh", "test.sh"):
        assert os.access(ROOT / "docker" / script, os.X_OK)


def test_the_images_differ_in_the_device_alone():
    shared = [
        {line for line in instructions(name) if line[0] in ("FROM", "COPY", "USER", "WORKDIR")} for name in DOCKERFILES
    ]
    assert shared[0] == shared[1]


def test_cuda_is_a_version_that_the_extras_have(made):
    of_cuda = {name.removeprefix("cu") for name in EXTRAS if re.fullmatch(r"cu\d+", name)}
    of_rapids = {name.removeprefix("rapids-cu") for name in EXTRAS if name.startswith("rapids-cu")}
    taken = {version for version in map(str, range(9, 20)) if made("install.sh", "cuda", version)[0].returncode == 0}
    assert taken == of_cuda == of_rapids
    assert dict([text.split("=") for text in of("cuda.Dockerfile", "ARG") if "CUDA" in text])["CUDA"] in taken


@pytest.mark.parametrize("version", ["12", "13"])
def test_one_version_of_cuda_is_installed(made, version):
    _, ((_, target, extras),) = made("install.sh", "cuda", version)
    assert target == "install"
    names = extras.removeprefix("EXTRAS=").split(",")
    wanted = " ".join(requirement for name in names for requirement in packages(name))
    assert f"cudf-cu{version}" in wanted
    assert set(re.findall(r"cu(?:da)?(1\d)", wanted)) == {version}
    assert "pytest" in wanted


@pytest.mark.parametrize("version", ["", "11", "13.0", "cu12", "12 13"])
def test_no_other_version_is_taken(made, version):
    done, calls = made("install.sh", "cuda", version)
    assert done.returncode == 2
    assert f"CUDA must be 12 or 13, not '{version}'" in done.stderr
    assert calls == []


@pytest.mark.parametrize(
    ("script", "arguments"), [("install.sh", []), ("install.sh", ["gpu"]), ("test.sh", []), ("test.sh", ["13"])]
)
def test_a_wrong_call_says_how(made, script, arguments):
    done, calls = made(script, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"usage: docker/{script} cpu")
    assert calls == []


def test_the_cpu_image_runs_the_commands_of_the_readme(made):
    assert made("install.sh", "cpu")[1] == [["OPS_BACKENDS= RAPIDS=", "install"]]
    assert made("test.sh", "cpu")[1] == [["OPS_BACKENDS= RAPIDS=", "test"]]


def test_all_suites_of_a_gpu_run_and_any_failure_counts(made):
    done, (frames, others) = made("test.sh", "cuda")
    assert done.returncode == 0
    suites = "PYTEST_ARGS=tests/frames tests/rapids tests/guides"
    # Without RAPIDS the folder of that name is not collected.
    assert frames == ["OPS_BACKENDS=cuda RAPIDS=1", "--old-file=pyproject.toml", "test", suites]
    assert others == ["OPS_BACKENDS= RAPIDS=", "gpu", "GPU_ARGS=--only machine,suites,bits,encoders,races,examples"]
    done, calls = made("test.sh", "cuda", STATUS="3")
    assert done.returncode == 3
    assert len(calls) == 2


def test_the_steps_and_suites_of_a_gpu_exist(made):
    from benchmarks.gpu.__main__ import parsed

    _, (frames, others) = made("test.sh", "cuda")
    assert all((ROOT / folder).is_dir() for folder in frames[-1].removeprefix("PYTEST_ARGS=").split())
    assert parsed(shlex.split(others[-1].removeprefix("GPU_ARGS="))).only


def test_make_takes_the_extras():
    shown = subprocess.run(
        ["make", "--dry-run", "--always-make", "install", "EXTRAS=suite,rapids-cu12"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "'.[suite,rapids-cu12]'" in shown


def test_every_file_of_the_checkout_is_sent():
    tracked = git("ls-files")
    assert "docker/test.sh" in tracked
    assert [path for path in tracked if left_out(path)] == []


@pytest.mark.parametrize("folder", ["", "gpu_encode/", "tests/frames/"])
def test_what_git_ignores_is_not_sent(folder):
    patterns = (ROOT / ".gitignore").read_text().split()
    paths = [folder + pattern.rstrip("/").replace("*", "x").replace("[co]", "c") for pattern in patterns]
    assert len(paths) > 10
    assert [path for path in paths if not left_out(path)] == []


def test_an_image_has_the_commit_and_no_password():
    assert left_out(".git/config")
    assert not any(left_out(path) for path in (".git/HEAD", ".git/refs/heads/main", ".git/packed-refs", ".git/index"))


def test_a_pattern_fits_as_docker_has_it():
    assert left_out("a/b/c", ["a/b"])
    assert left_out("a/b/c.pyc", ["**/*.py[co]"])
    assert left_out("c.pyo", ["**/*.py[co]"])
    assert not left_out("a/b", ["b"])
    assert not left_out("a/b", ["a/b/c"])
    assert not left_out("a/xb", ["x*"])
    assert not left_out("abuild/x", ["**/build"])
