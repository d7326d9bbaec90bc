// The range of binary digits of all rows' numbers, for one type: the lowest digit, and one more than the highest.

#include "ends.cuh"

constexpr bool IS_NARROW = sizeof(VALUE) == 4, IS_WHOLE = VALUE(0.5) == 0;
// Bits of the fraction; and the exponent of the lowest bit in the smallest numbers.
constexpr int FRACTION_BITS = IS_NARROW ? 23 : 52, LEAST = IS_WHOLE ? 0 : IS_NARROW ? -150 : -1075;
// Beyond the digits of all products.
constexpr Long NOWHERE = 1ll << 40;

// One more than the highest digit of a magnitude that is not zero.
__device__ inline Long end_of(Word magnitude) {
    Word field = IS_WHOLE ? 0 : magnitude >> FRACTION_BITS;
    Word mantissa = field ? (magnitude & ((1ull << FRACTION_BITS) - 1)) | 1ull << FRACTION_BITS : magnitude;
    return (IS_WHOLE ? 0 : Long(field ? field : 1) + LEAST) + 64 - __clzll(Long(mantissa));
}

// Raw numbers; those of 64 bits are in two halves, since most steps need only one.
template <unsigned bytes> struct BitsOf { typedef uint2 Type; };
template <> struct BitsOf<4> { typedef unsigned Type; };
typedef BitsOf<sizeof(VALUE)>::Type Bits;

// What a thread has found: the lowest digit, and the largest magnitude, which has the highest digit.
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

    __device__ void add(uint2 bits) {
        if (IS_WHOLE) {
            Word both = Word(bits.y) << 32 | bits.x, magnitude = Long(both) < 0 ? 0 - both : both;
            if (magnitude)
                low = min(low, __ffsll(magnitude));
            largest = max(largest, magnitude);
            return;
        }
        // The lowest digit is in one half of the mantissa or in the other.
        unsigned upper = bits.y & 0x7FFFFFFF, field = upper >> 20;
        unsigned rest = field ? (upper & 0xFFFFF) | 0x100000 : upper;
        if (upper | bits.x)
            low = min(low, int(max(field, 1u)) + (bits.x ? __ffs(bits.x) : 32 + __ffs(rest)));
        largest = max(largest, Word(upper) << 32 | bits.x);
    }
};

// Write the range of digits for the numbers of each block.
extern "C" __global__ void __launch_bounds__(512) measure_extents(ARRAY(const VALUE, numbers), ARRAY(Long, ends)) {
    extern __shared__ __align__(16) unsigned table[];
    Seen seen;
    each_number(reinterpret_cast<const Bits *>(numbers), numbers_size, [&](const Bits &bits) { seen.add(bits); });
    Word low = seen.low, largest = seen.largest;
    reduce_ends(low, largest, reinterpret_cast<Word *>(table));
    if (!threadIdx.x) {
        ends[2 * blockIdx.x] = largest ? Long(low) - 1 + LEAST : NOWHERE;
        ends[2 * blockIdx.x + 1] = largest ? end_of(largest) : -NOWHERE;
    }
}
