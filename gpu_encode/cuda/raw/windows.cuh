// Exact sums of a number of each row, and of its square, in windows of 63 bits (for floats 53, or 43 with squares).
//
// A number that is an integer of so many bits, with its sign, times 2^low is added as this integer plus 2^BITS.  In
// shared memory, a cell has two words of 32 bits for the sum, four for the square, and a top that counts its rows and
// the carries of sums; so no carry is lost, whatever the order of additions.  Squares seldom carry, nor do sums of
// floats: these carries go to memory at once.  Squares of floats have three words, and the tops of two cells share a
// word.  Numbers outside of the window are kept by their warp, which adds 32 of them at a time digit by digit.
// The window is guessed from a sample of the rows; no sum depends on it.

#include "tiles.cuh"
#include "digits.cuh"

// Compiled for numbers of a type, VALUE, with their SQUARES or without.
enum { NARROW = sizeof(VALUE) == 4, BITS = !NARROW ? 62 : SQUARES ? 42 : 52 };
// Words of a cell.  The top is one more word, or half a word after the words of two cells.
enum { LOWER, HIGHER, SQUARE, SQUARE_WORDS = !SQUARES ? 0 : NARROW ? 3 : 4, WORDS_OF_CELL = SQUARE + SQUARE_WORDS };
enum { THREADS = 640, LANES = 32, SAMPLED = 256 };

// A top: the number of rows, in the bits above the carries of sums; for floats, only the number of rows.  A thread
// checks the tops to which it has added before it adds its next rows, at most four.  So a cell gets at most ENOUGH
// rows, and four from each thread, before some thread takes it.  A row carries at most once.
constexpr unsigned TOP_BITS = NARROW ? 16 : 32, ROWS_AT = NARROW ? 0 : 16, FULL_AT = NARROW ? 15 : 30;
constexpr unsigned ENOUGH = 1u << (FULL_AT - ROWS_AT), MOST = ENOUGH + 4 * THREADS;
constexpr unsigned FULL = NARROW ? 0x10001u << FULL_AT : ~0u << FULL_AT;
static_assert(MOST < 1u << (TOP_BITS - ROWS_AT), "rows overflow");
static_assert(NARROW || MOST < 1u << ROWS_AT, "carries overflow");
static_assert(!NARROW || FULL_AT + 1 == TOP_BITS, "all tops from ENOUGH rows on are full");

constexpr Word BIAS = Word(1) << BITS;
// Numbers are given to the window times 2^-FARTHER.
enum { FARTHER = NARROW ? 1023 - 127 : 0 };

// The rows of a warp that are outside of the window.
struct Kept {
    Word bits[LANES];
    unsigned slots[LANES];
};

extern __shared__ __align__(16) unsigned table[];

// The shared memory of a block between the data of its walk and that of its warps.  Its cells follow.
struct Shared {
    Long low;
    double scale, unit;
    const Long *plan;
    Long *cells;
    // The block has every n-th line, from its own number on; the last two lines come first.
    unsigned n_lines, in_line, groups, own, best, unused;

    // Each thread's sample is stored where its warp will keep rows.
    __device__ int *sample() { return reinterpret_cast<int *>(this + 1); }
    __device__ Kept &kept(unsigned warp) { return reinterpret_cast<Kept *>(this + 1)[warp]; }
    // Words of the table before the cells.
    __device__ static unsigned head() {
        return PLAN_WORDS + (sizeof(Shared) + blockDim.x / LANES * sizeof(Kept)) / sizeof *table;
    }
    __device__ Long *cell(unsigned slot) const {
        unsigned rank = slot / in_line, number = rank * groups + own, line = number < 2 ? number + n_lines : number;
        return cells + (Long(line - 2) * in_line + (slot - rank * in_line)) * plan[WIDTH];
    }
};

__device__ inline Shared &shared_of_block() { return *reinterpret_cast<Shared *>(table + PLAN_WORDS); }

// Prevent the compiler from computing a number again wherever it is used.
__device__ inline unsigned pinned(unsigned number) {
    asm volatile("" : "+r"(number));
    return number;
}

__device__ inline unsigned *word_at(unsigned byte) {
    return reinterpret_cast<unsigned *>(reinterpret_cast<char *>(table) + pinned(byte));
}

// The positions of a slot's words and top.  `begin`: the byte of the table at which slot 0 of a thread's own copy
// begins.
struct Cell {
    unsigned *words, *top, shift;

