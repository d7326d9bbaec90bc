// Encodings of rows, each left out of what it sees, by the closed forms of closed_forms.cuh.  What they do not decide
// is listed.  KEY: unsigned or Word; TARGET: float, double or Long; ENCODING: float or double.
#include "rows.cuh"
#include "closed_forms.cuh"

// NaN words at the beginning of a line: nothing is known of its rows; all have the number that follows; or the mean of
// all other rows.
enum : Word { LISTED = 0x7FF8ull << 48, CONSTANT, OF_ALL };
// Whole numbers beyond it are no doubles.
constexpr Word EXACT = 1ull << 53;
// All of four neighbouring rows, one bit each.
constexpr unsigned FOUR = 15;

template <typename Number> struct VectorOf;
template <> struct VectorOf<unsigned> { typedef uint4 Type; };
template <> struct VectorOf<float> { typedef float4 Type; };
template <> struct VectorOf<double> { typedef double2 Type; };
template <> struct VectorOf<Long> { typedef longlong2 Type; };
template <> struct VectorOf<Word> { typedef ulonglong2 Type; };

template <typename Number> __device__ inline bool on_vector(const Number *at) {
    return (reinterpret_cast<Word>(at) & 15) == 0;
}

template <typename Number>
__device__ inline void read_four(const Number *from, bool whole, unsigned inside, Number (&into)[4]) {
    typedef typename VectorOf<Number>::Type Vector;
    if (whole) {
        const Vector *vectors = reinterpret_cast<const Vector *>(from);
        if constexpr (sizeof(Number) == 8) {
            Vector first = vectors[0], second = vectors[1];
            into[0] = first.x, into[1] = first.y, into[2] = second.x, into[3] = second.y;
        } else {
            Vector found = vectors[0];
            into[0] = found.x, into[1] = found.y, into[2] = found.z, into[3] = found.w;
        }
    } else {
#pragma unroll
        for (int k = 0; k < 4; ++k)
            into[k] = inside >> k & 1 ? from[k] : 0;
    }
}

template <typename Number>
__device__ inline void write_four(Number *to, unsigned inside, const Number (&values)[4]) {
    typedef typename VectorOf<Number>::Type Vector;
    if (inside == FOUR) {
        Vector *vectors = reinterpret_cast<Vector *>(to);
        if constexpr (sizeof(Number) == 8) {
            vectors[0] = Vector{values[0], values[1]};
            vectors[1] = Vector{values[2], values[3]};
        } else {
            vectors[0] = Vector{values[0], values[1], values[2], values[3]};
        }
    } else {
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (inside >> k & 1)
                to[k] = values[k];
    }
}

// Whether a target is a double as it is: conversions take the smallest floats for zero, and round the largest integers.
__device__ inline bool is_double(float value) { return (__float_as_uint(value) << 1) - 1 >= 0x00FFFFFFu; }
__device__ inline bool is_double(double) { return true; }
__device__ inline bool is_double(Long value) { return Word(value) + EXACT <= 2 * EXACT; }

__device__ inline Estimate<float> line_at(const double2 *at, Estimate<float>) { return {at[0].x, at[0].y}; }
__device__ inline Estimate<double> line_at(const double2 *at, Estimate<double>) {
    return {{at[0].x, at[0].y}, {at[1].x, at[1].y}};
}
__device__ inline Sums<float> line_at(const double2 *at, Sums<float>) {
    return {at[0].x, at[0].y, at[1].x, at[1].y, at[2].x, at[2].y};
}
__device__ inline Sums<double> line_at(const double2 *at, Sums<double>) {
    return {{at[0].x, at[0].y}, {at[1].x, at[1].y}, {at[2].x, at[2].y}, at[3].x, at[3].y};
}

// A number that all rows of a category have.
__device__ inline bool settle_constant(double2 line, float &found) {
    if (Word(__double_as_longlong(line.x)) != CONSTANT)
        return false;
    found = line.y == line.y ? __double2float_rn(line.y) : __uint_as_float(0x7FC00000u);
    return line.y != line.y || line.y == 0 || is_normal(found);
}
__device__ inline bool settle_constant(double2 line, double &found) {
    found = line.y == line.y ? line.y : __longlong_as_double(Long(LISTED));
    return Word(__double_as_longlong(line.x)) == CONSTANT;
}

// Numbers of the lines of rows.  Without an index `last` is the largest word: each is a code.
struct Keys {
    const KEY *words;
    KEY base, last;
    const int *ranks;
    unsigned n_lines;

    __device__ int code_of(KEY word) const {
        KEY offset = word - base;
        bool known = offset <= last;
        if (!ranks)
            return known ? int(offset) : int(UNKNOWN);
        // Without a branch around it, no load waits for another.
        int rank = ranks[known ? offset : 0];
        return known ? rank - 1 : int(UNKNOWN);
    }
    __device__ unsigned line_of(KEY word) const {
        int code = code_of(word);
        return unsigned(code) + (code < 0 ? n_lines : 0);
    }
};

// A line of doubles for each category, and one for all rows together.
template <typename Line> struct Lines {
    const double *lines;

    __device__ const double2 *at(unsigned number) const {
        return reinterpret_cast<const double2 *>(reinterpret_cast<const char *>(lines) + number * Word(sizeof(Line)));
    }
    __device__ Line line(unsigned number) const { return line_at(at(number), Line()); }
};

// What lines of one kind say of a row; `settle` of rows that `encode` leaves open, most of them for a known reason.
struct Estimates : Lines<Estimate<ENCODING>> {
    decltype(Estimate<ENCODING>::top) weight;

