// Kernels that count rows per (line, fold, class) cell.  Each thread reads four neighbouring rows as one vector.

#include "rows.cuh"

// Rows in all kernels that read them, and the same as a `Rows`.
#define ROWS                                                                                                          \
    CODES, ARRAY(const int, classes), Long with_classes, FOLDS, Long n_lines, Long n_folds, Long n_classes
#define GIVEN_ROWS                                                                                                    \
    Rows { GIVEN_CODES, with_classes ? classes : nullptr, GIVEN_FOLDS, n_lines, n_folds, n_classes }

struct Rows {
    Codes codes;
    const int *classes;
    Folds folds;
    Long n_lines, n_folds, n_classes;
};

// Cells of four rows; gives how many of them are there.  Negative codes count from the end of the table.
template <typename Cell> __device__ inline int four_cells(Rows &rows, Long row, Long end, Cell (&cells)[4]) {
    int n = int(max(min(end - row, Long(4)), Long(0)));
    int codes[4], labels[4] = {0, 0, 0, 0};
    rows.codes.of_four(row, n, codes);
    if (rows.classes)
        load<int, int4>(rows.classes + row, n, labels);
    unsigned folds[4] = {0, 0, 0, 0};
    rows.folds.of_four(row, n, folds);
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (k < n) {
            Cell line = Cell(codes[k] < 0 ? codes[k] + rows.n_lines : codes[k]);
            cells[k] = (line * Cell(rows.n_folds) + folds[k]) * Cell(rows.n_classes) + labels[k];
        }
    return n;
}

// A table in shared memory counts in 32-bit words; with halves = 1 a word holds the counts of two neighbouring cells.
__device__ inline void add(unsigned *table, unsigned halves, unsigned cell) {
    atomicAdd(table + (cell >> halves), 1u << ((cell & halves) << 4));
}

__device__ inline void clear(unsigned *table, Long size) {
    for (Long word = threadIdx.x; word < size; word += blockDim.x)
        table[word] = 0;
}

// Add the block's table to the cells, and set it to zero again.
__device__ inline void flush(unsigned *table, Long size, unsigned halves, Long *cells) {
    for (Long word = threadIdx.x; word < size; word += blockDim.x) {
        unsigned counted = table[word];
        if (!counted)
            continue;
        table[word] = 0;
        Word *cell = reinterpret_cast<Word *>(cells) + (word << halves);
        Word low = halves ? counted & 0xFFFF : counted, high = halves ? counted >> 16 : 0;
        if (low)
            atomicAdd(cell, low);
        if (high)
            atomicAdd(cell + 1, high);
    }
}

// Rows of a warp that share a cell are added at once.
extern "C" __global__ void __launch_bounds__(1024) count_in_memory(ROWS, ARRAY(Long, cells)) {
    Rows rows = GIVEN_ROWS;
    Long first = 4 * (Long(blockIdx.x) * blockDim.x + threadIdx.x), turn = 4 * Long(gridDim.x) * blockDim.x;
    // Every lane takes every turn, so that its warp is whole.
    for (Long begin = 0; begin < codes_size; begin += turn) {
        Word cell[4];
        int n = four_cells(rows, begin + first, codes_size, cell);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            unsigned alike = __match_any_sync(~0u, k < n ? cell[k] : ~0ull);
            if (k < n && __ffs(alike) - 1 == int(threadIdx.x & 31))
                atomicAdd(reinterpret_cast<Word *>(cells) + cell[k], Word(__popc(alike)));
        }
    }
}

extern "C" __global__ void __launch_bounds__(1024)
    measure_buckets(ROWS, Long start, Long share, Long shift, ARRAY(unsigned, slab), ARRAY(Long, sizes)) {
    extern __shared__ unsigned table[];
    Rows rows = GIVEN_ROWS;
    Long n_buckets = sizes_size / gridDim.x;
    clear(table, n_buckets);
    __syncthreads();
    Long begin = blockIdx.x * share, end = min(begin + share, slab_size);
    for (Long place = begin + 4 * threadIdx.x; place < end; place += 4 * blockDim.x) {
        unsigned cell[4];
        int n = four_cells(rows, start + place, start + end, cell);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (k < n) {
                slab[place + k] = cell[k];
                atomicAdd(table + (cell[k] >> shift), 1u);
            }
    }
    __syncthreads();
    for (Long bucket = threadIdx.x; bucket < n_buckets; bucket += blockDim.x)
        sizes[bucket * gridDim.x + blockIdx.x] = table[bucket];
}

extern "C" __global__ void __launch_bounds__(1024)
    fill_buckets(ARRAY(const unsigned, slab), Long share, Long shift, ARRAY(const Long, sizes), ARRAY(const Long, ends),
                 ARRAY(unsigned, sorted_cells)) {
    extern __shared__ unsigned table[];
    for (Long bucket = threadIdx.x; bucket < sizes_size / gridDim.x; bucket += blockDim.x) {
        Long at = bucket * gridDim.x + blockIdx.x;
        table[bucket] = unsigned(ends[at] - sizes[at]);
    }
    __syncthreads();
    Long begin = blockIdx.x * share, end = min(begin + share, slab_size);
    for (Long place = begin + 4 * threadIdx.x; place < end; place += 4 * blockDim.x) {
        unsigned cell[4];
        int n = int(min(end - place, Long(4)));
        load<unsigned, uint4>(slab + place, n, cell);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (k < n)
                sorted_cells[atomicAdd(table + (cell[k] >> shift), 1u)] = cell[k];
    }
}

// First place whose end is beyond the number.
__device__ inline Long first_beyond(Long number, const Long *ends, Long size) {
    Long low = 0, high = size;
    while (low < high) {
        Long middle = (low + high) >> 1;
        if (ends[middle] <= number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(1024)
    count_buckets(ARRAY(const unsigned, sorted_cells), ARRAY(const Long, bucket_ends), ARRAY(const Long, piece_ends),
                  Long piece, Long shift, ARRAY(Long, cells)) {
    extern __shared__ unsigned table[];
    Long size = Long(1) << (shift - 1);
    unsigned mask = (1u << shift) - 1;
    clear(table, size);
    for (Long number = blockIdx.x; number < piece_ends[piece_ends_size - 1]; number += gridDim.x) {
        __syncthreads();
        Long bucket = first_beyond(number, piece_ends, piece_ends_size);
        Long before = bucket ? bucket_ends[bucket - 1] : 0, first_piece = bucket ? piece_ends[bucket - 1] : 0;
        Long begin = before + (number - first_piece) * piece, end = min(begin + piece, bucket_ends[bucket]);
        // Buckets begin anywhere: the first vector may hold cells of the one before.
        for (Long place = (begin & ~Long(3)) + 4 * threadIdx.x; place < end; place += 4 * blockDim.x) {
            unsigned cell[4];
            int n = int(min(end - place, Long(4)));
            load<unsigned, uint4>(sorted_cells + place, n, cell);
#pragma unroll
            for (int k = 0; k < 4; ++k)
                if (k < n && place + k >= begin)
                    add(table, 1, cell[k] & mask);
        }
        __syncthreads();
        flush(table, size, 1, cells + (bucket << shift));
    }
}
