"""No module imports itself by a detour, now, later, or only for types; exceptions have a reason in one line."""

from tests.architecture.imports import imports_of, modules, within

# The modules of each import cycle, and why it stays.
REASONS = {
    ("cpu_fallback.row_numbers", "cpu_fallback.types"): "rows are numbered by folds, whose numbers are arrays of rows",
    ("gpu_encode.seam.devices", "gpu_encode.seam.ops"): "a device is that of a backend, and a backend is chosen by it",
    (
        "gpu_encode.encoders.base",
        "gpu_encode.encoders.row_encoder",
    ): "a method of every encoder makes the encoder of single rows, which needs one",
    ("gpu_encode.encoders.one_hot.encoder", "gpu_encode.encoders.one_hot.row_encoder"): "the same of one-hot columns",
    (
        "gpu_encode.scale.files.files",
        "gpu_encode.scale.files.formats",
        "gpu_encode.scale.files.text",
    ): "a format is known by a file, a file read by it",
    ("gpu_encode.study.leaks.page", "gpu_encode.study.leaks.report"): "a report writes itself as a page",
    (
        "gpu_encode.cuda.counting",
        "gpu_encode.cuda.partition",
        "gpu_encode.cuda.sums",
        "gpu_encode.cuda.windows",
    ): "types alone: each way of adding describes what the others hand over",
}


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return all modules that a module needs; in an import cycle its own name is among them."""
    found, waiting = set(), [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def circles() -> list[tuple[str, ...]]:
    """Return the modules of each import cycle, in order."""
    ours = set(modules())
    # A package is loaded before the modules that it imports: that is no detour.
    graph = {
        module: {
            each.module
            for each in imports_of(module, types=True)
            if each.module in ours and not within(module, each.module)
        }
        for module in ours
    }
    needs = {module: reached(graph, module) for module in ours}
    turning = [module for module in ours if module in needs[module]]
    return sorted(
        {tuple(sorted(each for each in turning if each in needs[one] and one in needs[each])) for one in turning}
    )


def test_every_circle_has_a_reason():
    assert circles() == sorted(REASONS)
