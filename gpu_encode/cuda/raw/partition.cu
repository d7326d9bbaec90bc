// Kernels for many cells: rows are collected in buckets of neighbouring cells, and a bucket fits into shared memory.
// Each tile of rows is sorted by bucket on its own, without data of other tiles: `words` has the cells of its rows, and
// `runs` says where in the tile the rows of a bucket begin, and how many there are.

#include "buckets.cuh"
#include "cells.cuh"

// Vectors of four rows that a thread sorts; most buckets of a thread; most warps of a block.
constexpr unsigned VECTORS = 4, SHARE = 4, WARPS = 32;

// A slab of rows: `n_tiles` tiles, each with one run for each bucket.
struct Slab {
    Long start, size;
    unsigned shift, n_buckets, n_tiles;
    unsigned *runs;

    __device__ static unsigned tile_rows() { return 4 * VECTORS * blockDim.x; }
    __device__ unsigned share() const { return (n_buckets + blockDim.x - 1) / blockDim.x; }
};

// The first of the four rows of a thread's vector in a tile, and how many of them exist.
__device__ inline unsigned row_of(unsigned vector) { return 4 * (vector * blockDim.x + threadIdx.x); }
__device__ inline int rows_of(unsigned vector, unsigned n_rows) {
    return max(min(int(n_rows) - int(row_of(vector)), 4), 0);
}

// Shared memory of a block that sorts: words of a scan; for each bucket its count, later its beginning; `positions`:
// each row's rank in its bucket, later its position in the sorted tile, two of 16 bits in a word; and rows' numbers.
struct Room {
    unsigned *of_warps, *counts, *positions, *buffer;

    __device__ Room(unsigned *table, unsigned n_buckets)
        : of_warps(table), counts(table + WARPS), positions(counts + (n_buckets + 3) / 4 * 4),
          buffer(positions + 2 * VECTORS * blockDim.x) {}

    __device__ void load_four(unsigned vector, unsigned (&found)[4]) const {
        uint2 pairs = *reinterpret_cast<const uint2 *>(positions + row_of(vector) / 2);
        found[0] = pairs.x & 0xFFFF, found[1] = pairs.x >> 16, found[2] = pairs.y & 0xFFFF, found[3] = pairs.y >> 16;
    }

    __device__ void store_four(unsigned vector, const unsigned (&values)[4]) const {
        *reinterpret_cast<uint2 *>(positions + row_of(vector) / 2) =
            uint2{values[0] | values[1] << 16, values[2] | values[3] << 16};
    }

    // Write the numbers of the tile's rows; there is room for whole vectors.
    template <typename Number> __device__ void write(unsigned n_rows, Number *to) const {
        for (unsigned vector = threadIdx.x; vector * sizeof(uint4) < n_rows * sizeof(Number); vector += blockDim.x)
            reinterpret_cast<uint4 *>(to)[vector] = reinterpret_cast<const uint4 *>(buffer)[vector];
    }
};

// Count the rows of a tile by bucket; the buffer then has the cell of each row.
__device__ inline void rank_rows(Rows &rows, const Slab &slab, Long begin, unsigned n_rows, const Room &room) {
#pragma unroll 1
    for (unsigned v = 0; v < VECTORS; ++v) {
        unsigned cells[4] = {0, 0, 0, 0}, ranks[4] = {0, 0, 0, 0}, row = row_of(v);
        int n = four_cells(rows, begin + row, begin + n_rows, cells);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (k < n)
                ranks[k] = atomicAdd(room.counts + (cells[k] >> slab.shift), 1u);
        *reinterpret_cast<uint4 *>(room.buffer + row) = uint4{cells[0], cells[1], cells[2], cells[3]};
        room.store_four(v, ranks);
    }
}

// Replace the count of each bucket by the position at which it begins in the tile, and write its run.
__device__ inline void start_buckets(const Slab &slab, unsigned tile, const Room &room, unsigned (&totals)[SHARE]) {
    unsigned share = slab.share(), first = threadIdx.x * share, own[SHARE], sum = 0;
#pragma unroll
    for (unsigned k = 0; k < SHARE; ++k) {
        own[k] = k < share && first + k < slab.n_buckets ? room.counts[first + k] : 0;
        totals[k] += own[k];
        sum += own[k];
    }
    sum = sum_before(sum, room.of_warps);
#pragma unroll
    for (unsigned k = 0; k < SHARE; ++k)
        if (k < share && first + k < slab.n_buckets) {
            slab.runs[Long(first + k) * slab.n_tiles + tile] = sum | own[k] << 16;
            room.counts[first + k] = sum;
            sum += own[k];
        }
}

