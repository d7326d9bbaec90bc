// Kernels that read whole numbers of one width, as unsigned words: the ends of their range, and which of them occur.

#include "rows.cuh"

#ifndef NUMBER
#define NUMBER unsigned
#endif
typedef NUMBER Number;

// Vectors that a thread has on their way before it looks at the first.
constexpr int IN_FLIGHT = 4;

// Call use(number) for all numbers of this thread; some come twice.
template <typename Use> __device__ inline void each_number(const Number *numbers, Long size, Use use) {
    constexpr int WIDTH = 16 / sizeof(Number);
    Long thread = Long(blockIdx.x) * blockDim.x + threadIdx.x, step = Long(gridDim.x) * blockDim.x;
    Long before = min(size, Long((0 - reinterpret_cast<Word>(numbers)) % 16 / sizeof(Number)));
    Long n_vectors = (size - before) / WIDTH, behind = before + n_vectors * WIDTH;
    if (thread < before)
        use(numbers[thread]);
    if (thread < size - behind)
        use(numbers[behind + thread]);
    const uint4 *vectors = reinterpret_cast<const uint4 *>(numbers + before);
    for (Long at = thread; at < n_vectors; at += IN_FLIGHT * step) {
        uint4 loaded[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k)
            loaded[k] = vectors[min(at + k * step, n_vectors - 1)];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k)
#pragma unroll
            for (int i = 0; i < WIDTH; ++i)
                use(reinterpret_cast<const Number *>(loaded + k)[i]);
    }
}

// Write the smallest and the largest word of each block's share, as they compare with some bits flipped.
extern "C" __global__ void __launch_bounds__(1024)
    measure_range(ARRAY(const Number, numbers), Word flipped, ARRAY(Word, ends)) {
    extern __shared__ __align__(16) unsigned table[];
    Word *of_warps = reinterpret_cast<Word *>(table);
    Number low = Number(~0ull), high = 0, flip = Number(flipped);
    each_number(numbers, numbers_size, [&](Number number) {
        Number word = number ^ flip;
        low = word < low ? word : low, high = word > high ? word : high;
    });
#pragma unroll
    for (int lanes = 16; lanes; lanes >>= 1) {
        Number other_low = Number(__shfl_xor_sync(~0u, Word(low), lanes));
        Number other_high = Number(__shfl_xor_sync(~0u, Word(high), lanes));
        low = other_low < low ? other_low : low, high = other_high > high ? other_high : high;
    }
    if (threadIdx.x % 32 == 0)
        of_warps[threadIdx.x / 16] = low, of_warps[threadIdx.x / 16 + 1] = high;
    __syncthreads();
    if (threadIdx.x)
        return;
    Word lowest = of_warps[0], highest = of_warps[1];
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp)
        lowest = min(lowest, of_warps[2 * warp]), highest = max(highest, of_warps[2 * warp + 1]);
    ends[2 * blockIdx.x] = lowest, ends[2 * blockIdx.x + 1] = highest;
}

// Mark the numbers of a range that occur; the last mark is that of all numbers outside.
extern "C" __global__ void __launch_bounds__(1024)
    mark_numbers(ARRAY(const Number, numbers), Word base, ARRAY(unsigned char, present)) {
    Number first = Number(base);
    Word outside = Word(present_size - 1);
    each_number(numbers, numbers_size, [&](Number number) {
        Word offset = min(Word(Number(number - first)), outside);
        // Threads may mark the same number: all of them write a one.  Most find it marked.
        if (!present[offset])
            present[offset] = 1;
    });
}
