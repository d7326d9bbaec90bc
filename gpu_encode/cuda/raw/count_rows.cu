// Counts rows per (line, fold, class) cell in tables of the blocks; compiled for types of keys and of folds.  Two
// neighbouring cells share a word, with 16 bits each.  The thread that sees a half become half full empties the word.

#include "tiles.cuh"

// Threads of a block, and rows that each thread adds before it looks at the words that it has changed.
enum : unsigned { MOST_THREADS = 512, ADDED = 4, HALF_FULL = 1u << 15, FULL = HALF_FULL << 16 | HALF_FULL };
static_assert(MOST_THREADS * ADDED <= HALF_FULL, "a half can overflow before anybody looks");

// Cells of a line, and its inverse, are stored between the plan and the table.
enum : unsigned { IN_LINE = PLAN_WORDS - 2, INVERSE };

extern __shared__ __align__(16) unsigned table[];

struct Counting {
    struct Rows {
        KEY keys[4];
        int labels[4];
    };
    // With 64-bit keys, registers hold only one turn.
    enum : unsigned { AT_ONCE = sizeof(KEY) == 8 ? 1 : 2 };
    Slots<KEY> slots;
    const int *labels;
    Word *cells;
    unsigned n_folds, n_classes;
    bool aligned, by_rank;

    __device__ void read(Long row, Rows &into) const {
        read_four(slots.keys + row, true, into.keys);
        if (CLASSES != 1)
            read_four(labels + row, aligned, into.labels);
    }

    // The byte position of a row's word in the table, and what the row adds.  Larger labels count as the last class.
    __device__ unsigned find(KEY key, int label, unsigned fold, unsigned &one) const {
        unsigned slot = slots.of(key);
        if (by_rank)
            slot = slots.rank_of(slot);
        unsigned cell = slot * n_folds + fold;
        if (CLASSES == 2) {
            one = label ? 0x10000 : 1;
            return 4 * cell;
        }
        if (CLASSES != 1)
            cell = cell * n_classes + min(unsigned(label), n_classes - 1);
        one = cell & 1 ? 0x10000 : 1;
        return cell * 2 & ~3u;
    }

    __device__ static unsigned *word_at(unsigned bytes) {
        return reinterpret_cast<unsigned *>(reinterpret_cast<char *>(table + PLAN_WORDS) + bytes);
    }

    __device__ void use(Long, const Rows &rows, const unsigned (&folds)[4]) const {
        unsigned at[ADDED], seen = 0;
#pragma unroll
        for (unsigned j = 0; j < ADDED; ++j) {
            unsigned one;
            at[j] = find(rows.keys[j], rows.labels[j], folds[j], one);
            seen |= atomicAdd(word_at(at[j]), one);
        }
        if (seen & FULL)
#pragma unroll 1
            for (unsigned j = 0; j < ADDED; ++j)
                take_out(j < 2 ? j ? at[1] : at[0] : j == 2 ? at[2] : at[3]);
    }

    __device__ void use_one(Long row, unsigned fold) const {
        unsigned one, at = find(slots.keys[row], CLASSES != 1 ? labels[row] : 0, fold, one);
        if (atomicAdd(word_at(at), one) & FULL)
            take_out(at);
    }

    __device__ void take_out(unsigned at) const {
        unsigned counted = atomicExch(word_at(at), 0u);
#pragma unroll 1
        for (unsigned cell = at / 2; counted; ++cell, counted >>= 16)
            add(cell, counted & 0xFFFF);
    }

    __device__ void add(unsigned cell, unsigned counted) const {
        if (!counted)
            return;
        unsigned in_line = table[IN_LINE], slot = __umulhi(cell, table[INVERSE]);
        slot += cell - slot * in_line >= in_line;
        unsigned line = by_rank ? slots.line_of_rank(slot) : slots.line_of(slot);
        atomicAdd(cells + Long(line) * in_line + (cell - slot * in_line), Word(counted));
    }
};

extern "C" __global__ void __launch_bounds__(512, SOURCE::BLOCKS)
    count_rows(KEYS, ARRAY(const int, labels), FOLDS, Long n_folds, Long n_classes, Long by_rank, ARRAY(Long, cells)) {
    Plan<SOURCE> &plan = *reinterpret_cast<Plan<SOURCE> *>(table);
    static_assert(sizeof plan <= 4 * IN_LINE);
    Slots<KEY> slots = GIVEN_SLOTS;
    if (!threadIdx.x) {
        plan.make(GIVEN_FOLDS, keys_size, ahead_of_four(keys));
        table[IN_LINE] = unsigned(n_folds * n_classes), table[INVERSE] = ~0u / unsigned(n_folds * n_classes);
    }
    unsigned n_cells = unsigned((by_rank ? n_lines - 1 : last + 1) * n_folds * n_classes);
    for (unsigned word = threadIdx.x; word < (n_cells + 1) / 2; word += blockDim.x)
        table[PLAN_WORDS + word] = 0;
    __syncthreads();
    Counting counting{slots,
                      labels,
                      reinterpret_cast<Word *>(cells),
                      unsigned(n_folds),
                      unsigned(n_classes),
                      !ahead_of_four(labels + plan.tiles.begin),
                      by_rank != 0};
    walk(plan, counting, false);
    walk_others(plan.tiles, keys_size, GIVEN_FOLDS, counting);
    __syncthreads();
    // Neighbouring threads add to neighbouring cells.
    for (unsigned cell = threadIdx.x; cell < n_cells; cell += blockDim.x)
        counting.add(cell, table[PLAN_WORDS + cell / 2] >> (cell & 1) * 16 & 0xFFFF);
}
