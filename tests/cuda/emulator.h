// Runs CUDA C++ kernels on a CPU: blocks one after the other, the threads of a block in turns.  A thread goes on until
// it waits for others or ends; at some atomics, too, so that what is not atomic is seen.  Turns go up and down the
// block alternately: what lacks a barrier reads, of one neighbour or the other, what is not yet written.
// Only what the kernels here use: one dimension, one dynamic shared array `table`, whole warps.

#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __shared__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __align__(bytes)

using std::max;
using std::min;

struct Index {
    unsigned x;
};
#define VECTOR(name, type, bytes, ...)                                                                                \
    struct alignas(bytes) name {                                                                                      \
        type __VA_ARGS__;                                                                                             \
    };
VECTOR(uchar2, unsigned char, 2, x, y)
VECTOR(uchar4, unsigned char, 4, x, y, z, w)
VECTOR(ushort2, unsigned short, 4, x, y)
VECTOR(ushort4, unsigned short, 8, x, y, z, w)
VECTOR(int2, int, 8, x, y)
VECTOR(int4, int, 16, x, y, z, w)
VECTOR(uint2, unsigned, 8, x, y)
VECTOR(uint4, unsigned, 16, x, y, z, w)
VECTOR(float2, float, 8, x, y)
VECTOR(float4, float, 16, x, y, z, w)
VECTOR(double2, double, 16, x, y)
VECTOR(longlong2, long long, 16, x, y)
VECTOR(ulonglong2, unsigned long long, 16, x, y)

constexpr unsigned WARP = 32, TABLE_WORDS = 1 << 16, POISON = 0xDEADBEEF, STACK_BYTES = 1 << 17;
// One atomic in so many lets the other threads go on.
constexpr unsigned ATOMICS_A_TURN = 7;
enum { ENDED, ARGUMENTS = -1, SHARED_MEMORY = -2, BARRIER = -3 };

Index gridDim, blockDim, blockIdx, threadIdx;
alignas(16) unsigned table[TABLE_WORDS];

// Threads of the block that runs.
enum State { READY, AT_BLOCK, AT_WARP, DONE };
struct Thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK_BYTES]};
    State state = DONE;
};
std::vector<std::unique_ptr<Thread>> threads_of_block;
std::vector<unsigned long long> exchanged;
ucontext_t scheduler;
std::function<void()> kernel_of_block;
unsigned atomics;
std::mutex one_launch;

inline void give_way(State state) {
    Thread &thread = *threads_of_block[threadIdx.x];
    thread.state = state;
    swapcontext(&thread.context, &scheduler);
}

inline void run_thread() {
    kernel_of_block();
    threads_of_block[threadIdx.x]->state = DONE;
}

inline void start(unsigned number) {
    while (threads_of_block.size() <= number)
        threads_of_block.push_back(std::make_unique<Thread>());
    Thread &thread = *threads_of_block[number];
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = STACK_BYTES;
    thread.context.uc_link = &scheduler;
    makecontext(&thread.context, run_thread, 0);
    thread.state = READY;
}

// Lets those go on who have waited for one another; says whether there are any.
inline bool release(unsigned first, unsigned end, State waiting) {
    for (unsigned number = first; number < end; ++number)
        if (threads_of_block[number]->state != waiting)
            return false;
    for (unsigned number = first; number < end; ++number)
        threads_of_block[number]->state = READY;
    return true;
}

// Runs a block to its end; gives BARRIER where some threads wait for others that have ended or wait elsewhere.
inline int run_block(unsigned size) {
    for (unsigned number = 0; number < size; ++number)
        start(number);
    // The first thread often prepares what the others use: in every other block it is the last one.
    for (bool down = blockIdx.x & 1;; down = !down) {
        for (unsigned turn = 0; turn < size; ++turn) {
            threadIdx.x = down ? size - 1 - turn : turn;
            Thread &thread = *threads_of_block[threadIdx.x];
            if (thread.state == READY)
                swapcontext(&scheduler, &thread.context);
        }
        bool ready = release(0, size, AT_BLOCK);
        unsigned done = 0;
        for (unsigned first = 0; first < size; first += WARP)
            ready |= release(first, min(first + WARP, size), AT_WARP);
        for (unsigned number = 0; number < size; ++number) {
            done += threads_of_block[number]->state == DONE;
            ready |= threads_of_block[number]->state == READY;
        }
        if (done == size)
            return ENDED;
        if (!ready)
            return BARRIER;
    }
}

