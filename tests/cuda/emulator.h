// Runs CUDA C++ kernels on a CPU: blocks one after the other, the threads of a block as threads, with real atomics.
// Only what the kernels here use: one dimension, one dynamic shared array `table`, whole warps.

#pragma once
#include <algorithm>
#include <barrier>
#include <bit>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__
#define __launch_bounds__(threads)

using std::max;
using std::min;

struct Place {
    unsigned x;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};

constexpr unsigned WARP = 32, TABLE_WORDS = 1 << 16, POISON = 0xDEADBEEF;

Place gridDim, blockDim;
thread_local Place blockIdx, threadIdx;
alignas(16) unsigned table[TABLE_WORDS];

struct Warp {
    std::barrier<> barrier{WARP};
    unsigned long long values[WARP];
};
std::unique_ptr<std::barrier<>> whole_block;
std::vector<std::unique_ptr<Warp>> warps;

inline void __syncthreads() { whole_block->arrive_and_wait(); }

inline unsigned __match_any_sync(unsigned mask, unsigned long long value) {
    Warp &warp = *warps.at(threadIdx.x / WARP);
    unsigned alike = 0;
    warp.values[threadIdx.x % WARP] = value;
    warp.barrier.arrive_and_wait();
    for (unsigned lane = 0; lane < WARP; ++lane)
        alike |= unsigned(warp.values[lane] == value) << lane;
    warp.barrier.arrive_and_wait();
    return alike & mask;
}

template <typename Number> Number atomicAdd(Number *at, Number value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

inline int __clz(int value) { return std::countl_zero(unsigned(value)); }
inline int __ffs(unsigned value) { return __builtin_ffs(int(value)); }
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline unsigned __umulhi(unsigned left, unsigned right) {
    return unsigned((unsigned long long)left * right >> 32);
}
inline unsigned long long __umul64hi(unsigned long long left, unsigned long long right) {
    return (unsigned long long)((unsigned __int128)left * right >> 64);
}

template <typename Argument> Argument argument(const unsigned long long *word) {
    static_assert(sizeof(Argument) == sizeof *word, "every argument of a kernel has 64 bits");
    Argument found;
    std::memcpy(&found, word, sizeof found);
    return found;
}

template <typename... Arguments, std::size_t... places>
void call(void (*kernel)(Arguments...), const unsigned long long *words, std::index_sequence<places...>) {
    kernel(argument<Arguments>(words + places)...);
}

// Gives 0, or -1 for another number of arguments, -2 where the kernel wrote beyond its shared memory.
template <typename... Arguments>
int run(void (*kernel)(Arguments...), unsigned blocks, unsigned threads, unsigned shared,
        const unsigned long long *words, unsigned n_words) {
    if (n_words != sizeof...(Arguments))
        return -1;
    gridDim.x = blocks, blockDim.x = threads;
    whole_block = std::make_unique<std::barrier<>>(threads);
    warps.clear();
    for (unsigned first = 0; first < threads; first += WARP)
        warps.push_back(std::make_unique<Warp>());
    bool inside = true;
    std::vector<std::thread> workers;
    for (unsigned thread = 0; thread < threads; ++thread)
        workers.emplace_back([=, &inside] {
            threadIdx.x = thread;
            for (unsigned block = 0; block < blocks; ++block) {
                blockIdx.x = block;
                // Shared memory begins as anything.
                if (thread == 0)
                    std::fill(table, table + TABLE_WORDS, POISON);
                __syncthreads();
                call(kernel, words, std::index_sequence_for<Arguments...>());
                __syncthreads();
                if (thread == 0)
                    for (unsigned word = (shared + 3) / 4; word < TABLE_WORDS; ++word)
                        inside = inside && table[word] == POISON;
            }
        });
    for (std::thread &worker : workers)
        worker.join();
    return inside ? 0 : -2;
}

#define EMULATE(kernel)                                                                                               \
    extern "C" int emulate_##kernel(unsigned blocks, unsigned threads, unsigned shared,                               \
                                    const unsigned long long *words, unsigned n_words) {                              \
        return run(kernel, blocks, threads, shared, words, n_words);                                                  \
    }
