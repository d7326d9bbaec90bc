"""A failed call leaves no trace."""

import pandas as pd


class Unchanged:
    """Fails if the calls inside changed what an encoder knows."""

    def __init__(self, encoder, frame):
        self.encoder, self.frame = encoder, frame

    def __enter__(self):
        self.codes = self.encoder.transform(self.frame)
        self.model = self.encoder._model
        self.names = self.encoder.get_feature_names_out()
        self.means = self.encoder.target_mean_
        return self.encoder

    def __exit__(self, *_):
        assert self.encoder._model is self.model
        # A device that is not there is refused by every call.
        self.encoder.set_params(device="auto")
        pd.testing.assert_frame_equal(self.encoder.transform(self.frame), self.codes, check_exact=True)
        assert list(self.encoder.get_feature_names_out()) == list(self.names)
        assert self.encoder.target_mean_ == self.means
