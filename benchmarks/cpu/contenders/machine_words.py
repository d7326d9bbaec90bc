"""Two instructions that numba has no name for: a hint to load memory soon, and a word from any address."""

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

BYTE = ir.IntType(8)


def address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Address of an item of an array, as one of bytes."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), BYTE.as_pointer())


@intrinsic
def prefetch(_: Any, array: Any, index: Any) -> tuple[Signature, Any]:
    """Ask for the cache line of an item."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = address(context, builder, signature.args[0], *arguments)
        whole = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), whole, whole, whole])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [BYTE.as_pointer()], kind)
        # For reading and writing, to be kept in all caches, of data.
        builder.call(hint, [place, whole(1), whole(3), whole(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


@intrinsic
def word_at(_: Any, data: Any, index: Any) -> tuple[Signature, Any]:
    """Eight bytes from an address that is no multiple of eight."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = address(context, builder, signature.args[0], *arguments)
        word = cgutils.pointer_add(builder, place, context.get_constant(types.intp, 0), ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return numba.uint64(data, index), generate
