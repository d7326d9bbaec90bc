// Exact sums of a number a row, and of its square, in windows of 63 bits.
//
// A number that is an integer of 63 bits, with its sign, times 2^low is added as that integer plus 2^62.  A cell has two
// words of 32 bits for the sum in shared memory, and one that counts its rows and what is carried out of the two: so
// whatever the order of additions no carry is lost.  A square has four words, and one for their carries.  Numbers outside
// of the window are kept by their warp, which adds 32 of them at a time digit by digit.
// The window is a guess from a sample of the rows: no sum depends on it.

#include "tiles.cuh"
#include "digits.cuh"

// Compiled for numbers of a type, with their squares or without.
#ifndef VALUE
#define VALUE double
#define SQUARES 1
#endif

// Words of a cell, and of its square.  TOP is rows * 2^16 + what is carried out of HIGHER.
enum { LOWER, HIGHER, TOP, SUM_WORDS, SQUARE_WORDS = SQUARES ? 5 : 0 };
enum { THREADS = 640, LANES = 32, SAMPLED = 256 };
constexpr Word BIAS = Word(1) << 62;
// Numbers are given to the window times 2^-FARTHER.
enum { FARTHER = sizeof(VALUE) == 4 ? 1023 - 127 : 0 };

// Rows of a warp that lie outside of the window.
struct Kept {
    Word bits[LANES];
    unsigned slots[LANES];
};

extern __shared__ __align__(16) unsigned table[];

// What a block has in shared memory between how it walks and what its warps keep.  Its cells follow.
struct Shared {
    Long low;
    double scale, unit;
    unsigned best, unused;

    // Each thread's sample lies where its warp will keep rows.
    __device__ int *sample() { return reinterpret_cast<int *>(this + 1); }
    __device__ Kept &kept(unsigned warp) { return reinterpret_cast<Kept *>(this + 1)[warp]; }
    // Words of the table before the cells.
    __device__ static unsigned head() {
        return PLAN_WORDS + (sizeof(Shared) + blockDim.x / LANES * sizeof(Kept)) / sizeof *table;
    }
};

__device__ inline Shared &shared_of_block() { return *reinterpret_cast<Shared *>(table + PLAN_WORDS); }

// Keep the compiler from computing a number anew wherever it is used.
__device__ inline unsigned pinned(unsigned number) {
    asm volatile("" : "+r"(number));
    return number;
}

// The cells that a block adds to, each thread to one copy of them; their words lie side by side, an odd number apart.
struct Block {
    // Where the words of slot 0 begin.
    unsigned sums, squares;
    const Long *plan;
    Long *cells;
    unsigned in_line, groups, own;

    __device__ Long *cell(unsigned slot) const {
        unsigned rank = slot / in_line, line = rank * groups + own;
        return cells + (Long(line) * in_line + (slot - rank * in_line)) * plan[WIDTH];
    }
};

__device__ inline void load_values(const float *from, int n, float (&into)[4]) { load<float, float4>(from, n, into); }

__device__ inline void load_values(const Long *from, int n, Long (&into)[4]) {
    Word words[4];
    load(reinterpret_cast<const Word *>(from), n, words);
#pragma unroll
    for (int k = 0; k < 4; ++k)
        into[k] = Long(words[k]);
}

__device__ inline void load_values(const double *from, int n, double (&into)[4]) {
    Word words[4];
    load(reinterpret_cast<const Word *>(from), n, words);
#pragma unroll
    for (int k = 0; k < 4; ++k)
        into[k] = __longlong_as_double(Long(words[k]));
}

// Raw words as digits.cuh reads them.
__device__ inline Word raw(float value) { return widened(__float_as_uint(value)); }
__device__ inline Word raw(double value) { return Word(__double_as_longlong(value)); }
__device__ inline Word raw(Long value) { return Word(value); }

// A number as an integer of the window.
struct Fixed {
    Long number;
    Word size;
    bool inside;
};

__device__ inline Fixed fixed(double value, double scale, double unit) {
    double scaled = __dmul_rn(value, scale);
    Long number = Long(scaled);
    // What scaling took from a tiny number, or truncation from any, is missing in the product.
    bool inside = fabs(scaled) < 0x1p62 && __dmul_rn(double(number), unit) == value;
    return Fixed{number, Word(Long(fabs(scaled))), inside};
}