// Sort the cells of the tile in the buffer; each row's rank is replaced by its new position.
__device__ inline void sort_cells(unsigned shift, unsigned n_rows, const Room &room) {
    unsigned cells[VECTORS][4];
#pragma unroll
    for (unsigned v = 0; v < VECTORS; ++v) {
        uint4 four = *reinterpret_cast<const uint4 *>(room.buffer + row_of(v));
        cells[v][0] = four.x, cells[v][1] = four.y, cells[v][2] = four.z, cells[v][3] = four.w;
    }
    __syncthreads();
#pragma unroll
    for (unsigned v = 0; v < VECTORS; ++v) {
        unsigned positions[4];
        int n = rows_of(v, n_rows);
        room.load_four(v, positions);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (k < n) {
                positions[k] += room.counts[cells[v][k] >> shift];
                room.buffer[positions[k]] = cells[v][k];
            }
        room.store_four(v, positions);
    }
    __syncthreads();
}

// Write the values of the tile's rows, in the sorted order of its cells.
template <typename Value>
__device__ inline void sort_values(const Value *values, unsigned n_rows, const Room &room, Value *to) {
    // The buffer still holds the cells.
    __syncthreads();
#pragma unroll 1
    for (unsigned v = 0; v < VECTORS; ++v) {
        unsigned positions[4];
        Value four[4];
        int n = rows_of(v, n_rows);
        load(values + row_of(v), n, four);
        room.load_four(v, positions);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (k < n)
                reinterpret_cast<Value *>(room.buffer)[positions[k]] = four[k];
    }
    __syncthreads();
    room.write(n_rows, to);
}

// Sort every tile of a slab, and the values of its rows if there are any.
template <typename Value>
__device__ inline void partition(unsigned *table, Rows &rows, const Slab &slab, unsigned *words, unsigned *sizes,
                                 const Value *values, Value *sorted) {
    Room room(table, slab.n_buckets);
    unsigned totals[SHARE] = {0, 0, 0, 0}, tile_rows = slab.tile_rows();
    for (unsigned tile = blockIdx.x; tile < slab.n_tiles; tile += gridDim.x) {
        Long first = Long(tile) * tile_rows, begin = slab.start + first;
        unsigned n_rows = unsigned(min(slab.size - first, Long(tile_rows)));
        for (unsigned bucket = threadIdx.x; bucket < slab.n_buckets; bucket += blockDim.x)
            room.counts[bucket] = 0;
        __syncthreads();
        rank_rows(rows, slab, begin, n_rows, room);
        __syncthreads();
        start_buckets(slab, tile, room, totals);
        sort_cells(slab.shift, n_rows, room);
        room.write(n_rows, words + first);
        if (values)
            sort_values(values + begin, n_rows, room, sorted + first);
    }
    unsigned share = slab.share();
#pragma unroll
    for (unsigned k = 0; k < SHARE; ++k)
        if (totals[k])
            atomicAdd(sizes + threadIdx.x * share + k, totals[k]);
}

#define SLAB Long start, Long size, Long shift
#define SORTED ARRAY(unsigned, words), ARRAY(unsigned, runs), ARRAY(unsigned, sizes)
#define GIVEN_SLAB                                                                                                    \
    Slab { start, size, unsigned(shift), unsigned(sizes_size), unsigned(runs_size / sizes_size), runs }

extern "C" __global__ void __launch_bounds__(512) partition_rows(ROWS, SLAB, SORTED) {
    extern __shared__ __align__(16) unsigned table[];
    Rows rows = GIVEN_ROWS;
    partition<unsigned>(table, rows, GIVEN_SLAB, words, sizes, nullptr, nullptr);
}

extern "C" __global__ void __launch_bounds__(512)
    partition_pairs_32(ROWS, SLAB, SORTED, ARRAY(const unsigned, values), ARRAY(unsigned, sorted)) {
    extern __shared__ __align__(16) unsigned table[];
    Rows rows = GIVEN_ROWS;
    partition(table, rows, GIVEN_SLAB, words, sizes, values, sorted);
}

