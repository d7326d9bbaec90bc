"""Which methods of scikit-learn's classes are replaced, and by what.

The classes themselves remain: `isinstance`, `clone`, pickles, feature names, `set_output` and metadata routing work as
before, even if a class was imported or subclassed earlier.  This is the only list of the private names that we use.
"""

from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder
from sklearn.preprocessing._encoders import _BaseEncoder
from sklearn.utils._set_output import _wrap_method_output

from gpu_encode.serve.accel import encoders, target_encoder
from gpu_encode.serve.accel.calls import Method
from gpu_encode.serve.accel.encoders import EXCHANGES, look_up_columns, look_up_rows, run_theirs, serve
from gpu_encode.serve.accel.exchanges import Put


def exchange() -> None:
    """Replace the methods, if they are not replaced already."""
    EXCHANGES.exchange(put_all)


def put_all(put: Put) -> None:
    """Replace the inner methods before those that users call."""
    put(_BaseEncoder, "_check_X", encoders.give_distinct_values)
    put(_BaseEncoder, "_fit_infrequent_category_mapping", encoders.count_all_rows)
    put(TargetEncoder, "_transform", target_encoder.number_rows)
    put(TargetEncoder, "_fit_encoding_binary_or_continuous", target_encoder.remember_target)
    put(TargetEncoder, "_fit_encoding_multiclass", target_encoder.remember_classes)
    put(TargetEncoder, "_transform_X_ordinal", target_encoder.remember_fold)
    for encoder, look_up in ((OneHotEncoder, look_up_columns), (OrdinalEncoder, look_up_rows)):
        put(encoder, "fit", serve("fit", encoder.fit, run_theirs))
        put(encoder, "fit_transform", serve("fit_transform", encoder.fit_transform, run_theirs))
        put(encoder, "transform", as_output("transform", encoder, look_up))
    put(TargetEncoder, "fit", serve("fit", TargetEncoder.fit, target_encoder.fit))
    put(TargetEncoder, "fit_transform", as_output("fit_transform", TargetEncoder, target_encoder.fit_transform))
    put(TargetEncoder, "transform", as_output("transform", TargetEncoder, look_up_rows))


def as_output(name: str, encoder: type, ours: Method) -> Method:
    """Make a method whose tables are of the kind that `set_output` asks for, by scikit-learn's own wrapper."""
    method: Method = _wrap_method_output(serve(name, getattr(encoder, name).__wrapped__, ours), "transform")
    return method