    __device__ Cell(unsigned begin, unsigned slot) {
        unsigned pair = slot >> 1;
        if (NARROW) {
            words = word_at(begin + 4 * WORDS_OF_CELL * slot + 4 * pair);
            top = word_at(begin + 4 * (2 * WORDS_OF_CELL + 1) * pair + 8 * WORDS_OF_CELL);
            shift = TOP_BITS * (slot & 1);
        } else {
            words = word_at(begin + 4 * (WORDS_OF_CELL + 1) * slot);
            top = words + WORDS_OF_CELL;
            shift = 0;
        }
    }

    // Take the top.
    __device__ unsigned taken() const {
        return NARROW ? atomicAnd(top, ~(0xFFFFu << shift)) >> shift & 0xFFFF : atomicExch(top, 0u);
    }
};

// Raw words, in the form that digits.cuh reads.
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
    // If scaling changed a tiny number, or truncation changed any number, the product differs.
    bool inside = fabs(scaled) < double(BIAS) && __dmul_rn(double(number), unit) == value;
    return Fixed{number, Word(Long(fabs(scaled))), inside};
}

// The bits of a float, in the fields of a double, also for the smallest floats: value * 2^-896.  In CuPy's kernels,
// conversions would turn these into zero (-ftz=true).
__device__ inline Fixed fixed(float value, double scale, double unit) {
    int word = __float_as_int(value);
    Word bits = Word(unsigned(word >> 3 & 0x8FFFFFFF)) << 32 | unsigned(word) << 29;
    return fixed(__longlong_as_double(Long(bits)), scale, unit);
}

__device__ inline Fixed fixed(Long value, double, double) {
    return Fixed{value, value < 0 ? 0 - Word(value) : Word(value), !((Word(value) + BIAS) >> 63)};
}

// The first and the last window that hold a number, by their lowest position; a number that is not normal has none.
__device__ inline void windows_of(Word bits, int &first, int &last) {
    Number number = parts(bits, REAL);
    bool normal = number.exponent > -1074 && number.exponent < 972;
    first = normal ? int(number.exponent) + 53 - BITS : 1;
    last = normal ? int(number.exponent) + __ffsll(Long(number.first)) - 1 : 0;
}

