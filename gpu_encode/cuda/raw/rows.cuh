// What all kernels that read rows share: codes, division by multiplication, fold numbers. An array is passed as a
// pointer and its length.  The package inserts this text where a file includes it, since NVRTC does not search folders;
// tests/cuda/emulator.h runs all files on a CPU.

#include "vectors.cuh"

#define ARRAY(type, name) type *__restrict__ name, Long name##_size

// The parameters for folds in all kernels that use them, and the same as a `Folds`.
#define FOLDS                                                                                                         \
    Long kind, ARRAY(const int, numbers), Long n_splits, Word seed, Long n_rows, Long first_row,                      \
        ARRAY(const Long, units)
#define GIVEN_FOLDS Folds(kind, numbers, n_splits, seed, n_rows, first_row, units, units_size)

enum { NO_FOLDS, GIVEN, INTERLEAVED, CONTIGUOUS, RANDOM };

// Division by multiplication: the high word of the product with the inverse, (2^64 - 1) / divisor, is exact or one too
// small.
__device__ inline Word quotient(Word value, Word divisor, Word inverse) {
    Word found = __umul64hi(value, inverse);
    return found + (value - found * divisor >= divisor);
}

__device__ inline unsigned remainder(unsigned value, unsigned divisor, unsigned inverse) {
    unsigned rest = value - __umulhi(value, inverse) * divisor;
    return rest >= divisor ? rest - divisor : rest;
}

// Mix the bits of a 64-bit word (the last steps of SplitMix64); constants that make different uses of it differ.
constexpr Word BLOCK_KEY = 0x9E3779B97F4A7C15ull, STRIDE_KEY = 0xD1B54A32D192ED03ull;
__device__ inline Word mixed(Word word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
}

// The parameters for codes in all kernels that read them, and the same as a `Codes` of gpu_encode/cuda/indexed.py.
#define CODES ARRAY(const int, codes), Word base, Word mask, Word range, ARRAY(const int, code_ranks)
#define GIVEN_CODES Codes{codes, base, mask, range, code_ranks_size ? code_ranks : nullptr}

enum { UNKNOWN = -2 };

// int32 codes; or, with a range, words of 32 or 64 bits whose distance from a base is an index into the ranks.
struct Codes {
    const int *words;
    Word base, mask, range;
    const int *ranks;

    // Codes of four neighbouring rows, of which the first n exist.
    __device__ void of_four(Long row, int n, int (&found)[4]) const {
        if (!range) {
            load(words + row, n, found);
            return;
        }
        if (mask >> 32)
            by_place<Word>(reinterpret_cast<const Word *>(words) + row, n, range, found);
        else
            by_place<unsigned>(reinterpret_cast<const unsigned *>(words) + row, n, unsigned(range), found);
    }

    template <typename Key> __device__ void by_place(const Key *keys, int n, Key limit, int (&found)[4]) const {
        Key places[4];
        load(keys, n, places);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            places[k] = (places[k] - Key(base)) & Key(mask);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            found[k] = places[k] >= limit ? UNKNOWN : ranks ? ranks[places[k]] - 1 : int(places[k]);
    }
};

// Fold numbers of rows, which must be rising; remembers the block of the last row.
struct Folds {
    int kind;
    const int *numbers;
    const Long *units;
    Word n_splits, seed, n_rows, first_row, inverse;
    unsigned n_units, units_inverse, splits_inverse;
    Word begin = 0, end = 0, block_key = 0;
    unsigned log2_stride = 0, fold_of_block = 0;

    __device__ Folds(Long kind, const int *numbers, Word n_splits, Word seed, Word n_rows, Word first_row,
                     const Long *units, Long n_units)
        : kind(int(kind)), numbers(numbers), units(units), n_splits(n_splits), seed(seed), n_rows(n_rows),
          first_row(first_row), inverse(~0ull / n_splits), n_units(unsigned(n_units)),
          units_inverse(~0u / unsigned(n_units)), splits_inverse(~0u / unsigned(n_splits)) {}

    // Random folds: blocks of 1, 2, 4, ... strides begin at units 0, 1, 3, 7, ...; from 1,024 on all have the same
    // length.
    __device__ void enter_random(Word row) {
        Word unit = quotient(row, n_splits, inverse), first_unit, block;
        if (unit >= 1023) {
            Word beyond = (unit - 1023) >> 10;
            log2_stride = 10, block = 10 + beyond, first_unit = 1023 + (beyond << 10);
        } else {
            block = log2_stride = 31 - __clz(int(unit) + 1);
            first_unit = (1ull << log2_stride) - 1;
        }
        begin = first_unit * n_splits;
        end = begin + (n_splits << log2_stride);
        block_key = mixed(seed + block * BLOCK_KEY);
    }

    __device__ unsigned random(Word row) const {
        Word place = row - begin, turn = place >> log2_stride, stride = place - (turn << log2_stride);
        Word key = mixed(block_key + stride * STRIDE_KEY);
        Word factor = units[remainder(unsigned(key >> 32), n_units, units_inverse)];
        unsigned shift = remainder(unsigned(key), unsigned(n_splits), splits_inverse);
        if (n_splits >> 16)
            return unsigned((factor * turn + shift) % n_splits);
        return remainder(unsigned(factor) * unsigned(turn) + shift, unsigned(n_splits), splits_inverse);
    }

    // Contiguous folds: the first n_rows % n_splits of them have one row more.
    __device__ void enter_contiguous(Word row) {
        Word size = n_rows / n_splits, longer = n_rows - size * n_splits, edge = longer * (size + 1);
        bool is_longer = row < edge;
        Word length = is_longer ? size + 1 : max(size, Word(1)), first = is_longer ? 0 : edge;
        Word number = (row - first) / length;
        fold_of_block = unsigned((is_longer ? 0 : longer) + number);
        begin = first + number * length;
        end = begin + length;
    }

    // Folds of four neighbouring rows of the chunk, of which the first n exist.
    __device__ void of_four(Long row_of_chunk, int n, unsigned (&found)[4]) {
        if (kind == GIVEN)
            load(reinterpret_cast<const unsigned *>(numbers) + row_of_chunk, n, found);
        else if (kind == INTERLEAVED)
            interleaved(first_row + Word(row_of_chunk), found);
        else if (kind != NO_FOLDS)
            by_block(first_row + Word(row_of_chunk), n, found);
    }

    __device__ void interleaved(Word row, unsigned (&found)[4]) const {
        unsigned fold = unsigned(row - quotient(row, n_splits, inverse) * n_splits);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            found[k] = fold;
            fold = fold + 1 < n_splits ? fold + 1 : 0;
        }
    }

    __device__ void by_block(Word row, int n, unsigned (&found)[4]) {
        // Four rows are nearly always in the same block.
#pragma unroll 1
        for (int done = 0; done < n;) {
            if (row + done >= end)
                kind == CONTIGUOUS ? enter_contiguous(row + done) : enter_random(row + done);
            int inside = int(min(Word(n), end - row));
#pragma unroll
            for (int k = 0; k < 4; ++k)
                if (k >= done)
                    found[k] = kind == CONTIGUOUS ? fold_of_block : random(row + k);
            done = inside;
        }
    }
};
