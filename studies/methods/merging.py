"""One document of several finished runs, of one table or more each."""

from typing import Any

from benchmarks.harness.results import Document

# Runs with other settings cannot be compared; other machines and versions are named.
SETTINGS = ("quick", "folds", "split", "most rows", "order")
NAMED = ("device", "cores", "memory", "commit")


def merge(documents: list[Document]) -> Document:
    """Join the tables of several runs.

    Raises
    ------
    ValueError
        If settings differ, if a table is in two runs, or if a table lacks methods that another has.
    """
    for name in SETTINGS:
        if len(values := distinct(document[name] for document in documents)) > 1:
            message = f"--merge: {name} differs between the runs: {', '.join(map(str, values))}"
            raise ValueError(message)
    merged = documents[0] | {name: joined(document[name] for document in documents) for name in NAMED}
    packages = dict.fromkeys(package for document in documents for package in document["versions"])
    merged["versions"] = {
        package: joined(document["versions"].get(package, "not installed") for document in documents)
        for package in packages
    }
    for part in ("numbers", "datasets", "cells"):
        merged[part] = [each for document in documents for each in document[part]]
    merged["blends"] = {name: best for document in documents for name, best in document["blends"].items()}
    check(merged)
    return merged


def check(merged: Document) -> None:
    """Raise ValueError if a table occurs twice, or was not scored by every method."""
    names = [described["dataset"] for described in merged["datasets"]]
    if twice := [name for name in distinct(names) if names.count(name) > 1]:
        message = f"--merge: more than one run has {', '.join(twice)}"
        raise ValueError(message)
    methods = distinct(cell["method"] for cell in merged["cells"])
    scored = {(cell["dataset"], cell["method"]) for cell in merged["cells"]}
    if absent := [f"{name}: {method}" for name in names for method in methods if (name, method) not in scored]:
        message = f"--merge: not finished, or with other --methods: {', '.join(absent)}"
        raise ValueError(message)


def distinct(values: Any) -> list[Any]:
    """Give each value once, in the order of the first ones."""
    return list(dict.fromkeys(values))


def joined(values: Any) -> Any:
    """Give the one value, or the text of several."""
    several = distinct(values)
    return several[0] if len(several) == 1 else ", ".join(map(str, several))
