// What one row adds to its cell: up to three factors are multiplied to a number of three words, which is divided into
// digits; the CUDA C++ version of gpu_encode/cuda/digits.py.

enum { ABSENT, WHOLE, REAL };

// Positions in a plan: of a measure from LINE * power on, then of the rows, and of the tables of a launch.
enum { KEPT, IS_WHOLE, LOW, MEASURE_WIDTH, WORDS, COLUMNS, LINE };
enum { N_LINES = 3 * LINE, N_CLASSES, CLASS_STEP, TARGET_KIND, WEIGHT_KIND, IN_LINE, WIDTH, TARGET_BYTES };
enum { IN_TABLE = TARGET_BYTES + 1, COPIES, SIZE, CHUNK };

// Raw target and weight of a row, and their kinds.
struct Factors {
    Word target, weight;
    int target_kind, weight_kind;
};

// sign (0 or -1) * (the three words, the lowest first) * 2^exponent.
struct Number {
    Word first, second, third;
    Long sign, exponent;
};

__device__ inline Number parts(Word bits, int kind) {
    Long sign = Long(bits) >> 63;
    if (kind == WHOLE)
        return Number{sign ? 0 - bits : bits, 0, 0, sign, 0};
    Word field = (bits >> 52) & 0x7FF, fraction = bits & ((1ull << 52) - 1);
    return Number{field ? fraction | 1ull << 52 : fraction, 0, 0, sign, Long(field ? field : 1) - 1075};
}

__device__ inline Long apply_sign(Word word, Long sign) { return Long((word ^ Word(sign)) - Word(sign)); }

// A whole number that fits 64 bits, without its exponent.
__device__ inline Number align(Word bits, int kind) {
    Number found = parts(bits, kind);
    Long exponent = found.exponent;
    Word left = exponent >= 0 && exponent < 64 ? found.first << exponent : 0;
    Word right = exponent < 0 && exponent > -64 ? found.first >> -exponent : 0;
    return Number{left | right, 0, 0, found.sign, 0};
}

// weight * target^power, all of them whole; without factors it is one.
__device__ inline Number whole_number(int power, const Factors &factors) {
    Number found = factors.weight_kind == ABSENT ? Number{1, 0, 0, 0, 0} : align(factors.weight, factors.weight_kind);
    if (power) {
        Number other = align(factors.target, factors.target_kind);
        found.first *= power == 2 ? other.first * other.first : other.first;
        found.sign ^= power == 2 ? 0 : other.sign;
    }
    return found;
}

// weight * target^power; without factors it is zero.
__device__ inline Number product_of(int power, const Factors &factors) {
    if (power == 0)
        return factors.weight_kind == ABSENT ? Number{0, 0, 0, 0, 0} : parts(factors.weight, factors.weight_kind);
    Number found = parts(factors.target, factors.target_kind);
    if (power == 2)
        found = Number{found.first * found.first, __umul64hi(found.first, found.first), 0, 0, 2 * found.exponent};
    if (factors.weight_kind != ABSENT) {
        Number other = parts(factors.weight, factors.weight_kind);
        Word carry = __umul64hi(found.first, other.first), middle = found.second * other.first;
        found.third = __umul64hi(found.second, other.first);
        found.first *= other.first, found.second = middle + carry;
        found.third += found.second < carry;
        found.sign ^= other.sign, found.exponent += other.exponent;
    }
    return found;
}

// Remove the lowest 1 to 32 bits of a number.
__device__ inline void drop(Number &number, unsigned bits) {
    number.first = number.first >> bits | number.second << (64 - bits);
    number.second = number.second >> bits | number.third << (64 - bits);
    number.third >>= bits;
}

// Call add(column, digit, sign) for all nonzero digits whose column is in the window of the measure.
template <typename Add>
__device__ inline void each_digit(int power, const Factors &factors, const Long *measure, Add add) {
    Number number = product_of(power, factors);
    Long shift = number.exponent - 32 * measure[LOW], column = shift >> 5;
    unsigned ahead = unsigned(shift & 31), digit = unsigned(number.first << ahead);
    drop(number, 32 - ahead);
    while (column < measure[MEASURE_WIDTH] && (digit | number.first | number.second | number.third)) {
        if (digit && column >= 0)
            add(column, digit, number.sign);
        digit = unsigned(number.first);
        drop(number, 32);
        ++column;
    }
}

__device__ inline void add_to(Long *cell, Long number) {
    atomicAdd(reinterpret_cast<Word *>(cell), Word(number));
}

// Add weight * target^power of a row to the columns of its cell.
__device__ inline void add_to_cell(int power, const Factors &factors, const Long *measure, Long *cell) {
    if (measure[IS_WHOLE]) {
        Number number = whole_number(power, factors);
        if (number.first)
            add_to(cell, apply_sign(number.first, number.sign));
    } else {
        each_digit(power, factors, measure, [&](Long column, unsigned digit, Long sign) {
            add_to(cell + column, apply_sign(digit, sign));
        });
    }
}

__device__ inline void add_in_memory(const Factors &factors, const Long *plan, Long *cell) {
#pragma unroll 1
    for (int power = 0; power < 3; ++power, plan += LINE)
        if (plan[KEPT]) {
            add_to_cell(power, factors, plan, cell);
            cell += plan[MEASURE_WIDTH];
        }
}

// Raw word of the double that equals a finite float, from the raw word of the float.  In CuPy's kernels, conversions
// would turn the smallest floats into zero (-ftz=true).
__device__ inline Word widened(unsigned word) {
    Word magnitude = word & 0x7FFFFFFF, sign = Word(word >> 31) << 63;
    if (magnitude >> 23)
        return sign | ((magnitude + (Word(1023 - 127) << 23)) << 29);
    // A subnormal number has its highest bit at another position.
    int length = 32 - __clz(int(magnitude));
    Word field = Word(length + 1023 - 150), fraction = (magnitude << (53 - length)) & ((1ull << 52) - 1);
    return magnitude ? sign | (field << 52) | fraction : sign;
}