// The bits of a float in their fields of a double, the smallest ones, too: value * 2^-896.  CuPy has conversions take
// these for zero (-ftz=true).
__device__ inline Fixed fixed(float value, double scale, double unit) {
    int word = __float_as_int(value);
    Word bits = Word(unsigned(word >> 3 & 0x8FFFFFFF)) << 32 | unsigned(word) << 29;
    return fixed(__longlong_as_double(Long(bits)), scale, unit);
}

__device__ inline Fixed fixed(Long value, double, double) {
    return Fixed{value, value < 0 ? 0 - Word(value) : Word(value), !((Word(value) + BIAS) >> 63)};
}

// First and last window that hold a number, by their lowest place; of one that is not normal, no window does.
__device__ inline void windows_of(Word bits, int &first, int &last) {
    Number number = parts(bits, REAL);
    bool normal = number.exponent > -1074 && number.exponent < 972;
    first = normal ? int(number.exponent) + 53 - 62 : 1;
    last = normal ? int(number.exponent) + __ffsll(Long(number.first)) - 1 : 0;
}

// Choose the window that holds most of a sample of rows, and let the bits to spare lie on both sides of them.
template <typename Value>
__device__ inline void choose_window(Shared &shared, const Value *values, Long n_rows, const Long *plan) {
    unsigned thread = threadIdx.x, n_sampled = min(blockDim.x, unsigned(SAMPLED));
    int *sample = shared.sample();
    int first = 1, last = 0, from = 0;
    if (thread == 0) {
        shared.best = 0;
        // Of a sample that is zero the window begins with the measure: the bias has no bits below either.
        shared.low = int(min(max(32 * plan[LINE + LOW], Long(FARTHER - 1022)), Long(1022)));
    }
    if (thread < n_sampled) {
        windows_of(raw(values[thread * n_rows / n_sampled]), first, last);
        sample[2 * thread] = first, sample[2 * thread + 1] = last;
    }
    __syncthreads();
    if (first <= last) {
        unsigned held = 0;
        from = first;
        for (unsigned other = 0; other < n_sampled; ++other)
            if (sample[2 * other] <= last && last <= sample[2 * other + 1])
                ++held, from = max(from, sample[2 * other]);
        atomicMax(&shared.best, held * SAMPLED + thread);
    }
    __syncthreads();
    if (shared.best && thread == shared.best % SAMPLED)
        // Both factors are to be normal numbers.
        shared.low = min(max((from + last) >> 1, FARTHER - 1022), 1022);
    __syncthreads();
}

// Add a row outside of the window, digit by digit.
__device__ inline void add_by_digits(Word bits, const Long *plan, Long *cell) {
    add_in_memory(Factors{bits, 0, int(plan[TARGET_KIND]), ABSENT}, plan, cell);
}

// Add the rows that a warp keeps.
__device__ inline void add_kept(const Block &block, unsigned n_kept) {
    const Kept &kept = shared_of_block().kept(threadIdx.x / LANES);
    unsigned lane = threadIdx.x % LANES;
    __syncwarp();
    if (lane < n_kept)
        add_by_digits(kept.bits[lane], block.plan, block.cell(kept.slots[lane]));
    __syncwarp();
}

// Keep a row of each lane that has one outside of the window.
__device__ inline void keep(const Block &block, unsigned &n_kept, bool outside, Word bits, unsigned slot) {
    Kept &kept = shared_of_block().kept(threadIdx.x / LANES);
    unsigned lanes = __ballot_sync(~0u, outside), before = lanes & ((1u << threadIdx.x % LANES) - 1);
    if (n_kept + __popc(lanes) > LANES) {
        add_kept(block, n_kept);
        n_kept = 0;
    }
    unsigned at = n_kept + __popc(before);
    if (outside)
        kept.bits[at] = bits, kept.slots[at] = slot;
    n_kept += __popc(lanes);
}

