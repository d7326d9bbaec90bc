"""Ray: the sums of categories are added up in buckets of the object store, and rows come there for their encodings."""

from typing import Any

import numpy as np
import pyarrow as pa

from gpu_encode.scale.engines.buckets import BucketShuffle, InBuckets, number_of_buckets
from gpu_encode.scale.engines.ray import BLOCKS, RayGroups, RayRows
from gpu_encode.scale.files.look_up import Joined, of_new_rows
from gpu_encode.scale.files.shuffle import ShuffledSums


class Shuffle(BucketShuffle):
    """A dataset of Ray."""

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        super().__init__(RayRows(X), y, sample_weight, groups)
        self._dataset = X

    def learn(self, encoder: Any, training: bool) -> tuple[ShuffledSums, InBuckets]:
        """Add up the sums of each category in its bucket, and make encodings of them there, now."""
        from ray.exceptions import RayTaskError

        try:
            return super().learn(encoder, training)
        except RayTaskError as error:
            if isinstance(error.cause, (ValueError, TypeError)):
                raise error.cause from error
            raise

    def encode_new(self, joined: Joined, encodings: InBuckets) -> Any:
        """Give the encodings of new rows, lazily."""
        import ray
        from ray.data.dataset import MaterializedDataset

        if isinstance(self._dataset, MaterializedDataset) and not self._dataset.count():
            # Ray's shuffle finds no columns in blocks that have had no rows from the first.
            schema = self._rows.schema
            fields = [pa.field(name, pa.from_numpy_dtype(np.dtype(joined.dtype))) for name in joined.outputs]
            fields += [schema.field(name) for name in joined.beside_new(schema.names)]
            return ray.data.from_arrow(pa.schema(fields).empty_table())
        return super().encode_new(joined, encodings)

    def rows_of(self, table: Any) -> RayRows:
        """Give the rows of a dataset."""
        return RayRows(table)

    def together(self, dealt: RayGroups, other: RayGroups) -> RayGroups:
        """Give together what was given for each bucket here and there."""
        return dealt.beside(other)

    def keep(self, lines: Any) -> Any:
        """Compute a dataset now; the object store keeps it, and spills to disks what it has no room for."""
        return lines.materialize()

    @staticmethod
    def save(joined: Joined, encodings: InBuckets, path: str) -> None:
        """Write what new rows need, by Ray."""
        encodings.lines.map_batches(lambda table: of_new_rows(joined, table), **BLOCKS).write_parquet(
            f"{path}/encodings"
        )
        joined.of_new_rows().write(path)

    def read(self, path: str) -> tuple[Joined, InBuckets]:
        """Read what any engine has saved."""
        import ray

        joined, lines = Joined.read(path), ray.data.read_parquet(f"{path}/encodings")
        # As many buckets as for training rows: nobody has counted the new ones.
        pieces = np.ones(number_of_buckets(lines.count(), joined.n_rows), np.int64)
        return joined, InBuckets(lines, [pieces] * len(joined.keys))

    @staticmethod
    def release(encodings: InBuckets) -> None:
        """Do nothing: the object store forgets what nobody holds."""
