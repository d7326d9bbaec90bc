// Encodings by closed forms, each with an error bound.  cpu_fallback/compiled/closed_forms.py states and proves the
// forms and bounds: an encoding is used only if all numbers within the bound round to the same number.
#include "double_double.cuh"

// If a sum is not exact it is odd; a pair is odd if its low part is.
__device__ inline bool is_even(double value) { return (__double_as_longlong(value) & 1) == 0; }

// A number within `error` of a value, which is rounded to a float, or as a pair to a double.
template <typename Number> struct Near;

template <> struct Near<float> {
    double value, error;

    // Returns true if all numbers within the error round to the same normal number.
    __device__ bool round(float &found) const {
        found = __double2float_rn(value - error);
        unsigned other = __float_as_uint(__double2float_rn(value + error));
        return __float_as_uint(found) == other && is_normal(found);
    }
};

template <> struct Near<double> {
    Pair value;
    double error;

    __device__ bool round(double &found) const {
        found = value.high + (value.low - error);
        return found == value.high + (value.low + error) && fabs(found) >= 0x1p-900 && fabs(found) <= 0x1p900;
    }
};

// Rounds (S - v) / n if it is exactly between two doubles, as sums of few numbers over a power of two often are.
__device__ inline bool round_tie(Pair sum, double v, Pair share, Near<double> near, double &found) {
    double below = near.value.high + (near.value.low - near.error), n = rint(1 / share.high);
    double above = near.value.high + (near.value.low + near.error);
    Pair left = two_sum(sum.high, -v), low = two_sum(left.low, sum.low), product = two_product(n, below);
    Pair rest = two_sum(low.high, n * (below - above) * 0.5);
    unsigned long long bits = __double_as_longlong(below), apart = __double_as_longlong(above) - bits;
    bool exact = is_even(sum.low) && low.low == 0 && rest.low == 0;
    found = bits & 1 ? above : below;
    return exact && (apart == 1 || apart == ~0ull) && fabs(below) >= 0x1p-900 && fabs(below) <= 0x1p900 &&
           left.high - product.high - product.low + rest.high == 0;
}

// (A - K v) R.
template <typename Number> struct Estimate;

template <> struct Estimate<float> {
    double top, share;

    __device__ Near<float> of(double weight, double v) const {
        double own = weight * v;
        return {(top - own) * share, (fabs(top) + fabs(own)) * (share * 0x1p-50)};
    }
    // If rounding does not decide, nothing else does.
    __device__ bool settle(double weight, double v, float &found) const {
        found = 0;
        return is_even(top) && top - weight * v == 0;
    }
};

template <> struct Estimate<double> {
    Pair top, share;

    __device__ Near<double> of(Pair weight, double v) const {
        Pair own = times(weight, v);
        return {times(minus(top, own), share), (fabs(top.high) + fabs(own.high)) * (share.high * 0x1p-80)};
    }
    // If rounding does not decide, an exact tie may decide; this is possible only for means, whose A is S.
    __device__ bool settle(Pair weight, double v, double &found) const {
        Pair left = minus(top, times(weight, v));
        bool none = left.high == 0 && left.low == 0;
        found = 0;
        return none || round_tie(top, v, share, of(weight, v), found);
    }
};

// Sums of some rows: S, 1 / (n - 1), c0 = (n - 1) Q - S^2, c1 = 2 S, n, and the weight of c0 + v (c1 - n v); or as
// pairs, with c1 as a multiple of S.  Means and variances are those of all rows but one.
template <typename Number> struct Sums;

template <> struct Sums<float> {
    double total, share, spread, slope, count, weight;

    __device__ double mean(double v) const { return (total - v) * share; }
    __device__ double mean_scale(double v) const { return (fabs(total) + fabs(v)) * share; }
    __device__ bool round_mean(double v, float &found) const {
        bool sure = Near<float>{mean(v), mean_scale(v) * 0x1p-50}.round(found), none = is_even(total) && total == v;
        found = none ? 0 : found;
        return sure || none;
    }
    // Without any variance only the mean is left.
    __device__ bool settle(double v, float &found) const {
        return spread == 0 && count == 0 && round_mean(v, found);
    }
    __device__ double variance(double v) const { return spread + v * (slope - count * v); }
    __device__ double variance_scale(double v) const {
        return fabs(spread) + fabs(v) * (fabs(slope) + count * fabs(v));
    }
};

