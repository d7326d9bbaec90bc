// How kernels read all numbers of an array once, and find the smallest and the largest number of a block.

#include "rows.cuh"

// Call use(number) for all numbers of this thread; some come twice.
template <typename Number, typename Use>
__device__ inline void each_number(const Number *numbers, Long size, Use use) {
    // Vectors that a thread loads before it uses the first of them.
    constexpr int IN_FLIGHT = 4, WIDTH = 16 / sizeof(Number);
    Long thread = Long(blockIdx.x) * blockDim.x + threadIdx.x, step = Long(gridDim.x) * blockDim.x;
    Word address = reinterpret_cast<Word>(numbers), aligned = (address + 15) & ~15ull;
    Long before = min(size, Long((aligned - address) / sizeof(Number)));
    Long n_vectors = (size - before) / WIDTH, behind = before + n_vectors * WIDTH;
    if (thread < before)
        use(numbers[thread]);
    if (thread < size - behind)
        use(numbers[behind + thread]);
    const uint4 *vectors = reinterpret_cast<const uint4 *>(aligned);
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

// Gives the smallest and largest word of a block to its first thread; `of_warps` has two words for each warp.
__device__ inline void reduce_ends(Word &low, Word &high, Word *of_warps) {
#pragma unroll
    for (int lanes = 16; lanes; lanes >>= 1) {
        low = min(low, __shfl_xor_sync(~0u, low, lanes));
        high = max(high, __shfl_xor_sync(~0u, high, lanes));
    }
    if (threadIdx.x % 32 == 0)
        of_warps[threadIdx.x / 16] = low, of_warps[threadIdx.x / 16 + 1] = high;
    __syncthreads();
    for (unsigned warp = threadIdx.x ? blockDim.x / 32 : 1; warp < blockDim.x / 32; ++warp)
        low = min(low, of_warps[2 * warp]), high = max(high, of_warps[2 * warp + 1]);
}
