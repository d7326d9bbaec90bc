// Encodings of rows, looked up by category and fold; compiled for a type of keys, a size of entries, folds, and for one
// output or several.  Tables that fit are in shared memory, ordered by slot; others are in memory, ordered by line.

#include "tiles.cuh"

extern __shared__ __align__(16) unsigned table[];

// With 64-bit keys, or several outputs, registers hold only one turn.
enum : unsigned { TURNS_AT_ONCE = sizeof(KEY) == 8 || OUTPUTS != 1 ? 1 : 2 };

// The parameters of all look-ups.
struct Given {
    struct Rows {
        KEY keys[4];
    };
    enum : unsigned { AT_ONCE = TURNS_AT_ONCE };
    Slots<KEY> slots;
    const ENTRY *entries;
    ENTRY *out;
    Long by_row, by_output;
    unsigned n_folds, n_outputs;
    bool keys_aligned, out_aligned;

    __device__ void read(Long row, Rows &into) const { read_four(slots.keys + row, keys_aligned, into.keys); }
    __device__ ENTRY *at(Long row, unsigned output) const {
        return OUTPUTS == 1 ? out + row : out + row * by_row + output * by_output;
    }
    // Write an output of four rows.
    __device__ void write(ENTRY *to, const ENTRY (&values)[4]) const {
        if (OUTPUTS == 1 || out_aligned) {
            write_four(to, out_aligned, values);
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j, to += by_row)
                *to = values[j];
        }
    }
};

struct FromMemory : Given {
    __device__ const ENTRY *entry_of(KEY key, unsigned fold) const {
        Word line = slots.line_of(slots.of(key));
        return entries + (line * n_folds + fold) * (OUTPUTS == 1 ? 1 : n_outputs);
    }
    __device__ void use(Long row, const Rows &rows, const unsigned (&folds)[4]) const {
        const ENTRY *from[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
            from[j] = entry_of(rows.keys[j], folds[j]);
        ENTRY *to = at(row, 0);
#pragma unroll 1
        for (unsigned output = 0; output < (OUTPUTS == 1 ? 1 : n_outputs); ++output, to += by_output) {
            ENTRY values[4] = {from[0][output], from[1][output], from[2][output], from[3][output]};
            write(to, values);
        }
    }
    __device__ void use_one(Long row, unsigned fold) const {
        const ENTRY *entry = entry_of(slots.keys[row], fold);
#pragma unroll 1
        for (unsigned output = 0; output < (OUTPUTS == 1 ? 1 : n_outputs); ++output)
            out[row * by_row + output * by_output] = entry[output];
    }
};

// With several outputs, an entry is read as whole vectors.
struct FromTable : Given {
    enum : unsigned { IN_VECTOR = OUTPUTS == 1 ? 1 : 16 / sizeof(ENTRY) };
    struct alignas(IN_VECTOR * sizeof(ENTRY)) Vector {
        ENTRY values[IN_VECTOR];
    };

    __device__ static Vector *vectors() { return reinterpret_cast<Vector *>(table + PLAN_WORDS); }
    __device__ unsigned width() const { return OUTPUTS == 1 ? 1 : (n_outputs + IN_VECTOR - 1) / IN_VECTOR; }

    // Copy the entries of all slots; neighbouring threads copy neighbouring entries.
    __device__ void fill() const {
        unsigned in_line = n_folds * n_outputs, line_inverse = ~0u / in_line, inverse = ~0u / n_outputs;
        for (unsigned i = threadIdx.x; i < (slots.last + 1) * in_line; i += blockDim.x) {
            unsigned rest = remainder(i, in_line, line_inverse), output = remainder(rest, n_outputs, inverse);
            unsigned line = slots.line_of((i - rest) / in_line), vector = (i - output) / n_outputs * width();
            // With fewer than two lines, there is none for missing or unknown values.
            if (line < slots.n_lines)
                vectors()[vector + output / IN_VECTOR].values[output % IN_VECTOR] = entries[line * in_line + rest];
        }
    }
    __device__ void use(Long row, const Rows &rows, const unsigned (&folds)[4]) const {
        unsigned from[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
            from[j] = (slots.of(rows.keys[j]) * n_folds + folds[j]) * width();
#pragma unroll 1
        for (unsigned vector = 0, output = 0; vector < width(); ++vector) {
            Vector found[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                found[j] = vectors()[from[j] + vector];
#pragma unroll
            for (unsigned i = 0; i < IN_VECTOR; ++i, ++output)
                if (OUTPUTS == 1 || output < n_outputs) {
                    ENTRY values[4] = {found[0].values[i], found[1].values[i], found[2].values[i], found[3].values[i]};
                    write(at(row, output), values);
                }
        }
    }
};

extern "C" __global__ void __launch_bounds__(512, SOURCE::BLOCKS)
    gather_rows(KEYS, FOLDS, Long n_folds, Long n_outputs, Long in_table, ARRAY(const ENTRY, entries), Long by_row,
                Long by_output, ARRAY(ENTRY, out)) {
    Plan<SOURCE> &plan = *reinterpret_cast<Plan<SOURCE> *>(table);
    static_assert(sizeof plan <= 4 * PLAN_WORDS);
    if (!threadIdx.x)
        plan.make(GIVEN_FOLDS, keys_size, by_row == 1 ? ahead_of_four(out) : ahead_of_four(keys));
    __syncthreads();
    bool out_aligned = by_row == 1 && !ahead_of_four(out + plan.tiles.begin) && (n_outputs == 1 || !(by_output & 3));
    Slots<KEY> slots = GIVEN_SLOTS;
    Given given{slots,
                entries,
                out,
                by_row,
                by_output,
                unsigned(n_folds),
                unsigned(n_outputs),
                !ahead_of_four(slots.keys + plan.tiles.begin),
                out_aligned};
    // The rows that were read last are in the cache.
    if (in_table) {
        FromTable look_up{given};
        look_up.fill();
        __syncthreads();
        walk(plan, look_up, true);
    } else {
        walk(plan, FromMemory{given}, true);
    }
    walk_others(plan.tiles, keys_size, GIVEN_FOLDS, FromMemory{given});
}
