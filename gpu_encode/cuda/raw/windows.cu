// Adds rows in windows, cell by cell in shared memory: one number of a row, and its square.

#include "windows.cuh"

#ifndef SOURCE
#define SOURCE HashedFolds
#endif

// Rows as `walk` gives them.  Blocks walk in groups over the same rows; each keeps every so-many-th line.
struct Adding {
    enum { AT_ONCE = 1 };
    struct Rows {
        int codes[4];
        VALUE values[4];
    };
    Codes codes;
    const VALUE *values;
    Block block;
    unsigned n_lines, inverse;
    mutable unsigned n_kept;

    // Finds a row's slot in its group of lines; true if this block keeps that group.
    __device__ bool find(int code, unsigned fold, unsigned &slot) const {
        unsigned line = unsigned(code) + (code < 0 ? n_lines : 0), rank = __umulhi(2 * line, inverse);
        slot = rank * block.in_line + fold;
        return line - rank * block.groups == block.own;
    }

    __device__ void read(Long row, Rows &into) const {
        codes.of_four(row, 4, into.codes);
        load_values(values + row, 4, into.values);
    }

    __device__ void use(Long row, const Rows &rows, const unsigned (&folds)[4]) const {
        unsigned slot[4];
        bool here[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            here[k] = find(rows.codes[k], folds[k], slot[k]);
        add_rows(block, n_kept, slot, here, rows.values, values + row);
    }

    // Lanes without a row go along with their warp.
    __device__ void use_one(Long row, unsigned fold, bool given) const {
        int code[4] = {0, 0, 0, 0};
        unsigned slot[1];
        VALUE value[1] = {0};
        if (given)
            codes.of_four(row, 1, code), value[0] = values[row];
        bool here[1] = {find(code[0], fold, slot[0]) && given};
        add_rows(block, n_kept, slot, here, value, values + row);
    }
};

// Add all rows.
extern "C" __global__ void __launch_bounds__(640, 1)
    add_in_windows(CODES, ARRAY(const VALUE, values), FOLDS, ARRAY(const Long, plan), ARRAY(Long, cells), Long n_lines,
                   Long in_line, Long groups, Long inverse, Long slots, Long copies) {
    Plan<SOURCE> &walked = *reinterpret_cast<Plan<SOURCE> *>(table);
    if (!threadIdx.x)
        walked.make(GIVEN_FOLDS, codes_size, ahead_of_four(codes));
    Adding adding{GIVEN_CODES, values, begin_block(values, codes_size, plan, cells, in_line, groups, slots, copies),
                  unsigned(n_lines), unsigned(inverse), 0};
    unsigned thread = blockIdx.x / unsigned(groups) * blockDim.x + threadIdx.x;
    unsigned threads = gridDim.x / unsigned(groups) * blockDim.x;
    walk(walked, adding, false, thread, threads);
    Tiles tiles = walked.tiles;
    Long n_others = tiles.begin + codes_size - tiles.end;
    Folds given_folds = GIVEN_FOLDS;
    for (Long i = thread; i - threadIdx.x % LANES < n_others; i += threads) {
        Long row = i < tiles.begin ? i : i - tiles.begin + tiles.end;
        unsigned found[4] = {0, 0, 0, 0};
        if (i < n_others)
            given_folds.of_four(row, 1, found);
        adding.use_one(row, found[0], i < n_others);
    }
    end_block(adding.block, adding.n_kept, slots, copies);
}