inline void __syncthreads() { give_way(AT_BLOCK); }
inline void __syncwarp(unsigned = ~0u) { give_way(AT_WARP); }
inline void __threadfence() {}
inline void __threadfence_block() {}

// Every lane of a warp gives a word and gets those of all.
template <typename Value, typename Use> auto of_warp(Value value, Use use) {
    static_assert(sizeof(Value) <= 8);
    unsigned long long word = 0;
    std::memcpy(&word, &value, sizeof value);
    exchanged[threadIdx.x] = word;
    give_way(AT_WARP);
    auto found = use(exchanged.data() + threadIdx.x / WARP * WARP);
    give_way(AT_WARP);
    return found;
}
template <typename Value> Value value_of(unsigned long long word) {
    Value value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}
template <typename Value> unsigned __match_any_sync(unsigned mask, Value value) {
    return of_warp(value, [=](const unsigned long long *words) {
        unsigned alike = 0;
        for (unsigned lane = 0; lane < WARP; ++lane)
            alike |= unsigned(words[lane] == words[threadIdx.x % WARP]) << lane;
        return alike & mask;
    });
}
inline unsigned __ballot_sync(unsigned mask, bool vote) {
    return of_warp(vote, [=](const unsigned long long *words) {
        unsigned votes = 0;
        for (unsigned lane = 0; lane < WARP; ++lane)
            votes |= unsigned(words[lane] != 0) << lane;
        return votes & mask;
    });
}
inline bool __any_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) != 0; }
inline bool __all_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) == mask; }
template <typename Value> Value from_lane(Value value, unsigned lane) {
    return of_warp(value, [=](const unsigned long long *words) { return value_of<Value>(words[lane]); });
}
template <typename Value> Value __shfl_sync(unsigned, Value value, unsigned lane) {
    return from_lane(value, lane % WARP);
}
template <typename Value> Value __shfl_up_sync(unsigned, Value value, unsigned step) {
    unsigned lane = threadIdx.x % WARP;
    return from_lane(value, lane < step ? lane : lane - step);
}
template <typename Value> Value __shfl_down_sync(unsigned, Value value, unsigned step) {
    unsigned lane = threadIdx.x % WARP;
    return from_lane(value, lane + step < WARP ? lane + step : lane);
}
template <typename Value> Value __shfl_xor_sync(unsigned, Value value, unsigned mask) {
    return from_lane(value, threadIdx.x % WARP ^ mask);
}

template <typename Number, typename Change> Number atomically(Number *at, Change change) {
    if (++atomics % ATOMICS_A_TURN == 0)
        give_way(READY);
    Number before = *at;
    *at = change(before);
    return before;
}
template <typename Number> Number atomicAdd(Number *at, Number value) {
    return atomically(at, [=](Number before) { return Number(before + value); });
}
template <typename Number> Number atomicSub(Number *at, Number value) {
    return atomically(at, [=](Number before) { return Number(before - value); });
}
template <typename Number> Number atomicExch(Number *at, Number value) {
    return atomically(at, [=](Number) { return value; });
}
template <typename Number> Number atomicOr(Number *at, Number value) {
    return atomically(at, [=](Number before) { return Number(before | value); });
}
template <typename Number> Number atomicAnd(Number *at, Number value) {
    return atomically(at, [=](Number before) { return Number(before & value); });
}
template <typename Number> Number atomicMax(Number *at, Number value) {
    return atomically(at, [=](Number before) { return max(before, value); });
}
template <typename Number> Number atomicMin(Number *at, Number value) {
    return atomically(at, [=](Number before) { return min(before, value); });
}
template <typename Number> Number atomicCAS(Number *at, Number expected, Number value) {
    return atomically(at, [=](Number before) { return before == expected ? value : before; });
}

