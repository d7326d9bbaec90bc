"""Optimise functions that are only parts of kernels once, in the kernel, and not separately as well.

Numba optimises each function together with all functions that it calls, makes machine code of it, and does so again in
each of its callers.  This took two thirds of the time of compilation.  A long part of many kernels is optimised
separately instead, and not in these kernels, which call its machine code.

This file uses numba's private interface of passes and of libraries of code.
"""

from collections.abc import Callable
from functools import cache
from itertools import chain, islice
from typing import Any

from llvmlite.binding import Linkage, parse_assembly
from numba import njit, types
from numba.core import config, ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import InlineOverloads, IRLegalization, NativeLowering
from numba.core.types.misc import unliteral
from numba.core.untyped_passes import InlineClosureLikes

from cpu_fallback.compiled.kernel_files import SEPARATE, KernelCache

ENVIRONMENT = "_ZN08NumbaEnv"
# A part with more instructions is not copied into its callers, since the time to compile a function grows faster than
# the function.
LARGE = 100
# Kernels have no functions inside functions, and call none that numba would copy into its own representation of code.
UNUSED = (InlineClosureLikes, InlineOverloads)


class WithoutEngine:
    """A code generator that never makes machine code."""

    def __init__(self, codegen: Any) -> None:
        self.codegen, self._engine = codegen, self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.codegen, name)

    def is_symbol_defined(self, _: str) -> bool:
        """Say that there is no machine code to call."""
        return False

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: `refer` sets in each kernel the objects to which its parts refer."""

    def finalize_object(self) -> None:
        """Do nothing."""

    def _add_module(self, module: Any) -> None:
        """Do nothing."""

    def _scan_and_fix_unresolved_refs(self, module: Any) -> None:
        """Do nothing."""


def calls_of(state: Any) -> list[tuple[Any, Any]]:
    """Give the compiled functions that a function calls, each with the types of the call."""
    called = [
        (state.typemap[expression.func.name], signature)
        for expression, signature in state.calltypes.items()
        if isinstance(expression, ir.Expr) and expression.op == "call"
    ]
    return [(kind.dispatcher, signature) for kind, signature in called if isinstance(kind, types.Dispatcher)]


def check_that_parts_are_called(state: Any) -> None:
    """Refuse code that calls a kernel: a kernel on disk cannot be included in another one, which would crash."""
    for called, _ in calls_of(state):
        if not isinstance(called, Stage):
            message = (
                f"{state.func_id.func_qualname} calls {called.py_func.__qualname__}, which is a kernel: decorate that "
                "with `stage`, or with `counting` if it makes arrays; Python can call those too"
            )
            raise TypeError(message)


def has_arrays(context: Any, kind: Any) -> bool:
    """Tell whether values of a type are, or hold, arrays."""
    return bool(context.data_model_manager[kind].contains_nrt_meminfo())


def check_that_arrays_are_counted(state: Any) -> None:
    """Refuse a part that counts no references, but returns or receives arrays, which would never be freed."""
    given = [signature.return_type for _, signature in calls_of(state)]
    if not state.flags.nrt and any(has_arrays(state.targetctx, kind) for kind in (state.return_type, *given)):
        message = (
            f"{state.func_id.func_qualname} gives arrays, or calls a function that does: decorate it with `counting`"
        )
        raise TypeError(message)


def library_of(state: Any) -> Any:
    """Give a new library, whose functions are only simplified before they are joined, since all passes follow then."""
    check_that_parts_are_called(state)
    state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
    optimize = state.library._optimize_functions

    def simplify(module: Any) -> None:
        level, config.OPT = config.OPT, min(config.OPT, 1)
        try:
            optimize(module)
        finally:
            config.OPT = level

    state.library._optimize_functions = simplify
    return state.library


def leave_to_callers(state: Any) -> None:
    """Create the library that the next pass would create, but without optimisation and machine code."""
    check_that_arrays_are_counted(state)
    library = library_of(state)
    library._codegen = WithoutEngine(library._codegen)
    library._optimize_final_module = lambda: None


def take_in(state: Any) -> None:
    """Create the library that the next pass would create, with the code of all parts in it but separate ones."""
    library = library_of(state)
    library.enable_object_caching()
    optimize = library._optimize_final_module

    def optimize_with_parts() -> None:
        for function in library._final_module.functions:
            if function.linkage == Linkage.linkonce_odr and not function.is_declaration:
                function.linkage = Linkage.internal
                if can_mark_functions() and is_large(function):
                    function.add_function_attribute("noinline")
        optimize()

    library._optimize_final_module = optimize_with_parts


@cache
def can_mark_functions() -> bool:
    """Tell whether llvmlite can set attributes of functions; older versions set them on the result instead."""
    module = parse_assembly("define void @f() {\n  ret void\n}")
    module.get_function("f").add_function_attribute("noinline")
    try:
        module.verify()
    except RuntimeError:
        return False
    return True


def is_large(function: Any) -> bool:
    """Tell whether a part is so large that it stays a separate function."""
    asked_for = any(b"alwaysinline" in attributes for attributes in function.attributes)
    instructions = chain.from_iterable(block.instructions for block in function.blocks)
    return not asked_for and next(islice(instructions, LARGE, None), None) is not None


def refer(state: Any) -> None:
    """Set the objects to which the kernel's parts refer, as numba does when it loads a kernel from disk."""
    for variable in state.library._final_module.global_variables:
        if variable.name.startswith(ENVIRONMENT) and (found := lookup_environment(variable.name)) is not None:
            state.library.codegen.set_env(variable.name, found)