    __device__ Estimates(const double *lines, Long n_lines) : Lines{lines}, weight(line(unsigned(n_lines)).top) {}
    __device__ bool encode(unsigned number, double v, ENCODING &found) const {
        return line(number).of(weight, v).round(found);
    }
    __device__ bool settle(unsigned number, double v, ENCODING &found) const {
        double2 first = *at(number);
        return settle_constant(first, found) || line(number).settle(weight, v, found);
    }
};

struct Blends : Lines<Sums<ENCODING>> {
    Sums<ENCODING> all;
    Prior prior;

    __device__ Blends(const double *lines, Long n_lines, Prior prior)
        : Lines{lines}, all(line(unsigned(n_lines))), prior(prior) {}
    __device__ bool encode(unsigned number, double v, ENCODING &found) const {
        return round_blend(line(number), all, prior, v, found);
    }
    __device__ bool settle(unsigned number, double v, ENCODING &found) const {
        double2 first = *at(number);
        if (Word(__double_as_longlong(first.x)) == OF_ALL)
            return all.round_mean(v, found);
        return settle_constant(first, found) || line(number).settle(v, found);
    }
};

// Numbers of rows, appended by whole warps; those beyond the room are only counted.
struct List {
    Long *rows;
    Word room, *count;

    __device__ void append(Long row, unsigned chosen) const {
        unsigned earlier = (1u << (threadIdx.x & 31)) - 1;
#pragma unroll 1
        for (int k = 0; k < 4; ++k) {
            bool mine = chosen >> k & 1;
            unsigned votes = __ballot_sync(~0u, mine);
            Word first = 0;
            if (votes && !earlier)
                first = atomicAdd(count, Word(__popc(votes)));
            first = __shfl_sync(~0u, first, 0) + __popc(votes & earlier);
            if (mine && first < room)
                rows[first] = row + k;
        }
    }
};

// All that a call on rows has; `unseen` is null where nobody asks for it.
struct Call {
    Long size;
    const TARGET *target;
    const unsigned char *uncounted;
    ENCODING *out;
    unsigned char *unseen;
    List list;
};

// Flags of unseen categories fall where the other rows count.
__device__ inline void lower_flags(const Call &call, Long row, unsigned inside, const unsigned (&lines)[4]) {
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if ((inside >> k & 1) && !call.uncounted[lines[k]])
            call.unseen[row + k] = 0;
}

// Which of four rows from one on are there; the first may lie before all.
__device__ inline unsigned rows_inside(Long row, Long size) {
    unsigned inside = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        inside |= unsigned(row + k >= 0 && row + k < size) << k;
    return inside;
}

template <typename Form> __device__ inline void leave_out(const Form &form, const Keys &keys, const Call &call) {
    // What is written begins at a vector, but for the first rows of an output that does not.
    Long before = Long(reinterpret_cast<Word>(call.out) & 15) / Long(sizeof(ENCODING)), last = call.size - 4;
    Long thread = Long(blockIdx.x) * blockDim.x + threadIdx.x, turn = 4 * Long(gridDim.x) * blockDim.x;
    bool key_vectors = on_vector(keys.words - before), target_vectors = on_vector(call.target - before);
    // Whole warps go on while any of their rows is inside.
    for (Long row = 4 * thread - before; row - 4 * Long(threadIdx.x & 31) < call.size; row += turn) {
        unsigned inside = row >= 0 && row <= last ? FOUR : rows_inside(row, call.size), lines[4], open = 0;
        KEY words[4];
        TARGET targets[4];
        ENCODING found[4];
        read_four(keys.words + row, key_vectors && inside == FOUR, inside, words);
        read_four(call.target + row, target_vectors && inside == FOUR, inside, targets);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            lines[k] = keys.line_of(words[k]);
            open |= form.encode(lines[k], double(targets[k]), found[k]) & is_double(targets[k]) ? 0 : 1u << k;
        }
        open &= inside;
        if (open) {
#pragma unroll
            for (int k = 0; k < 4; ++k)
                if ((open >> k & 1) && is_double(targets[k]) && form.settle(lines[k], double(targets[k]), found[k]))
                    open ^= 1u << k;
        }
        write_four(call.out + row, inside, found);
        if (call.unseen)
            lower_flags(call, row, inside, lines);
        if (__any_sync(~0u, open))
            call.list.append(row, open);
    }
}

#define ROWS CODES, ARRAY(const TARGET, target)
#define LINES ARRAY(const double, lines), ARRAY(const unsigned char, uncounted)
#define OUTPUT ARRAY(ENCODING, out), Long flagged, ARRAY(unsigned char, unseen), ARRAY(Long, listed), ARRAY(Word, count)
#define GIVEN_KEYS                                                                                                    \
    Keys{reinterpret_cast<const KEY *>(codes), KEY(base), KEY(range - 1), code_ranks_size ? code_ranks : nullptr,     \
         unsigned(uncounted_size)}
#define GIVEN_CALL                                                                                                    \
    Call{codes_size, target, uncounted, out, flagged ? unseen : nullptr, List{listed, Word(listed_size), count}}

extern "C" __global__ void __launch_bounds__(256, 2) leave_out_estimate(ROWS, LINES, OUTPUT) {
    leave_out(Estimates(lines, uncounted_size), GIVEN_KEYS, GIVEN_CALL);
}

extern "C" __global__ void __launch_bounds__(256, 2) leave_out_blend(ROWS, LINES, Long by_mean, double prior, OUTPUT) {
    leave_out(Blends(lines, uncounted_size, Prior{by_mean != 0, prior}), GIVEN_KEYS, GIVEN_CALL);
}