inline int __clz(int value) { return std::countl_zero(unsigned(value)); }
inline int __clzll(long long value) { return std::countl_zero((unsigned long long)(value)); }
inline int __ffs(unsigned value) { return __builtin_ffs(int(value)); }
inline int __ffsll(unsigned long long value) { return __builtin_ffsll((long long)(value)); }
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
inline unsigned __umulhi(unsigned left, unsigned right) {
    return unsigned((unsigned long long)left * right >> 32);
}
inline unsigned long long __umul64hi(unsigned long long left, unsigned long long right) {
    return (unsigned long long)((unsigned __int128)left * right >> 64);
}

// Built without contraction, as the kernels are: every product and sum is rounded.
inline double __dmul_rn(double left, double right) { return left * right; }
inline double __dadd_rn(double left, double right) { return left + right; }
inline double __dsub_rn(double left, double right) { return left - right; }
inline double __ddiv_rn(double left, double right) { return left / right; }
inline double __drcp_rn(double value) { return 1 / value; }
inline double __dsqrt_rn(double value) { return std::sqrt(value); }
inline double __fma_rn(double left, double right, double more) { return std::fma(left, right, more); }
// CuPy has conversions take the smallest floats for zero.
inline float __double2float_rn(double value) {
    float found = float(value);
    return std::fabs(found) < 0x1p-126f ? std::copysign(0.0f, found) : found;
}
template <typename To, typename From> To same_bits(From value) { return std::bit_cast<To>(value); }
inline long long __double_as_longlong(double value) { return same_bits<long long>(value); }
inline double __longlong_as_double(long long value) { return same_bits<double>(value); }
inline unsigned __float_as_uint(float value) { return same_bits<unsigned>(value); }
inline float __uint_as_float(unsigned value) { return same_bits<float>(value); }
inline int __float_as_int(float value) { return same_bits<int>(value); }
inline float __int_as_float(int value) { return same_bits<float>(value); }

template <typename Value> Value __ldg(const Value *at) { return *at; }
template <typename Value> Value __ldcs(const Value *at) { return *at; }
template <typename Value> Value __ldcg(const Value *at) { return *at; }
template <typename Value> void __stcs(Value *at, Value value) { *at = value; }
template <typename Value> void __stcg(Value *at, Value value) { *at = value; }

template <typename Argument> Argument argument(const unsigned long long *word) {
    static_assert(sizeof(Argument) == sizeof *word, "every argument of a kernel has 64 bits");
    Argument found;
    std::memcpy(&found, word, sizeof found);
    return found;
}

template <typename... Arguments, std::size_t... positions>
void call(void (*kernel)(Arguments...), const unsigned long long *words, std::index_sequence<positions...>) {
    kernel(argument<Arguments>(words + positions)...);
}

// Gives 0, or what was wrong: another number of arguments, writes beyond the shared memory, a barrier that not all reach.
template <typename... Arguments>
int run(void (*kernel)(Arguments...), unsigned blocks, unsigned threads, unsigned shared,
        const unsigned long long *words, unsigned n_words) {
    if (n_words != sizeof...(Arguments))
        return ARGUMENTS;
    std::lock_guard<std::mutex> guard(one_launch);
    gridDim.x = blocks, blockDim.x = threads;
    exchanged.assign(threads, 0);
    kernel_of_block = [=] { call(kernel, words, std::index_sequence_for<Arguments...>()); };
    int wrong = ENDED;
    for (blockIdx.x = 0; blockIdx.x < blocks && wrong == ENDED; ++blockIdx.x) {
        // Shared memory begins as anything.
        std::fill(table, table + TABLE_WORDS, POISON);
        wrong = run_block(threads);
        for (unsigned word = (shared + 3) / 4; word < TABLE_WORDS && wrong == ENDED; ++word)
            wrong = table[word] == POISON ? ENDED : SHARED_MEMORY;
    }
    return wrong;
}

#define EMULATE(kernel)                                                                                               \
    extern "C" int emulate_##kernel(unsigned blocks, unsigned threads, unsigned shared,                               \
                                    const unsigned long long *words, unsigned n_words) {                              \
        return run(kernel, blocks, threads, shared, words, n_words);                                                  \
    }
