"""Every block of the README is run, as are the commands of the guides: Python unchanged, commands on made files."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from gpu_encode.cli import main

README = Path(__file__).parent.parent / "README.md"
GUIDES = sorted((README.parent / "docs").glob("*.md"))
WORDS = 1_200


def find_blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)


PYTHON = find_blocks(README, "python")


# Makes optional packages appear not installed.
BLOCKED = """
import sys
class Blocked:
    @staticmethod
    def find_spec(name, *_):
        if name.partition(".")[0] in {}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked)
"""


def test_it_is_read_in_five_minutes() -> None:
    assert len(README.read_text().split()) <= WORDS


@pytest.mark.parametrize("code", PYTHON)
def test_python_blocks_run(code, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*# (.*)", code)


@pytest.mark.parametrize(
    "code", [PYTHON[0], "from gpu_encode.cli import main; assert main(['demo', '--rows', '1000']) == 0"]
)
def test_the_first_block_and_the_demo_need_no_more_than_is_installed(code, tmp_path) -> None:
    blocked = BLOCKED.format(["pandas", "polars", "dask", "distributed"])
    subprocess.run(
        [sys.executable, "-c", blocked + code],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(README.parent)},
    )


def commands(path: Path) -> list[str]:
    lines = "".join(find_blocks(path, "bash")).splitlines()
    return [line.split("#")[0].strip() for line in lines if line.strip()]


def test_command_lines_run(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = {"shop": rng.integers(0, 40, 500).astype(str), "city": rng.choice(["Oslo", "Pune"], 500)}
    orders = pa.table(rows | {"returned": rng.integers(0, 2, 500)})
    pq.write_table(orders, "orders.parquet")
    Path("orders").mkdir()
    for number in range(3):
        pq.write_table(orders[number * 200 : number * 200 + 200], f"orders/{number}.parquet")
    pyarrow.csv.write_csv(pa.table(rows), "new_orders.csv")
    lines = [command for path in [README, *GUIDES] for command in commands(path) if command.startswith("gpu-encode")]
    called = [shlex.split(command)[1:] for command in dict.fromkeys(lines)]
    assert len(called) >= 7
    for arguments in called:
        # A run without interruption leaves nothing to resume.
        shutil.rmtree("encoded", ignore_errors=True)
        Path("orders.model").unlink(missing_ok=True)
        assert main([word for word in arguments if word != "--resume"]) == 0
        if "encoded/" in arguments:
            assert pq.read_table("encoded").equals(pq.read_table("encoded.parquet"))
    assert pq.read_table("encoded.parquet").column_names == ["shop", "shop_x_city", "returned"]
    assert pq.read_table("counts.parquet").column_names == ["shop", "city", "returned"]
    assert Path("new_encoded.csv").exists()


def test_make_targets_exist() -> None:
    makefile = (README.parent / "Makefile").read_text()
    targets = [command.split()[1] for command in commands(README) if command.startswith("make ")]
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_files_it_links_to_exist() -> None:
    links = re.findall(r"\]\(([\w/.-]+)", README.read_text())
    assert len(links) > 20
    assert [link for link in links if not (README.parent / link).exists()] == []


def test_lines_that_install_work_from_a_checkout() -> None:
    """The package is not on a package index yet."""
    root = README.parent
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    texts = [
        README,
        *GUIDES,
        *(root / "examples").rglob("*.md"),
        *(root / "gpu_encode").rglob("*.py"),
    ]
    lines = [line for path in texts for line in path.read_text().splitlines() if "pip install" in line]
    assert len(lines) > 10
    assert not [line for line in lines if re.search(r"pip install [^`]*gpu-encode(?! doctor)", line)]
    named = {extra for line in lines for extra in re.findall(r"'\.\[([\w-]+)\]'", line)}
    assert named
    assert named <= {*extras}