// Choose the window that holds most rows of a sample, with the spare bits divided between both sides.
template <typename Value>
__device__ inline void choose_window(Shared &shared, const Value *values, Long n_rows, const Long *plan) {
    unsigned thread = threadIdx.x, n_sampled = min(blockDim.x, unsigned(SAMPLED));
    int *sample = shared.sample();
    int first = 1, last = 0, from = 0;
    if (thread == 0) {
        shared.best = 0;
        // If the sample is zero, the window begins with the measure, since the bias has no lower bits either.
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
        // Both factors must be normal numbers.
        shared.low = min(max((from + last) >> 1, FARTHER - 1022), 1022);
    __syncthreads();
}

// Add a row outside of the window, digit by digit.
__device__ inline void add_by_digits(Word bits, const Long *plan, Long *cell) {
    add_in_memory(Factors{bits, 0, int(plan[TARGET_KIND]), ABSENT}, plan, cell);
}

// Add the rows that a warp keeps.
__device__ inline void add_kept(unsigned n_kept) {
    Shared &shared = shared_of_block();
    const Kept &kept = shared.kept(threadIdx.x / LANES);
    unsigned lane = threadIdx.x % LANES;
    __syncwarp();
    if (lane < n_kept)
        add_by_digits(kept.bits[lane], shared.plan, shared.cell(kept.slots[lane]));
    __syncwarp();
}

// A bit for each earlier lane of the warp.
__device__ inline unsigned lanes_before() { return (1u << threadIdx.x % LANES) - 1; }

// Keep the row of each lane that is outside of the window.
__device__ inline void keep(unsigned &n_kept, bool outside, Word bits, unsigned slot) {
    Kept &kept = shared_of_block().kept(threadIdx.x / LANES);
    unsigned lanes = __ballot_sync(~0u, outside), before = lanes & lanes_before();
    if (n_kept + __popc(lanes) > LANES) {
        add_kept(n_kept);
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
        // The highest digit keeps everything above it.
        Word digit = column + 1 < width ? first & 0xFFFFFFFF : first;
        if (digit && column >= 0)
            add_to(digits + column, apply_sign(digit, sign));
        if (column + 1 >= width)
            break;
        first = first >> 32 | second << 32, second = second >> 32 | third << 32, third >>= 32;
    }
}

// Add the content of a slot to its cell: the content of its words, plus what was carried out of them, minus the bias.
// Other threads may add rows at the same time: whenever a word is taken, the part that was taken and the part that is
// left have the right sum.
__device__ inline void take(unsigned begin, unsigned slot) {
    Cell cell(begin, slot);
    const Shared &shared = shared_of_block();
    unsigned words[WORDS_OF_CELL];
#pragma unroll
    for (int k = 0; k < WORDS_OF_CELL; ++k)
        words[k] = atomicExch(cell.words + k, 0u);
    unsigned top = cell.taken();
    Word rows = top >> ROWS_AT, sum = words[LOWER] | Word(words[HIGHER]) << 32, first = sum - (rows << BITS);
    Word second = (top & ((1u << ROWS_AT) - 1)) - (rows >> (64 - BITS)) - (first > sum);
    const Long *measure = shared.plan + LINE;
    Long *to = shared.cell(slot), low = shared.low;
    if (rows)
        add_to(to, rows);
    add_digits(first, second, Word(Long(second) >> 63), low - 32 * measure[LOW], measure, to + 1);
#if SQUARES
    Word higher = words[SQUARE + 2] | Word(NARROW ? 0 : words[WORDS_OF_CELL - 1]) << 32;
    add_digits(words[SQUARE] | Word(words[SQUARE + 1]) << 32, higher, 0, 2 * low - 32 * measure[LINE + LOW],
               measure + LINE, to + 1 + measure[MEASURE_WIDTH]);
#endif
}

// Add to a word; returns the carry, 0 or 1.  If adding the carry to the addend wraps, the word itself cannot wrap.
__device__ inline unsigned add_word(unsigned *word, unsigned addend, unsigned carry) {
    unsigned more = addend + carry, old = atomicAdd(word, more);
    return unsigned(more < carry) | unsigned(old + more < more);
}

// Add a square to its words; returns what is carried out of them.
__device__ inline unsigned add_square(unsigned *words, Word size) {
    Word lower = size * size, higher = __umul64hi(size, size);
    unsigned carry = add_word(words, unsigned(lower), 0);
    carry = add_word(words + 1, unsigned(lower >> 32), carry);
    carry = add_word(words + 2, unsigned(higher), carry);
    return NARROW ? carry : add_word(words + 3, unsigned(higher >> 32), carry);
}

// Move the next slot to the front.
template <int n> __device__ inline void turn(unsigned (&slot)[n]) {
    unsigned first = slot[0];
#pragma unroll
    for (int k = 1; k < n; ++k)
        slot[k - 1] = slot[k];
    slot[n - 1] = first;
}

// Add to the cell what was carried out of all words of a slot: 2^64 for sums, and 2^96 or 2^128 for squares.
__device__ inline void add_carries(unsigned slot, bool of_sum, bool of_square) {
    const Shared &shared = shared_of_block();
    const Long *measure = shared.plan + LINE;
    Long *to = shared.cell(slot) + 1;
    if (of_sum)
        add_digits(0, 1, 0, shared.low - 32 * measure[LOW], measure, to);
    if (of_square)
        add_digits(0, NARROW ? Word(1) << 32 : 0, NARROW ? 0 : 1, 2 * shared.low - 32 * measure[LINE + LOW],
                   measure + LINE, to + measure[MEASURE_WIDTH]);
}

// Add numbers to their slots word by word, so that several atomics are in flight at once.  For numbers that must not be
// added, zeros are added, since with branches each atomic would wait for the last.  Returns whether a cell must be
// taken.
template <int n>
__device__ inline bool add_to_cells(unsigned begin, unsigned (&slot)[n], const bool (&added)[n],
                                    const Fixed (&number)[n]) {
    // Carries that go to memory, with a bit for each row; those of squares from bit 16 on.
    unsigned carry[n], seen = 0, carried = 0, *words[n];
#pragma unroll
    for (int k = 0; k < n; ++k) {
        words[k] = Cell(begin, slot[k]).words;
        carry[k] = add_word(words[k] + LOWER, added[k] ? unsigned(number[k].number) : 0, 0);
    }
#pragma unroll
    for (int k = 0; k < n; ++k) {
        Word biased = Word(number[k].number) + BIAS;
        carry[k] = add_word(words[k] + HIGHER, added[k] ? unsigned(biased >> 32) : 0, carry[k]);
        if (NARROW)
            carried |= carry[k] << k, carry[k] = 0;
    }
#pragma unroll
    for (int k = 0; SQUARES && k < n; ++k)
        carried |= add_square(words[k] + SQUARE, added[k] ? number[k].size : 0) << (16 + k);
#pragma unroll
    for (int k = 0; k < n; ++k) {
        Cell cell(begin, slot[k]);
        seen |= atomicAdd(cell.top, ((added[k] ? 1u << ROWS_AT : 0) + carry[k]) << cell.shift);
    }
    if (carried) {
#pragma unroll 1
        for (int row = 0; row < n; ++row, carried >>= 1) {
            add_carries(slot[0], carried & 1, carried >> 16 & 1);
            turn(slot);
        }
    }
    return seen & FULL;
}

// Take some cells.
template <int n> __device__ inline void take_cells(unsigned begin, unsigned (&slot)[n]) {
#pragma unroll 1
    for (int row = 0; row < n; ++row) {
        take(begin, slot[0]);
        turn(slot);
    }
}

// Add those rows that exist; their numbers begin at `first`, `step` apart.  All lanes of a warp take part at once.
template <int n, typename Value>
__device__ inline void add_rows(unsigned begin, unsigned &n_kept, unsigned (&slot)[n], const bool (&here)[n],
                                const Value (&value)[n], const Value *first, unsigned step = 1) {
    Fixed number[n];
    bool added[n];
    unsigned outside = 0;
    // Read each time, since registers are few.
    double scale = shared_of_block().scale, unit = shared_of_block().unit;
#pragma unroll
    for (int k = 0; k < n; ++k) {
        number[k] = fixed(value[k], scale, unit);
        added[k] = here[k] && number[k].inside;
        outside |= unsigned(here[k] && !number[k].inside) << k;
    }
    if (add_to_cells(begin, slot, added, number))
        take_cells(begin, slot);
    // Rows come to the front one by one: this code is long, and appears only once.
    if (__any_sync(~0u, outside)) {
#pragma unroll 1
        for (int row = 0; row < n; ++row, outside >>= 1) {
            keep(n_kept, outside & 1, outside & 1 ? raw(first[row * step]) : 0, slot[0]);
            turn(slot);
        }
    }
}

// Clear the cells of a block, `copies` of `words`, and choose the window of its numbers; returns where a thread's copy
// begins.
template <typename Value>
__device__ inline unsigned begin_block(const Value *values, Long n_values, const Long *plan, Long *cells, Long n_lines,
                                       Long in_line, Long groups, Long copies, Long words) {
    Shared &shared = shared_of_block();
    unsigned head = Shared::head();
    if (plan[TARGET_KIND] == REAL && (NARROW || !plan[LINE + IS_WHOLE]))
        choose_window(shared, values, n_values, plan);
    else if (threadIdx.x == 0)
        shared.low = 0;
    if (threadIdx.x == 0) {
        // A whole measure has one digit: no number is above it.
        if (plan[LINE + IS_WHOLE])
            shared.low = min(shared.low, Long(15));
        shared.scale = __longlong_as_double((1023 + FARTHER - shared.low) << 52);
        shared.unit = __longlong_as_double((1023 - FARTHER + shared.low) << 52);
        shared.plan = plan, shared.cells = cells;
        shared.n_lines = unsigned(n_lines), shared.in_line = unsigned(in_line);
        shared.groups = unsigned(groups), shared.own = blockIdx.x % unsigned(groups);
    }
    for (unsigned word = threadIdx.x; word < unsigned(copies * words); word += blockDim.x)
        table[head + word] = 0;
    __syncthreads();
    return pinned(4 * (head + (threadIdx.x & unsigned(copies - 1)) * unsigned(words)));
}

// Add everything that a block holds to the cells, and clear it.
__device__ inline void end_block(unsigned n_kept, Long slots, Long copies, Long words) {
    add_kept(n_kept);
    __syncthreads();
    for (unsigned copy = 0; copy < unsigned(copies); ++copy)
        for (unsigned slot = threadIdx.x; slot < unsigned(slots); slot += blockDim.x)
            take(4 * (Shared::head() + copy * unsigned(words)), slot);
}