def as_pass(work: Callable[[Any], None]) -> type[LoweringPass]:
    """Make a pass of numba from a function."""

    class Pass(LoweringPass):
        _name = f"gpu_encode_{work.__name__}"

        def __init__(self) -> None:
            super().__init__()

        def run_pass(self, state: Any) -> bool:
            """Run the function."""
            work(state)
            return True

    register_pass(mutates_CFG=False, analysis_only=True)(Pass)
    return Pass


TAKE_IN, REFER, LEAVE = map(as_pass, (take_in, refer, leave_to_callers))


class Passes(PassManager):
    """The passes of a function, without records of their times: these took a tenth of the time of compilation."""

    def _runPass(self, _: int, one: Any, state: Any) -> None:  # noqa: N802
        one.analysis = self._analysis
        for step in (one.run_initialization, one.run_pass, one.run_finalizer):
            step(state)


def passes_of(state: Any, *added: tuple[Any, Any]) -> list[Any]:
    """Give numba's passes with ours, each after one of numba's, and without those for what kernels do not use."""
    passes = DefaultPassBuilder.define_nopython_pipeline(state)
    for ours, place in added:
        passes.add_pass_after(ours, place)
    passes.passes = [given for given in passes.passes if given[0] not in UNUSED]
    passes.__class__ = Passes
    passes.finalize()
    return [passes]


class Kernel(CompilerBase):
    """Numba's passes for a function that Python calls; all its parts are included in it."""

    def define_pipelines(self) -> list[Any]:
        """Give the passes."""
        return passes_of(self.state, (TAKE_IN, IRLegalization), (REFER, NativeLowering))


class Part(CompilerBase):
    """Numba's passes for a part of kernels."""

    def define_pipelines(self) -> list[Any]:
        """Give the passes."""
        return passes_of(self.state, (LEAVE, IRLegalization))


class SeparatePart(Kernel):
    """Numba's passes for a part that has machine code of its own, by a name that is the same in every process."""

    def define_pipelines(self) -> list[Any]:
        """Give the passes."""
        identity = self.state.func_id
        identity.unique_id = KernelCache(identity.func).files.stamp
        return super().define_pipelines()


def serves(known: tuple[Any, ...], given: tuple[Any, ...]) -> bool:
    """Tell whether code for some types can be called with others, which differ at most in arrays that are writable."""
    frozen = [kind.copy(readonly=True) if isinstance(kind, types.Array) else kind for kind in given]
    return len(known) == len(given) and all(map(lambda one, *others: one in others, known, given, frozen))


class Stage(CPUDispatcher):
    """A part of kernels.  If Python calls it, as tests and the simulator of a GPU do, it becomes a kernel itself."""

    as_kernel: Any = None

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Give the code for these types: the same for all numbers of a type, even if a caller gives a constant.

        If the part was compiled for read-only arrays before, and gives no array, this code serves others, too.
        """
        given, context = tuple(map(unliteral, args)), self.targetctx
        plain = (known for known, code in self.overloads.items() if not has_arrays(context, code.signature.return_type))
        return super().get_call_template(next((known for known in plain if serves(known, given)), given), kws)

    def __call__(self, *given: Any) -> Any:
        """Call it as a kernel."""
        self.as_kernel = self.as_kernel or self.by_itself(self.py_func)
        return self.as_kernel(*given)


class SeparateStage(Stage):
    """A part of kernels that is not included in them: they call its machine code, which has a file of its own."""

    def compile(self, signature: Any) -> Any:
        """Compile the part, or read its file; kernels that are compiled later get no code to include."""
        entry = super().compile(signature)
        for compiled in self.overloads.values():
            compiled.library._shared_module = parse_assembly("")
            called = self.py_func.__module__, self.py_func.__qualname__, compiled.signature.args
            SEPARATE[compiled.fndesc.llvm_func_name] = called
        return entry


def as_part(
    function: Callable[..., Any],
    by_itself: Callable[[Callable[..., Any]], Any],
    separate: bool = False,
    **options: Any,
) -> Any:
    """Compile a function as a part of kernels; `by_itself` makes a kernel of it if Python calls it."""
    passes = SeparatePart if separate else Part
    part = njit(**options, no_cpython_wrapper=True, pipeline_class=passes)(function)
    # With NUMBA_DISABLE_JIT a part is the Python function itself.
    if isinstance(part, CPUDispatcher):
        part.__class__, part.by_itself = SeparateStage if separate else Stage, by_itself
    return part
