"""SIMD vectors of float32 for numba, which has no type for them.

A loop that keeps its sums in a few vectors stays in the registers of the processor. The functions take
the number of lanes from the type of a vector `like`, so that one source serves 8 lanes (AVX2, and as two
registers NEON) and 16 (AVX-512). LLVM splits vectors that are wider than the processor's registers.
"""

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

# Sums may be taken in another order; infinities and NaN stay what they are.
compiled = njit(
    fastmath={"contract", "reassoc", "nsz"},
    boundscheck=False,
    error_model="numpy",
    nogil=True,
    cache=True,
)

LINE = 16  # floats of a line of the cache

WIDEST = 16 if binding.get_host_cpu_features().get("avx512f") else 8  # lanes of a register


class Vector(types.Type):
    """The numba type of a vector of float32."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.llvm = ir.VectorType(ir.FloatType(), lanes)
        super().__init__(name=f"float32x{lanes}")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, kind.llvm)


def _zeros(lanes: int) -> Any:
    @intrinsic
    def zeros(typing: Any) -> Any:
        kind = Vector(lanes)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return ir.Constant(kind.llvm, [0.0] * lanes)

        return kind(), generate

    return zeros


zeros8, zeros16 = _zeros(8), _zeros(16)


@intrinsic
def floats(typing: Any, address: Any) -> Any:
    """Return the pointer that numba.carray takes. Addresses cost a call a tenth of what arrays cost."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float32)(types.intp), generate


@compiled
def aligned(count: Any) -> Any:
    """Return an empty array that begins with a line of the cache; NumPy's arrays begin anywhere.

    To read a vector that lies across two lines takes twice as long.
    """
    room = np.empty(count + LINE, np.float32)
    begin = -(room.ctypes.data // room.itemsize) % LINE
    return room[begin : begin + count]


@intrinsic
def width(typing: Any, like: Any) -> Any:
    """Return the number of lanes, as a constant."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(ir.IntType(64), like.lanes)

    return types.int64(like), generate


@intrinsic
def load(typing: Any, like: Any, array: Any, index: Any) -> Any:
    """Return the vector that begins at an index of a one-dimensional array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[1], arguments[1], arguments[2], like)
        loaded = builder.load(place, typ=like.llvm)
        loaded.align = 4
        return loaded

    return like(like, array, types.intp), generate


@intrinsic
def spread(typing: Any, like: Any, array: Any, index: Any) -> Any:
    """Return the vector with one element of an array in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[1])(context, builder, arguments[1]).data
        return _in_every_lane(builder, like, builder.load(builder.gep(data, [arguments[2]])))

    return like(like, array, types.intp), generate


@intrinsic
def get(typing: Any, array: Any, index: Any) -> Any:
    """Return an element of an array, without the test for a negative index that numba adds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.gep(data, [arguments[1]]))

    return array.dtype(array, types.intp), generate


@intrinsic
def put(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write an element of an array, without the test for a negative index that numba adds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        builder.store(arguments[2], builder.gep(data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), generate


@intrinsic
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write a vector to where an index of a one-dimensional array begins."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1], value)
        builder.store(arguments[2], place).align = 4
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any, vector: Any) -> Any:
    """Return the pointer to the vector that begins at an index of an array."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.llvm.as_pointer())


@intrinsic
def splat(typing: Any, like: Any, value: Any) -> Any:
    """Return the vector with this value in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _in_every_lane(builder, like, arguments[1])

    return like(like, types.float32), generate


def _in_every_lane(builder: Any, like: Any, value: Any) -> Any:
    nothing, integer = ir.Constant(like.llvm, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(nothing, value, ir.Constant(integer, 0))
    lanes = ir.Constant(ir.VectorType(integer, like.lanes), [0] * like.lanes)
    return builder.shuffle_vector(first, nothing, lanes)


@intrinsic
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a b + c, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(a.llvm, [a.llvm] * 3)
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{a.lanes}f32")
        return builder.call(function, arguments)

    return a(a, a, a), generate


@intrinsic
def multiply(typing: Any, a: Any, b: Any) -> Any:
    """Return a b."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fmul(*arguments)

    return a(a, a), generate


@intrinsic
def rectified(typing: Any, a: Any) -> Any:
    """Return max(a, 0); a NaN stays one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(a.llvm, [0.0] * a.lanes)
        return builder.select(builder.fcmp_ordered("<=", arguments[0], zero), zero, arguments[0])

    return a(a), generate


@intrinsic
def where_positive(typing: Any, condition: Any, a: Any) -> Any:
    """Return a where the condition is above 0, and 0 elsewhere."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(a.llvm, [0.0] * a.lanes)
        return builder.select(builder.fcmp_ordered(">", arguments[0], zero), arguments[1], zero)

    return a(a, a), generate


@intrinsic
def total(typing: Any, a: Any) -> Any:
    """Return the sum over the lanes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, lanes = arguments[0], a.lanes
        while lanes > 1:  # halves are added, in an order that does not depend on the processor
            lanes //= 2
            kind = ir.VectorType(ir.IntType(32), lanes)
            low = ir.Constant(kind, list(range(lanes)))
            high = ir.Constant(kind, list(range(lanes, 2 * lanes)))
            value = builder.fadd(
                builder.shuffle_vector(value, value, low), builder.shuffle_vector(value, value, high)
            )
        return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    return types.float32(a), generate
