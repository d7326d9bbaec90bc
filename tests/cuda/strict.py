"""A stand-in for CuPy on machines without a GPU: NumPy's numbers under CuPy's rules.

CuPy runs nothing here, but it is asked what it would refuse: functions that it lacks, options that its functions do not
take, types that its element-wise kernels do not have, and host arrays among its own.  The stand-in also refuses calls
that CuPy accepts but computes in another way than NumPy.  In CuPy, a host array in an index is a hidden transfer;
assignment by an index array counts in 32 bits (use `put`), and an item that is written twice may hold either value; and
the shape () of a new array means the shape of the old one.
"""

import inspect
from functools import cache, reduce
from types import SimpleNamespace
from typing import Any

import cupy
import numpy as np
from cupy._sorting.search import _where_ufunc
from numpy.lib.mixins import NDArrayOperatorsMixin

WEAK = {int: 1, float: 2}
KINDS = {"b": 0, "i": 1, "u": 1, "f": 2}


def refuse_host_arrays(value: Any) -> None:
    """Raise TypeError, as CuPy does, for a NumPy array anywhere in an argument."""
    if isinstance(value, np.ndarray):
        message = f"Unsupported type {type(value)}"
        raise TypeError(message)
    for part in value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else ():
        refuse_host_arrays(part)


def unwrap(value: Any) -> Any:
    """Unwrap arrays, wherever they are in an argument."""
    if isinstance(value, StrictArray):
        return value.held
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(unwrap, value))
    return {key: unwrap(part) for key, part in value.items()} if isinstance(value, dict) else value


def wrap(value: Any) -> Any:
    """Wrap arrays; a number from NumPy becomes an array without dimensions, as in CuPy."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(wrap, value))
    return StrictArray(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value


def kind_of(value: Any) -> Any:
    """Type of an input: int or float for Python's numbers, otherwise a dtype."""
    return type(value) if type(value) in WEAK else np.dtype(bool) if isinstance(value, bool) else unwrap(value).dtype


@cache
def result_types(function: Any, inputs: tuple[Any, ...]) -> list[np.dtype[Any]]:
    """Output types of the first kernel of a CuPy ufunc that takes these inputs; TypeError if there is no such kernel.

    Python's numbers are weak: they take the kernel's type, unless their kind is above that of all arrays.
    """
    weak = [WEAK.get(kind, -1) for kind in inputs]
    strong = [KINDS[kind.kind] for kind in inputs if kind not in WEAK]
    adapts = bool(strong) and max(strong) >= max(weak)
    for signature in function.types:
        wanted, given = signature.split("->")
        # CuPy has kernels for bfloat16, a type of another library, if that library is installed.
        if set(wanted) <= set(np.typecodes["All"]) and all(
            np.can_cast(have, want) or (adapts and kind >= 0 and np.result_type(have(0), want) == want)
            for have, kind, want in zip(inputs, weak, map(np.dtype, wanted), strict=True)
        ):
            return [np.dtype(code) for code in given]
    message = f"Wrong type {inputs} of arguments for {function.name}"
    raise TypeError(message)


def check_types(function: Any, inputs: tuple[Any, ...], result: Any) -> None:
    """Raise AssertionError where CuPy's result has another type than NumPy's."""
    promised = result_types(function, tuple(map(kind_of, inputs)))
    given = [array.dtype for array in (result if isinstance(result, tuple) else (result,))]
    assert promised == given, f"{function.name} gives {promised} in CuPy, {given} in NumPy"


def with_foreign_nan(made: Any) -> Any:
    """Give every NaN of new arrays a bit pattern that no CPU produces."""
    for array in made if isinstance(made, tuple) else (made,):
        if array.dtype in (np.float32, np.float64):
            words = array.held.view(f"u{array.itemsize}")
            np.copyto(words, np.iinfo(words.dtype).max >> 1, where=np.isnan(array.held))
    return made


signature_of = cache(inspect.signature)