// Add a number of 192 bits in two's complement, times 2^places, to the digits of a measure.
__device__ inline void add_digits(Word first, Word second, Word third, Long places, const Long *measure,
                                  Long *digits) {
    Long sign = Long(third) >> 63;
    if (sign) {
        first = 0 - first, second = ~second + !first, third = ~third + !(first | second);
    }
    unsigned ahead = unsigned(places & 31);
    if (ahead) {
        third = third << ahead | second >> (64 - ahead);
        second = second << ahead | first >> (64 - ahead);
        first <<= ahead;
    }
    Long width = measure[MEASURE_WIDTH];
    // Digits below and above the window of the measure are zero, or sum to zero.
    for (Long column = places >> 5; column < width && (first | second | third); ++column) {
        // The highest digit keeps all that is above it.
        Word digit = column + 1 < width ? first & 0xFFFFFFFF : first;
        if (digit && column >= 0)
            add_to(digits + column, apply_sign(digit, sign));
        if (column + 1 >= width)
            break;
        first = first >> 32 | second << 32, second = second >> 32 | third << 32, third >>= 32;
    }
}

// Move rows and the sum of a slot to its cell: what two words hold, what was carried out of them, less the bias.
__device__ inline void move_sum(const Block &block, Word lower, unsigned top, Long *cell) {
    Word count = top >> 16, first = lower - (count << 62), second = (top & 0xFFFF) - (count >> 2) - (first > lower);
    const Long *measure = block.plan + LINE;
    if (count)
        add_to(cell, count);
    add_digits(first, second, Word(Long(second) >> 63), shared_of_block().low - 32 * measure[LOW], measure, cell + 1);
}

// Add to a word; gives what is carried, 0 or 1: where adding the carry to the addend wraps, the word cannot.
__device__ inline unsigned add_word(unsigned *word, unsigned addend, unsigned carry) {
    unsigned more = addend + carry, old = atomicAdd(word, more);
    return unsigned(more < carry) | unsigned(old + more < more);
}

// Add numbers to their slots word by word, so that several atomics are under way at once: of those that are not to be
// added, zeros, since branches would have each atomic wait for the last.  Says whether a top word is to be taken.
template <int n>
__device__ inline bool add_sums(const Block &block, const unsigned (&slot)[n], const bool (&added)[n],
                                const Fixed (&number)[n]) {
    unsigned carry[n], *sum[n], full = 0;
#pragma unroll
    for (int k = 0; k < n; ++k) {
        sum[k] = table + pinned(block.sums + SUM_WORDS * slot[k]);
        carry[k] = add_word(sum[k] + LOWER, added[k] ? unsigned(number[k].number) : 0, 0);
    }
#pragma unroll
    for (int k = 0; k < n; ++k) {
        Word biased = Word(number[k].number) + BIAS;
        carry[k] = add_word(sum[k] + HIGHER, added[k] ? unsigned(biased >> 32) : 0, carry[k]);
    }
#pragma unroll
    for (int k = 0; k < n; ++k)
        full |= atomicAdd(sum[k] + TOP, (added[k] ? 0x10000u : 0) + carry[k]);
    return full >> 30;
}

__device__ inline void add_square(unsigned *words, Word size) {
    Word lower = size * size, higher = __umul64hi(size, size);
    unsigned carry = add_word(words, unsigned(lower), 0);
    carry = add_word(words + 1, unsigned(lower >> 32), carry);
    carry = add_word(words + 2, unsigned(higher), carry);
    if (add_word(words + 3, unsigned(higher >> 32), carry))
        atomicAdd(words + 4, 1u);
}

// Bring the next slot to the front.
template <int n> __device__ inline void turn(unsigned (&slot)[n]) {
    unsigned first = slot[0];
#pragma unroll
    for (int k = 1; k < n; ++k)
        slot[k - 1] = slot[k];
    slot[n - 1] = first;
}

// Take the top words of some slots.  A thread looks at those that it added to before it adds its next rows, four at most:
// so one gets at most 2^14 rows, and four of each thread, before somebody takes it.  Both halves hold that.
template <int n> __device__ inline void take_tops(const Block &block, unsigned (&slot)[n]) {
    static_assert((1 << 14) + 4 * THREADS < 1 << 15, "a top word overflows");
#pragma unroll 1
    for (int row = 0; row < n; ++row) {
        move_sum(block, 0, atomicExch(table + block.sums + SUM_WORDS * slot[0] + TOP, 0u), block.cell(slot[0]));
        turn(slot);
    }
}

