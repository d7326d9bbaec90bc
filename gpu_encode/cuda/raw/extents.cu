// Kernels that tell which binary digits the numbers of all rows touch: the lowest and one more than the highest.

#include "rows.cuh"

// Numbers of a target without weights: FLOAT32, FLOAT64 or INT64.
#ifndef NUMBERS
#define NUMBERS FLOAT64
#endif
enum { FLOAT32, FLOAT64, INT64 };

constexpr bool NARROW = NUMBERS == FLOAT32;
// Bits of the fraction; and the exponent of its lowest one in the smallest numbers.
constexpr int FRACTION_BITS = NARROW ? 23 : 52, LEAST = NARROW ? -150 : -1075;
constexpr int IN_FLIGHT = 4;
// Beyond the digits of any product.
constexpr Long NOWHERE = 1ll << 40;

// One more than the highest digit of a magnitude, which is not zero.
__device__ inline Long end_of(Word magnitude) {
    Word field = NUMBERS == INT64 ? 0 : magnitude >> FRACTION_BITS;
    Word mantissa = field ? (magnitude & ((1ull << FRACTION_BITS) - 1)) | 1ull << FRACTION_BITS : magnitude;
    Long exponent = NUMBERS == INT64 ? 0 : Long(field ? field : 1) + LEAST;
    return exponent + 64 - __clzll(Long(mantissa));
}

// What a thread has seen: the lowest digit, and the largest magnitude, which has the highest.
struct Seen {
    int low = 1 << 20;
    Word largest = 0;

    __device__ void add(unsigned bits) {
        unsigned magnitude = bits & 0x7FFFFFFF, field = magnitude >> 23;
        unsigned mantissa = field ? (magnitude & 0x7FFFFF) | 0x800000 : magnitude;
        if (magnitude)
            low = min(low, int(max(field, 1u)) + __ffs(mantissa));
        largest = max(unsigned(largest), magnitude);
    }

    __device__ void add(Word bits) {
        if (NUMBERS == INT64) {
            Word magnitude = Long(bits) < 0 ? 0 - bits : bits;
            if (magnitude)
                low = min(low, __ffsll(magnitude));
            largest = max(largest, magnitude);
            return;
        }
        // The lowest digit lies in one half of the mantissa or the other.
        unsigned upper = unsigned(bits >> 32) & 0x7FFFFFFF, lower = unsigned(bits), field = upper >> 20;
        unsigned rest = field ? (upper & 0xFFFFF) | 0x100000 : upper;
        if (upper | lower)
            low = min(low, int(max(field, 1u)) + (lower ? __ffs(lower) : 32 + __ffs(rest)));
        largest = max(largest, Word(upper) << 32 | lower);
    }
};

// Four numbers of 32 bits, or two of 64.
__device__ inline void add_vector(Seen &seen, const uint4 &vector) {
    if (NARROW) {
        seen.add(vector.x), seen.add(vector.y), seen.add(vector.z), seen.add(vector.w);
    } else {
        seen.add(Word(vector.y) << 32 | vector.x), seen.add(Word(vector.w) << 32 | vector.z);
    }
}

// Write the digits that the numbers of each block's share touch.
extern "C" __global__ void __launch_bounds__(512) measure_extents(ARRAY(const unsigned, words), ARRAY(Long, ends)) {
    extern __shared__ __align__(16) unsigned table[];
    Long thread = Long(blockIdx.x) * blockDim.x + threadIdx.x, step = Long(gridDim.x) * blockDim.x;
    Long before = min(words_size, Long((0 - reinterpret_cast<Word>(words)) % 16 / 4));
    Long n_vectors = (words_size - before) / 4, behind = before + 4 * n_vectors;
    Seen seen;
    // Those beside whole vectors; a number of two words begins at an even one.
    for (Long at = thread; at < before + words_size - behind; at += step) {
        Long word = at < before ? at : behind + at - before;
        if (NARROW)
            seen.add(words[word]);
        else if (at % 2 == 0)
            seen.add(Word(words[word + 1]) << 32 | words[word]);
    }
    const uint4 *vectors = reinterpret_cast<const uint4 *>(words + before);
    for (Long at = thread; at < n_vectors; at += IN_FLIGHT * step) {
        uint4 loaded[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k)
            loaded[k] = vectors[min(at + k * step, n_vectors - 1)];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k)
            add_vector(seen, loaded[k]);
    }
    Word *largest = reinterpret_cast<Word *>(table);
    Long *low = reinterpret_cast<Long *>(table) + blockDim.x;
    largest[threadIdx.x] = seen.largest, low[threadIdx.x] = seen.low;
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            largest[threadIdx.x] = max(largest[threadIdx.x], largest[threadIdx.x + half]);
            low[threadIdx.x] = min(low[threadIdx.x], low[threadIdx.x + half]);
        }
    }
    if (threadIdx.x == 0) {
        bool found = largest[0] != 0;
        ends[2 * blockIdx.x] = found ? low[0] - 1 + (NUMBERS == INT64 ? 0 : LEAST) : NOWHERE;
        ends[2 * blockIdx.x + 1] = found ? end_of(largest[0]) : -NOWHERE;
    }
}
