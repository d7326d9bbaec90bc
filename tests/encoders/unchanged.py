"""Checks that a failed call changes nothing."""

import pandas as pd


class Unchanged:
    """Fails if the calls inside the block changed an encoder's fitted state."""

    def __init__(self, encoder, frame):
        self.encoder, self.frame = encoder, frame

    def knowledge(self):
        return self.encoder._model, self.encoder.get_feature_names_out().tolist(), self.encoder.target_mean_

    def __enter__(self):
        self.encodings, self.known = self.encoder.transform(self.frame), self.knowledge()
        return self.encoder

    def __exit__(self, *_):
        assert self.knowledge() == self.known
        # Every call refuses a device that does not exist.
        self.encoder.set_params(device="auto")
        pd.testing.assert_frame_equal(self.encoder.transform(self.frame), self.encodings, check_exact=True)
