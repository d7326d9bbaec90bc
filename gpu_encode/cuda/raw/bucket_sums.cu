// Adds the rows of buckets in windows, like windows.cu, but a block holds the cells of one bucket at a time.

#include "windows.cuh"
#include "buckets.cuh"

// Add the rows of a piece; each lane reads four neighbouring rows at a time.
__device__ inline void add_piece(unsigned begin_of_cells, unsigned &n_kept, const Piece &piece, const unsigned *runs,
                                 unsigned n_tiles, unsigned size, Long tile_rows, const unsigned *words,
                                 const VALUE *values, unsigned n_slots) {
    unsigned width = threads_of_run(size / n_tiles, 2, LANES), lane = threadIdx.x & (width - 1);
    unsigned tile = piece.first + threadIdx.x / width * piece.step, turn = blockDim.x / width * piece.step;
    unsigned run = tile < n_tiles ? runs[tile] : 0, begin = 0, end = 0, at = 0;
    for (Long first = 0;;) {
        // Each lane goes on to its next run independently.
        while (at >= end && tile < n_tiles) {
            begin = run & 0xFFFF, end = begin + (run >> 16), at = (begin & ~3u) + 4 * lane, first = tile * tile_rows;
            tile += turn;
            run = tile < n_tiles ? runs[tile] : 0;
        }
        if (!__any_sync(~0u, at < end))
            return;
        int n = at < end ? 4 : 0;
        unsigned slot[4];
        bool here[4];
        VALUE value[4];
        load(words + first + at, n, slot);
        load(values + first + at, n, value);
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
            here[k] = at + k >= begin && at + k < end;
            slot[k] &= n_slots - 1;
        }
        add_rows(begin_of_cells, n_kept, slot, here, value, values + first + at);
        at += 4 * width;
    }
}

extern "C" __global__ void __launch_bounds__(640, 1)
    add_buckets(ARRAY(const unsigned, words), ARRAY(const VALUE, values), ARRAY(const unsigned, runs),
                ARRAY(const unsigned, sizes), Long n_rows, Long tile_rows, Long shift, Long target,
                ARRAY(const Long, plan), ARRAY(Long, cells), Long n_words) {
    unsigned n_slots = 1u << shift;
    unsigned n_buckets = unsigned(sizes_size), n_tiles = unsigned(runs_size / sizes_size);
    unsigned *ends = table + Shared::head() + n_words;
    unsigned begin = begin_block(values, n_rows, plan, cells, 2, n_slots, 1, 1, n_words);
    plan_pieces(sizes, n_buckets, n_tiles, unsigned(target), ends + n_buckets, ends);
    for (unsigned number = blockIdx.x; number < ends[n_buckets - 1]; number += gridDim.x) {
        Piece piece = piece_of(number, ends, n_buckets);
        if (!threadIdx.x)
            shared_of_block().cells = cells + (Long(piece.bucket) << shift) * plan[WIDTH];
        unsigned n_kept = 0;
        __syncthreads();
        add_piece(begin, n_kept, piece, runs + Long(piece.bucket) * n_tiles, n_tiles, sizes[piece.bucket], tile_rows,
                  words, values, n_slots);
        end_block(n_kept, n_slots, 1, n_words);
        __syncthreads();
    }
}
