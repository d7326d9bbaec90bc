"""``gpu-encode benchmark`` passes its arguments to the benchmarks of a checkout."""

from pathlib import Path

from gpu_encode.cli import benchmark, main


def test_results_go_to_the_folder_of_the_user(monkeypatch, tmp_path):
    # A folder of the user's with the name of ours does not get in the way.
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(benchmark.gpu_encode, "__path__", [str(Path(__file__).parents[2] / "gpu_encode")])
    few = ["--quick", "--only", "table", "--works", "codes", "--keys", "int", "--contenders", "arrow"]
    assert main(["benchmark", *few, "--out", "here"]) == 0
    assert (tmp_path / "here" / "cpu.json").is_file()


def test_without_the_source_it_says_what_to_do(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(benchmark.gpu_encode, "__path__", [str(tmp_path / "gpu_encode")])
    assert main(["benchmark"]) == 2
    assert "the benchmarks come with the source" in capsys.readouterr().err


def test_help_has_an_example_with_and_without_the_source(monkeypatch, tmp_path, capfd):
    assert main(["benchmark", "--help"]) == 0
    said = capfd.readouterr().out
    assert "gpu-encode benchmark --rows 1e6" in said
    assert "--contender-limit" in said
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(benchmark.gpu_encode, "__path__", [str(tmp_path / "gpu_encode")])
    assert main(["benchmark", "--help"]) == 0
    assert "gpu-encode benchmark --rows 1e6" in capfd.readouterr().out


def test_a_library_that_all_contenders_need(monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "find_spec", lambda _: None)
    monkeypatch.chdir(Path(__file__).parents[2])
    assert main(["benchmark"]) == 2
    assert "pandas is not installed: pip install '.[bench]'" in capsys.readouterr().err
