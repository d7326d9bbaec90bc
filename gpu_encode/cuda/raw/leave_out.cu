// Leave-one-out encodings of rows by the closed forms of closed_forms.cuh.  Rows that these do not decide are listed.
// KEY: unsigned or Word; VALUE, the type of targets: float, double or Long; ENCODING: float or double.
#include "tiles.cuh"
#include "closed_forms.cuh"

// NaN words at the beginning of a line say that nothing is known about its rows, that all of them have the number that
// follows, or that they have the mean of all other rows.
enum : Word { LISTED = 0x7FF8ull << 48, CONSTANT, OF_ALL };
// Larger integers are not exact as doubles.
constexpr Word EXACT = 1ull << 53;
extern __shared__ __align__(16) unsigned table[];

// Whether a target is exact as a double without conversion: a conversion would turn the smallest floats into zero, and
// round the largest integers.
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

// A line of doubles for each category, and one for all rows together.
template <typename Line> struct Lines {
    const double *lines;

    __device__ const double2 *at(unsigned number) const {
        return reinterpret_cast<const double2 *>(reinterpret_cast<const char *>(lines) + number * Word(sizeof(Line)));
    }
    __device__ Line line(unsigned number) const { return line_at(at(number), Line()); }
};

// The encoding of a row from a line of one kind; `settle` is for rows that `encode` leaves open, mostly for a known
// reason.
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

// All rows of a call; `unseen` is null if it is not wanted.  If the list is full, further rows are only counted.
template <typename Form> struct LeavingOut {
    struct Rows {
        KEY keys[4];
        VALUE values[4];
    };
    enum : unsigned { AT_ONCE = 1 };
    Form form;
    Slots<KEY> slots;
    const VALUE *values;
    bool keys_aligned, values_aligned;
    const unsigned char *uncounted;
    ENCODING *out;
    unsigned char *unseen;
    Long *listed;
    Word room, *n_listed;

    __device__ void read(Long row, Rows &into) const {
        read_four(slots.keys + row, keys_aligned, into.keys);
        read_four(values + row, values_aligned, into.values);
    }
    __device__ void use(Long row, const Rows &rows, const unsigned (&)[4]) const {
        ENCODING found[4];
        encode(row, rows.keys, rows.values, found);
        write_four(out + row, true, found);
    }
    __device__ void use_one(Long row, unsigned) const {
        KEY key[1] = {slots.keys[row]};
        VALUE value[1] = {values[row]};
        ENCODING found[1];
        encode(row, key, value, found);
        out[row] = found[0];
    }

    // Encode neighbouring rows, and list those that stay open.
    template <int n>
    __device__ void encode(Long row, const KEY (&keys)[n], const VALUE (&values)[n], ENCODING (&found)[n]) const {
        unsigned lines[n], open = 0;
#pragma unroll
        for (int k = 0; k < n; ++k) {
            lines[k] = slots.line_of(slots.of(keys[k]));
            open |= form.encode(lines[k], double(values[k]), found[k]) & is_double(values[k]) ? 0 : 1u << k;
        }
        if (open) {
#pragma unroll
            for (int k = 0; k < n; ++k)
                if ((open >> k & 1) && is_double(values[k]) && form.settle(lines[k], double(values[k]), found[k]))
                    open ^= 1u << k;
#pragma unroll 1
            for (int k = 0; k < n; ++k)
                if (open >> k & 1)
                    list(row + k);
        }
        if (unseen)
#pragma unroll
            for (int k = 0; k < n; ++k)
                if (!uncounted[lines[k]])
                    unseen[row + k] = 0;
    }
    __device__ void list(Long row) const {
        Word number = atomicAdd(n_listed, Word(1));
        if (number < room)
            listed[number] = row;
    }
};

#define LEFT_OUT                                                                                                      \
    KEYS, ARRAY(const VALUE, values), ARRAY(const double, lines), ARRAY(const unsigned char, uncounted),              \
        ARRAY(ENCODING, out), Long flagged, ARRAY(unsigned char, unseen), ARRAY(Long, listed), ARRAY(Word, n_listed)
#define GIVEN_LEFT_OUT                                                                                                \
    GIVEN_SLOTS, values, false, false, uncounted, out, flagged ? unseen : nullptr, listed, Word(listed_size), n_listed

template <typename Form> __device__ inline void leave_out(LeavingOut<Form> rows, Long n_rows) {
    Plan<StraightFolds> &plan = *reinterpret_cast<Plan<StraightFolds> *>(table);
    Folds none(NO_FOLDS, nullptr, 1, 0, 0, 0, nullptr, 1);
    if (!threadIdx.x)
        plan.make(none, n_rows, ahead_of_four(rows.out));
    __syncthreads();
    rows.keys_aligned = !ahead_of_four(rows.slots.keys + plan.tiles.begin);
    rows.values_aligned = !ahead_of_four(rows.values + plan.tiles.begin);
    walk(plan, rows, false);
    walk_others(plan.tiles, n_rows, none, rows);
}

extern "C" __global__ void __launch_bounds__(256, 2) leave_out_estimate(LEFT_OUT) {
    leave_out(LeavingOut<Estimates>{Estimates(lines, n_lines), GIVEN_LEFT_OUT}, keys_size);
}

extern "C" __global__ void __launch_bounds__(256, 2) leave_out_blend(LEFT_OUT, Long by_mean, double prior) {
    leave_out(LeavingOut<Blends>{Blends(lines, n_lines, Prior{by_mean != 0, prior}), GIVEN_LEFT_OUT}, keys_size);
}
