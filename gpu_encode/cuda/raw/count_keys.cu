// Counts of rows per (cell, fold, class) of many keys: each block counts a chunk of rows of one key.

#include "rows.cuh"

#include "keys.cuh"

extern __shared__ __align__(16) unsigned table[];

// A table in shared memory: two neighbouring counts share a word, since a chunk has fewer rows than 16 bits count.  A
// small table has copies, so that fewer lanes of a warp add to the same word.
struct Table {
    unsigned *words;
    unsigned n_counts, copies, size;

    __device__ Table(const Key &key, unsigned within)
        : words(table + PLAN_WORDS), n_counts(key.n_cells * within), copies(key.copies),
          size(((n_counts + 1) / 2) | unsigned(copies > 1)) {}

    __device__ void clear() const {
        for (unsigned word = threadIdx.x; word < copies * size; word += blockDim.x)
            words[word] = 0;
    }
    // Neighbouring threads add to neighbouring counts.
    __device__ void flush(unsigned *counts) const {
        for (unsigned number = threadIdx.x; number < n_counts; number += blockDim.x) {
            unsigned sum = 0;
            for (unsigned copy = 0; copy < copies; ++copy)
                sum += words[copy * size + number / 2] >> (number & 1) * 16 & 0xFFFF;
            if (sum)
                atomicAdd(counts + number, sum);
        }
    }
};

extern "C" __global__ void __launch_bounds__(512) count_keys(KEYS, ARRAY(unsigned, counts)) {
    Column *columns = reinterpret_cast<Column *>(table);
    Key key = Key::at(plan, Long(blockIdx.x) % n_keys);
    Long begin = Long(blockIdx.x) / n_keys * chunk, end = min(begin + chunk, n_rows);
    unsigned *own = counts + key.first_cell * Word(last_radix);
    Table shared(key, unsigned(last_radix));
    shared.clear();
    read_columns(columns, key, codes, LAST_COLUMN);
    if (key.copies) {
        unsigned *mine = shared.words + (threadIdx.x & (key.copies - 1)) * shared.size;
        each_four(columns, key.n_columns + 1, begin, end, [&](Long, const unsigned(&cells)[4], int n) {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (j < n)
                    atomicAdd(mine + cells[j] / 2, cells[j] & 1 ? 0x10000u : 1u);
        });
        __syncthreads();
        shared.flush(own);
    } else {
        each_four(columns, key.n_columns + 1, begin, end, [&](Long, const unsigned(&cells)[4], int n) {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (j < n)
                    atomicAdd(own + cells[j], 1u);
        });
    }
}
