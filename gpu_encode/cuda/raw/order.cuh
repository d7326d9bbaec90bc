// The ranks of an order: their rows and segments, and where the encodings are written.

#include "rows.cuh"

// A walk is compiled for a type of encodings, and either for m-estimates or for all other smoothings.
#ifndef ENCODING
#define ENCODING double
#define ESTIMATES 1
#endif

enum { PLAIN, M_ESTIMATE, SIGMOID, EMPIRICAL_BAYES };
enum { AS_CATEGORY, AS_PRIOR, AS_NAN };
enum { AS_NUMBERED, BY_ROW, IN_BLOCKS };
enum { LOST, DOUBTFUL };

constexpr unsigned LANES = 32;

// The parameters for rows by rank in all kernels, and the same as a `Course` of gpu_encode/cuda/order_tiles.py.
#define COURSE                                                                                                        \
    Long start, Long course_kind, ARRAY(const unsigned, numbers), ARRAY(const unsigned char, inside), Long block,     \
        Long offset, Long turn, Long lacking
#define GIVEN_COURSE                                                                                                  \
    Course{Word(start), int(course_kind), numbers, inside, unsigned(block), ~0u / unsigned(block), offset, turn, lacking}

struct Course {
    Word start;
    int kind;
    const unsigned *numbers;
    const unsigned char *inside;
    unsigned block, inverse;
    Long offset, turn, lacking;

    // The row at a rank; ranks are counted from the first one here.
    __device__ Word row(Long i) const {
        if (kind == AS_NUMBERED)
            return start + Word(i);
        if (kind == BY_ROW)
            return numbers[i];
        unsigned at = unsigned(i + offset + (i >= turn ? lacking : 0)), number = __umulhi(at, inverse);
        number += at - number * block >= block;
        return Word(numbers[number]) * block + inside[i];
    }
};

// Number of the segment of a rank: a segment begins where all but the top bits of the rank are zero.
__device__ inline unsigned segment_of(unsigned place, int bits) {
    int extra = 32 - __clz(int(place)) - bits;
    return extra <= 0 ? place : (unsigned(extra) << (bits - 1)) + (place >> extra);
}

__device__ inline unsigned line_of(int code, unsigned n_lines) { return code < 0 ? code + n_lines : code; }

// Where encodings are written, and what is counted; the same as `Destination` and `Doubts`.
#define OUTPUT                                                                                                        \
    ARRAY(ENCODING, out), Long by_row, Long by_output, Long flagged, ARRAY(unsigned char, unseen), ARRAY(Word, counters),  \
        ARRAY(Long, places), ARRAY(Long, seen), ARRAY(Long, around)
#define GIVEN_OUTPUT                                                                                                  \
    Output{out, by_row, by_output, flagged ? unseen : nullptr, counters, places, seen, around, Word(places_size)}

struct Output {
    ENCODING *out;
    Long by_row, by_output;
    unsigned char *unseen;
    Word *counters;
    Long *places, *seen, *around;
    Word room;

    __device__ void put(double value, double *to) const { *to = value == value ? value : __longlong_as_double(0x7FF8ll << 48); }

    // The smallest numbers are converted by hand, since kernels would treat them as zero.
    __device__ void put(double value, float *to) const {
        if (value != value)
            *to = __uint_as_float(0x7FC00000);
        else if (fabs(value) >= 0x1p-126)
            *to = __double2float_rn(value);
        else
            *to = __uint_as_float(unsigned((fabs(value) * 0x1p149 + 0x1p52) - 0x1p52) |
                                  (__double_as_longlong(value) < 0 ? 1u << 31 : 0));
        if ((__float_as_uint(*to) & 0x7FFFFFFF) == 0x7F800000 && fabs(value) <= 0x1.fffffffffffffp1023)
            atomicAdd(counters + LOST, Word(1));
    }
    __device__ void put(double value, Word row, unsigned output) const {
        put(value, out + Long(row) * by_row + output * by_output);
    }

    // Reserve an entry for an estimate that only the digits can round, if there is room; returns its number.
    __device__ bool doubt(Word encoding, unsigned segment, Long length, Word &number) const {
        number = atomicAdd(counters + DOUBTFUL, Word(1));
        if (number >= room)
            return false;
        places[number] = Long(encoding);
        around[number * length] = segment;
        return true;
    }
};
