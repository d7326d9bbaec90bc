// Kernels that read integers as unsigned words: the smallest and largest ones, and which numbers of a range occur.

#include "ends.cuh"

typedef KEY Key;

// Write the smallest and the largest word of each block's share; some bits are flipped for the comparison.
extern "C" __global__ void __launch_bounds__(1024)
    measure_range(ARRAY(const Key, numbers), Word flipped, ARRAY(Word, ends)) {
    extern __shared__ __align__(16) unsigned table[];
    Key low = Key(~0ull), high = 0, flip = Key(flipped);
    each_number(numbers, numbers_size, [&](Key number) {
        Key word = number ^ flip;
        low = word < low ? word : low, high = word > high ? word : high;
    });
    Word lowest = low, highest = high;
    reduce_ends(lowest, highest, reinterpret_cast<Word *>(table));
    if (!threadIdx.x)
        ends[2 * blockIdx.x] = lowest, ends[2 * blockIdx.x + 1] = highest;
}

// Mark the numbers of a range that occur; the last mark is for all numbers outside of the range.
extern "C" __global__ void __launch_bounds__(1024)
    mark_numbers(ARRAY(const Key, numbers), Word base, ARRAY(unsigned char, present)) {
    Key first = Key(base);
    Word outside = Word(present_size - 1);
    each_number(numbers, numbers_size, [&](Key number) {
        Word offset = min(Word(Key(number - first)), outside);
        // Several threads may mark the same number: all of them write a one.  Most find it marked already.
        if (!present[offset])
            present[offset] = 1;
    });
}

// The same, if a block's shared memory has a bit for each number: in global memory, a warp's reads of scattered bytes
// would be served line by line.
extern "C" __global__ void __launch_bounds__(1024)
    mark_numbers_by_block(ARRAY(const Key, numbers), Word base, ARRAY(unsigned char, present)) {
    extern __shared__ __align__(16) unsigned table[];
    unsigned outside = unsigned(present_size - 1);
    Key first = Key(base);
    for (unsigned word = threadIdx.x; word <= outside / 32; word += blockDim.x)
        table[word] = 0;
    __syncthreads();
    each_number(numbers, numbers_size, [&](Key number) {
        Key distance = number - first;
        unsigned offset = distance < outside ? unsigned(distance) : outside, bit = 1u << offset % 32;
        unsigned *word = table + offset / 32;
        if (!(*word & bit))
            atomicOr(word, bit);
    });
    __syncthreads();
    for (unsigned offset = threadIdx.x; offset <= outside; offset += blockDim.x)
        if (table[offset / 32] >> offset % 32 & 1)
            present[offset] = 1;
}
