// Adds rows in windows, cell by cell in shared memory: one number of each row, and its square.  Compiled for a type of
// numbers, VALUE, with their SQUARES or without, and for a SOURCE of folds.

#include "windows.cuh"

// Rows that belong to the block of a warp.  They are added as soon as each lane has TOGETHER of them.
enum { TOGETHER = 2, BATCH = TOGETHER * int(LANES), QUEUED = BATCH + int(LANES) };
struct Queue {
    unsigned begin;

    __device__ VALUE &value(unsigned at) const {
        return *reinterpret_cast<VALUE *>(word_at(begin + sizeof(VALUE) * at));
    }
    __device__ unsigned &slot(unsigned at) const { return *word_at(begin + sizeof(VALUE) * QUEUED + 4 * at); }
};

// Add the last rows of a queue, at most this many for each lane; returns how many rows the warp keeps.
__device__ __noinline__ unsigned add_queued(unsigned begin, unsigned begin_of_queue, unsigned n_queued,
                                            unsigned n_kept) {
    Queue queue{begin_of_queue};
    unsigned first = max(int(n_queued) - BATCH, 0) + threadIdx.x % LANES, slot[TOGETHER];
    bool here[TOGETHER];
    VALUE value[TOGETHER];
    __syncwarp();
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) {
        unsigned at = first + k * LANES;
        here[k] = at < n_queued;
        slot[k] = here[k] ? queue.slot(at) : 0, value[k] = here[k] ? queue.value(at) : 0;
    }
    add_rows(begin, n_kept, slot, here, value, &queue.value(first), LANES);
    __syncwarp();
    return n_kept;
}

// Rows as `walk` gives them.  Blocks of a group walk over the same rows; each keeps a part of the lines.
struct Adding {
    enum { AT_ONCE = 1 };
    struct Rows {
        int codes[4];
        VALUE values[4];
    };
    Codes codes;
    const VALUE *values;
    // `begin`: the byte at which the cells begin; `before`: the earlier lanes of the warp, as bits.
    unsigned begin, before, in_line, groups, own, inverse;
    Queue queue;
    mutable unsigned n_kept, n_queued;

    // Unknown codes, -2, and missing codes, -1, come first.
    __device__ unsigned line_of(int code) const { return unsigned(code + 2); }

    // Finds a row's slot in its group of lines; true if this block has that group.
    __device__ bool find(int code, unsigned fold, unsigned &slot) const {
        unsigned line = line_of(code), rank = __umulhi(line, inverse);
        slot = rank * in_line + fold;
        return line - rank * groups == own;
    }

    __device__ void read(Long row, Rows &into) const {
        codes.of_four(row, 4, into.codes);
        load(values + row, 4, into.values);
    }

    __device__ void use(Long row, const Rows &rows, const unsigned (&folds)[4]) const {
        unsigned slot[4];
        bool all[4] = {true, true, true, true};
        if (groups == 1) {
#pragma unroll
            for (int k = 0; k < 4; ++k)
                slot[k] = line_of(rows.codes[k]) * in_line + folds[k];
            add_rows(begin, n_kept, slot, all, rows.values, values + row);
            return;
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            bool own = find(rows.codes[k], folds[k], slot[k]);
            enqueue(own, slot[k], rows.values[k]);
        }
    }

    // Put the row of each lane into the queue, if it belongs to this block.
    __device__ void enqueue(bool own, unsigned slot, VALUE value) const {
        unsigned lanes = __ballot_sync(~0u, own), at = n_queued + __popc(lanes & before);
        if (own)
            queue.value(at) = value, queue.slot(at) = slot;
        n_queued += __popc(lanes);
        if (n_queued >= BATCH)
            add_all_queued();
    }

    __device__ void add_all_queued() const {
        n_kept = add_queued(begin, queue.begin, n_queued, n_kept);
        n_queued = max(int(n_queued) - BATCH, 0);
    }

    // Lanes without a row take part, so that their warp is complete.
    __device__ void use_one(Long row, unsigned fold, bool given) const {
        int code[4] = {0, 0, 0, 0};
        unsigned slot[1];
        VALUE value[1] = {0};
        if (given)
            codes.of_four(row, 1, code), value[0] = values[row];
        bool here[1] = {(groups == 1 || find(code[0], fold, slot[0])) && given};
        if (groups == 1)
            slot[0] = line_of(code[0]) * in_line + fold;
        // There may be no lines of categories.
        slot[0] = here[0] ? slot[0] : 0;
        add_rows(begin, n_kept, slot, here, value, values + row);
    }
};

// Add all rows.  If folds are computed one by one, threads need more registers.
extern "C" __global__ void __launch_bounds__(SOURCE::BLOCKS == 1 ? 512 : 640, 1)
    add_in_windows(CODES, ARRAY(const VALUE, values), FOLDS, ARRAY(const Long, plan), ARRAY(Long, cells), Long n_lines,
                   Long in_line, Long groups, Long inverse, Long slots, Long copies, Long words) {
    Plan<SOURCE> &walked = *reinterpret_cast<Plan<SOURCE> *>(table);
    if (!threadIdx.x)
        walked.make(GIVEN_FOLDS, codes_size, ahead_of_four(codes));
    unsigned begin = begin_block(values, codes_size, plan, cells, n_lines, in_line, groups, copies, words);
    unsigned queues = 4 * (Shared::head() + unsigned(copies * words)), warp = threadIdx.x / LANES;
    Queue queue{pinned(queues + warp * unsigned(QUEUED * (sizeof(VALUE) + 4)))};
    Adding adding{GIVEN_CODES,
                  values,
                  begin,
                  pinned(lanes_before()),
                  unsigned(in_line),
                  unsigned(groups),
                  blockIdx.x % unsigned(groups),
                  unsigned(inverse),
                  queue,
                  0,
                  0};
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
    if (adding.n_queued)
        adding.add_all_queued();
    end_block(adding.n_kept, slots, copies, words);
}