class StrictArray(NDArrayOperatorsMixin):
    """A NumPy array with exactly the attributes and methods of a CuPy array."""

    __array_priority__ = 100
    # Whether arithmetic gives NaN other bits than a CPU does, as on a GPU.
    foreign_nan = False

    def __init__(self, held: np.ndarray[Any, Any]) -> None:
        assert isinstance(held, np.ndarray)
        self.held = held

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        message = "Implicit conversion to a NumPy array is not allowed. Please use `.get()` explicitly."
        raise TypeError(message)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        function = getattr(cupy, ufunc.__name__, None)
        if method != "__call__" or function is None or set(options) - {"out"}:
            return NotImplemented
        refuse_host_arrays((inputs, options))
        result = ufunc(*unwrap(inputs), **unwrap(options))
        if "out" in options:
            (out,) = options["out"]
            return with_foreign_nan(out) if self.foreign_nan else out
        check_types(function, inputs, result)
        made = wrap(result)
        return with_foreign_nan(made) if self.foreign_nan else made

    def __array_function__(self, function: Any, types: Any, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        try:
            module = reduce(getattr, function.__module__.split(".")[1:], cupy)
            named = getattr(module, function.__name__)
        except AttributeError:
            return NotImplemented
        return NotImplemented if named is function else call(function, named, given, options)

    def __getitem__(self, key: Any) -> "StrictArray":
        return StrictArray(np.asarray(self.held[index(key)]))

    def __setitem__(self, key: Any, value: Any) -> None:
        refuse_host_arrays(value)
        assert not any(isinstance(part, StrictArray) for part in (key if isinstance(key, tuple) else (key,)))
        self.held[index(key)] = unwrap(value)

    @property
    def flags(self) -> Any:
        """The flags that CuPy's arrays have: there is no `writeable`."""
        names = ("c_contiguous", "f_contiguous", "owndata")
        return SimpleNamespace(**{name: getattr(self.held.flags, name) for name in names})

    def put(self, places: "StrictArray", values: "StrictArray") -> None:
        """Write to positions of the flat array."""
        assert len(np.unique(places.held)) == places.size, "a place is written twice"
        self.held.put(places.held, values.held)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return len(self.held)

    def __bool__(self) -> bool:
        return bool(self.held)

    def __int__(self) -> int:
        return int(self.held)

    def __float__(self) -> float:
        return float(self.held)

    def __repr__(self) -> str:
        return f"Strict{self.held!r}"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self.held.__array_interface__)

    @property
    def data(self) -> SimpleNamespace:
        """Address of the array's first byte."""
        return SimpleNamespace(ptr=self.held.__array_interface__["data"][0])

    @property
    def base(self) -> "StrictArray | None":
        """The array that this array is a view of."""
        return StrictArray(self.held.base) if isinstance(self.held.base, np.ndarray) else None

    @property
    def T(self) -> "StrictArray":
        return StrictArray(self.held.T)

    def astype(self, dtype: Any, copy: bool = True) -> "StrictArray":
        """Convert as CuPy does, whose kernels flush small float32 numbers to zero."""
        return StrictArray(flush_subnormals(flush_subnormals(self.held).astype(dtype, copy=copy)))

    def get(self) -> np.ndarray[Any, Any]:
        """Return a copy on the host."""
        return self.held.copy()


def flush_subnormals(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Set small float32 numbers to zero."""
    if array.dtype != np.float32:
        return array
    return np.where(np.abs(array) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), array), array)


def index(key: Any) -> Any:
    """Unwrap an index; TypeError if it holds host arrays."""
    for part in key if isinstance(key, tuple) else (key,):
        if not (part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice, StrictArray))):
            message = f"{type(part)} in an index: a hidden transfer"
            raise TypeError(message)
    return unwrap(key)


def call(function: Any, named: Any, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call NumPy's function if CuPy's function of the same name takes the arguments."""
    signature_of(named).bind(*given, **options)
    refuse_host_arrays((given, options))
    assert options.get("shape") != ()
    result = wrap(function(*unwrap(given), **unwrap(options)))
    if function is np.where and len(given) == 3:
        assert isinstance(given[0], StrictArray), "CuPy takes an array of bools, not one"
        check_types(_where_ufunc, given, result)
    return result


def as_attribute(name: str) -> property:
    """Pass an attribute on."""
    return property(lambda self: getattr(self.held, name))


def as_method(name: str) -> Any:
    """Pass a method on."""

    def method(self: StrictArray, *given: Any, **options: Any) -> Any:
        refuse_host_arrays((given, options))
        return wrap(getattr(self.held, name)(*unwrap(given), **unwrap(options)))

    return method


for _name in ("dtype", "itemsize", "nbytes", "ndim", "shape", "size", "strides"):
    setattr(StrictArray, _name, as_attribute(_name))
for _name in (
    *("all", "any", "argmax", "argsort", "copy", "cumsum", "fill", "item", "max", "min", "nonzero", "ravel", "repeat"),
    *("reshape", "squeeze", "sum", "take", "tolist", "transpose", "view"),
):
    setattr(StrictArray, _name, as_method(_name))


class Seen:
    """An array of another library, in the memory that stands for device memory."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        result = owner.__cuda_array_interface__
        self.__array_interface__ = {name: result[name] for name in ("shape", "typestr", "data", "strides", "version")}


class Library:
    """Stand-in for the module `cupy`."""

    UPLOADS = ("array", "asarray", "ascontiguousarray")

    def __getattr__(self, name: str) -> Any:
        named, function = getattr(cupy, name), getattr(np, name)
        if isinstance(function, type) or not callable(function):
            return function

        def made(*given: Any, **options: Any) -> Any:
            if name not in self.UPLOADS:
                refuse_host_arrays((given, options))
            elif not isinstance(given[0], StrictArray) and hasattr(given[0], "__cuda_array_interface__"):
                return StrictArray(np.asarray(Seen(given[0])))
            elif isinstance(given[0], np.ndarray):
                # A copy: device arrays never share memory with host arrays.
                return wrap(function(np.array(given[0], order="C"), *given[1:], **options))
            if not isinstance(function, np.ufunc):
                signature_of(named).bind(*given, **options)
            return wrap(function(*unwrap(given), **unwrap(options)))

        return made