// Add neighbouring rows, those that are here.  All lanes of a warp come here at once.
template <int n, typename Value>
__device__ inline void add_rows(const Block &block, unsigned &n_kept, unsigned (&slot)[n], const bool (&here)[n],
                                const Value (&value)[n], const Value *first) {
    Fixed number[n];
    bool added[n];
    unsigned outside = 0;
    // Read each time: registers are few.
    double scale = shared_of_block().scale, unit = shared_of_block().unit;
#pragma unroll
    for (int k = 0; k < n; ++k) {
        number[k] = fixed(value[k], scale, unit);
        added[k] = here[k] && number[k].inside;
        outside |= unsigned(here[k] && !number[k].inside) << k;
    }
    bool full = add_sums(block, slot, added, number);
#pragma unroll
    for (int k = 0; SQUARES && k < n; ++k)
        add_square(table + pinned(block.squares + SQUARE_WORDS * slot[k]), added[k] ? number[k].size : 0);
    if (full)
        take_tops(block, slot);
    // Rows come to the front one by one: this code is long, and stands here once.
    if (__any_sync(~0u, outside)) {
#pragma unroll 1
        for (int row = 0; row < n; ++row, outside >>= 1) {
            keep(block, n_kept, outside & 1, outside & 1 ? raw(first[row]) : 0, slot[0]);
            turn(slot);
        }
    }
}

// Move what a slot holds to the cell.
__device__ inline void move_slot(const Block &block, unsigned slot, Long *cell) {
    const unsigned *sum = table + block.sums + SUM_WORDS * slot;
    const unsigned *square = table + block.squares + SQUARE_WORDS * slot;
    move_sum(block, sum[LOWER] | Word(sum[HIGHER]) << 32, sum[TOP], cell);
    if (SQUARES) {
        const Long *measure = block.plan + 2 * LINE;
        add_digits(square[0] | Word(square[1]) << 32, square[2] | Word(square[3]) << 32, square[4],
                   2 * shared_of_block().low - 32 * measure[LOW], measure, cell + 1 + block.plan[LINE + MEASURE_WIDTH]);
    }
}

// Clear the cells of a block, `copies` of each slot, and choose the window of its numbers.
template <typename Value>
__device__ inline Block begin_block(const Value *values, Long n_values, const Long *plan, Long *cells, Long in_line,
                                    Long groups, Long slots, Long copies) {
    Shared &shared = shared_of_block();
    unsigned head = Shared::head(), n_slots = unsigned(slots * copies);
    if (plan[TARGET_KIND] == REAL && !plan[LINE + IS_WHOLE])
        choose_window(shared, values, n_values, plan);
    else if (threadIdx.x == 0)
        shared.low = 0;
    if (threadIdx.x == 0) {
        shared.scale = __longlong_as_double((1023 + FARTHER - shared.low) << 52);
        shared.unit = __longlong_as_double((1023 - FARTHER + shared.low) << 52);
    }
    for (unsigned word = threadIdx.x; word < (SUM_WORDS + SQUARE_WORDS) * n_slots; word += blockDim.x)
        table[head + word] = 0;
    __syncthreads();
    unsigned first_slot = (threadIdx.x & unsigned(copies - 1)) * unsigned(slots);
    return Block{pinned(head + SUM_WORDS * first_slot),
                 pinned(head + SUM_WORDS * n_slots + SQUARE_WORDS * first_slot),
                 plan,
                 cells,
                 unsigned(in_line),
                 unsigned(groups),
                 blockIdx.x % unsigned(groups)};
}

// Move all that a block holds to the cells.
__device__ inline void end_block(Block block, unsigned n_kept, Long slots, Long copies) {
    add_kept(block, n_kept);
    __syncthreads();
    for (unsigned copy = 0; copy < unsigned(copies); ++copy) {
        block.sums = Shared::head() + SUM_WORDS * copy * unsigned(slots);
        block.squares = Shared::head() + (SUM_WORDS * unsigned(copies) + SQUARE_WORDS * copy) * unsigned(slots);
        for (unsigned slot = threadIdx.x; slot < unsigned(slots); slot += blockDim.x)
            move_slot(block, slot, block.cell(slot));
    }
}