template <> struct Sums<double> {
    Pair total, share, spread;
    double count, slope;

    __device__ Pair left(double v) const { return minus(total, Pair{v, 0}); }
    __device__ Near<double> mean(double v) const {
        return {times(left(v), share), (fabs(total.high) + fabs(v)) * (share.high * 0x1p-100)};
    }
    __device__ bool settle(double, double &) const { return false; }
    __device__ bool round_mean(double v, double &found) const {
        bool sure = mean(v).round(found), none = (left(v).high == 0) & (left(v).low == 0);
        found = none ? 0 : found;
        return sure || none || round_tie(total, v, share, mean(v), found);
    }
    __device__ Near<double> variance(double v) const {
        Pair linear{slope * total.high, slope * total.low}, square = two_product(count, v);
        double scale = fabs(spread.high) + fabs(v) * (fabs(linear.high) + fabs(square.high));
        return {plus(spread, times(minus(linear, square), v)), scale * 0x1p-100};
    }
    // If no rows count, it is a number.
    __device__ bool round_variance(double v, double &found) const {
        bool sure = variance(v).round(found);
        found = count == 0 ? spread.high : found;
        return sure | (count == 0);
    }
};

// The prior: the mean of all rows but one, or a number.
struct Prior {
    bool by_mean;
    double number;

    __device__ double mean(const Sums<float> &all, double v) const { return by_mean ? all.mean(v) : number; }
    __device__ double scale(const Sums<float> &all, double v) const {
        return by_mean ? all.mean_scale(v) : fabs(number);
    }
    __device__ bool round_mean(const Sums<double> &all, double v, double &found) const {
        if (by_mean)
            return all.round_mean(v, found);
        found = number;
        return true;
    }
};

// Mean and prior, blended by the variances of a category and of all rows; `sure` says that the latter is known.
__device__ inline Near<float> blend(const Sums<float> &own, const Sums<float> &all, Prior prior, double v,
                                    bool &sure) {
    double mean = own.mean(v), distance = prior.mean(all, v) - mean;
    double other = own.variance(v) * own.weight, bottom = all.variance(v) + other, over = __drcp_rn(bottom);
    double spread = (own.variance_scale(v) * own.weight + all.variance_scale(v)) * over;
    sure = (bottom >= 0x1p-900) & (spread <= 0x1p40);
    double error = (own.mean_scale(v) + prior.scale(all, v)) * 0x1p-49 + fabs(distance) * (spread * 0x1p-47);
    return {mean + other * over * distance, error};
}

__device__ inline bool round_blend(const Sums<float> &own, const Sums<float> &all, Prior prior, double v,
                                   float &found) {
    bool sure;
    return blend(own, all, prior, v, sure).round(found) & sure;
}

// The same in float64: moments are rounded once, then the steps are those of `blend_one`.
__device__ inline bool round_blend(const Sums<double> &own, const Sums<double> &all, Prior prior, double v,
                                   double &found) {
    double mean, mu, noise, total;
    bool sure = own.round_mean(v, mean) & prior.round_mean(all, v, mu);
    sure = sure & own.round_variance(v, noise) & all.round_variance(v, total);
    double n = fabs(own.count - 1), n_all = fabs(all.count - 1);
    double other = noise / n / n / (total / n_all / n_all * n);
    bool nearer = other <= 1;
    double part = (nearer ? other : 1) / (1 + other), start = nearer ? mean : mu, end = nearer ? mu : mean;
    found = noise == 0 ? mean : start + part * (end - start);
    return sure & ((own.count == 0) | ((other >= 0x1p-1000) & (other <= 0x1p1000)));
}