extern "C" __global__ void __launch_bounds__(512)
    partition_pairs_64(ROWS, SLAB, SORTED, ARRAY(const Word, values), ARRAY(Word, sorted)) {
    extern __shared__ __align__(16) unsigned table[];
    Rows rows = GIVEN_ROWS;
    partition(table, rows, GIVEN_SLAB, words, sizes, values, sorted);
}

// Call use(position in the sorted slab, step, how many) for the rows of a piece, up to four at a time.
template <typename Use>
__device__ inline void each_row(const Piece &piece, const unsigned *runs, unsigned n_tiles, unsigned size,
                                Long tile_rows, Use use) {
    unsigned width = threads_of_run(size / n_tiles, min(8u, blockDim.x), blockDim.x);
    unsigned lane = threadIdx.x & (width - 1), turn = blockDim.x / width * piece.step;
    unsigned tile = piece.first + threadIdx.x / width * piece.step, run = tile < n_tiles ? runs[tile] : 0;
    for (; tile < n_tiles; tile += turn) {
        unsigned begin = run & 0xFFFF, end = begin + (run >> 16);
        run = tile + turn < n_tiles ? runs[tile + turn] : 0;
        for (unsigned at = begin + lane; at < end; at += 4 * width)
            use(tile * tile_rows + at, width, min((end - at + width - 1) / width, 4u));
    }
}

// Two counts of 16 bits share a word of the table.  The thread that sees one of them reach half of its range empties
// the word at once, so that no thread adds more than four rows in between.
constexpr unsigned FULL = 0x80008000;
static_assert(0x8000 + 4 * 1024 <= 0xFFFF, "counts of 16 bits do not overflow");

__device__ inline void take_full(unsigned *table, unsigned cell, Word *cells) {
    unsigned counted = atomicExch(table + (cell >> 1), 0u);
    if (counted & 0xFFFF)
        atomicAdd(cells + (cell & ~1u), Word(counted & 0xFFFF));
    if (counted >> 16)
        atomicAdd(cells + (cell | 1), Word(counted >> 16));
}

// Add the table to the cells of its bucket, and clear it; neighbouring threads add to neighbouring cells.
__device__ inline void flush(unsigned *table, unsigned n_cells, Word *cells) {
    for (unsigned begin = 0; begin < n_cells; begin += blockDim.x) {
        unsigned cell = begin + threadIdx.x;
        unsigned counted = cell < n_cells ? table[cell >> 1] >> 16 * (cell & 1) & 0xFFFF : 0;
        __syncwarp();
        if (cell < n_cells && !(cell & 1))
            table[cell >> 1] = 0;
        if (counted)
            atomicAdd(cells + cell, Word(counted));
    }
}

extern "C" __global__ void __launch_bounds__(1024)
    count_buckets(ARRAY(const unsigned, words), ARRAY(const unsigned, runs), ARRAY(const unsigned, sizes),
                  Long tile_rows, Long shift, Long target, ARRAY(Word, cells)) {
    extern __shared__ __align__(16) unsigned table[];
    unsigned n_cells = 1u << shift, n_buckets = unsigned(sizes_size), n_tiles = unsigned(runs_size / sizes_size);
    unsigned *ends = table + n_cells / 2, *of_warps = ends + n_buckets;
    for (unsigned word = threadIdx.x; word < n_cells / 2; word += blockDim.x)
        table[word] = 0;
    plan_pieces(sizes, n_buckets, n_tiles, unsigned(target), of_warps, ends);
    for (unsigned number = blockIdx.x; number < ends[n_buckets - 1]; number += gridDim.x) {
        Piece piece = piece_of(number, ends, n_buckets);
        Word *own = cells + (Long(piece.bucket) << shift);
        each_row(piece, runs + Long(piece.bucket) * n_tiles, n_tiles, sizes[piece.bucket], tile_rows,
                 [&](Long at, unsigned step, unsigned n) {
                     unsigned cell[4], seen = 0;
#pragma unroll
                     for (unsigned k = 0; k < 4; ++k)
                         cell[k] = k < n ? words[at + k * step] & (n_cells - 1) : 0;
#pragma unroll
                     for (unsigned k = 0; k < 4; ++k)
                         if (k < n)
                             seen |= atomicAdd(table + (cell[k] >> 1), 1u << 16 * (cell[k] & 1));
                     if (seen & FULL)
                         for (unsigned k = 0; k < n; ++k)
                             take_full(table, cell[k], own);
                 });
        __syncthreads();
        flush(table, n_cells, own);
        __syncthreads();
    }
}
