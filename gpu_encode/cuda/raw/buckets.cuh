// Buckets of rows that are sorted tile by tile.  A run says where the rows of a bucket begin in a tile and, in the
// upper half of the word, how many there are.

// Sum of the numbers of all earlier threads; `of_warps` has a word for each warp.
__device__ inline unsigned sum_before(unsigned own, unsigned *of_warps) {
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, sum = own;
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
        unsigned other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0;
    }
    if (lane == 31)
        of_warps[warp] = sum;
    __syncthreads();
    for (unsigned earlier = 0; earlier < warp; ++earlier)
        sum += of_warps[earlier];
    return sum - own;
}

// Number of neighbouring threads, within limits, that read a run of the expected length, four rows each.
__device__ inline unsigned threads_of_run(unsigned expected, unsigned least, unsigned most) {
    unsigned width = least;
    while (width < most && 4 * width < expected)
        width *= 2;
    return width;
}

// Number of pieces of a bucket: a piece has about `target` rows.  A piece takes every n-th tile, since neighbouring
// rows may all be in one bucket.  Also writes where the pieces of each bucket end.
__device__ inline void plan_pieces(const unsigned *sizes, unsigned n_buckets, unsigned n_tiles, unsigned target,
                                   unsigned *of_warps, unsigned *ends) {
    unsigned share = (n_buckets + blockDim.x - 1) / blockDim.x, first = threadIdx.x * share, sum = 0;
    for (unsigned turn = 0; turn < 2; ++turn) {
        for (unsigned bucket = first; bucket < min(first + share, n_buckets); ++bucket) {
            unsigned size = sizes[bucket], wanted = (size + target / 2) / target;
            sum += size ? min(max(wanted, 1u), n_tiles) : 0;
            if (turn)
                ends[bucket] = sum;
        }
        if (!turn)
            sum = sum_before(sum, of_warps);
    }
    __syncthreads();
}

// A piece: the bucket's runs in every `step`-th tile, from the first one on.
struct Piece {
    unsigned bucket, first, step;
};

__device__ inline Piece piece_of(unsigned number, const unsigned *ends, unsigned n_buckets) {
    // The first bucket whose pieces end after this number.
    unsigned low = 0, high = n_buckets;
    while (low < high) {
        unsigned middle = (low + high) >> 1;
        if (ends[middle] <= number)
            low = middle + 1;
        else
            high = middle;
    }
    unsigned before = low ? ends[low - 1] : 0;
    return Piece{low, number - before, ends[low] - before};
}
