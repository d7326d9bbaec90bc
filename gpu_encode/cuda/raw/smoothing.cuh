// From what a row sees of its category to its encoding, with the bits of the definition.

#include "double_double.cuh"
#include "order.cuh"

// A formula and its policies, as in `FusedRule`; a category counts if it has at least this many rows.
#define RULE                                                                                                          \
    Long smoothing, double first_parameter, double second_parameter, Long least, Long has_unseen,       \
        double unseen_encoding, Long by_mean, double given_prior, Long missing, double exact_below
#define GIVEN_RULE                                                                                                    \
    Rule{int(smoothing), first_parameter, second_parameter, unsigned(least), has_unseen != 0, unseen_encoding,        \
         by_mean != 0,   given_prior,     int(missing),     exact_below}

struct Rule {
    int smoothing;
    double first, second;
    unsigned least;
    bool has_unseen;
    double unseen;
    bool by_mean;
    double prior;
    int missing;
    double below;

    // The last two lines are for unknown and missing values.
    __device__ bool has_category(unsigned line, unsigned n_lines) const {
        return line + 2 < n_lines || (line + 1 == n_lines && missing == AS_CATEGORY);
    }
    __device__ double without(unsigned line, unsigned n_lines, double mu) const {
        if (line + 1 == n_lines && missing != AS_CATEGORY)
            return missing == AS_NAN ? __longlong_as_double(0x7FF8ll << 48) : mu;
        return has_unseen && mu == mu ? unseen : mu;
    }
};

// Priors of segments for each output, in the order of `Priors` of gpu_encode/cuda/encodings.py.
#define PRIORS                                                                                                        \
    ARRAY(const double, mu), ARRAY(const double, fraction), ARRAY(const Long, exponent), ARRAY(const double, high),   \
        ARRAY(const double, rest), ARRAY(const double, weighed), ARRAY(const double, number)
#define GIVEN_PRIORS Priors{mu, fraction, exponent, high, rest, weighed, number}

struct Prior {
    double mu, fraction, high, rest, weighed, number;
    int exponent;
};

struct Priors {
    const double *mu, *fraction;
    const Long *exponent;
    const double *high, *rest, *weighed, *number;

    __device__ Prior at(Word i, const Rule &rule) const {
        Prior found{mu[i], 0, 0, 0, 0, 0, 0};
        if (ESTIMATES)
            found.high = high[i], found.rest = rest[i], found.weighed = weighed[i], found.number = number[i];
        else if (rule.smoothing == EMPIRICAL_BAYES)
            found.fraction = fraction[i], found.exponent = int(exponent[i]);
        return found;
    }
};

// A sum of floats without rounding: parts that do not overlap, the smallest first (Shewchuk 1997).
struct ExactSum {
    double parts[16];
    int n = 0;

    __device__ void add(double value) {
        if (value == 0)
            return;
        for (int k = 0; k < n; ++k) {
            Pair sum = two_sum(value, parts[k]);
            parts[k] = sum.low, value = sum.high;
        }
        parts[n++] = value;
    }
    __device__ void add_product(double left, double right) {
        Pair product = two_product(left, right);
        add(product.low);
        add(product.high);
    }
    __device__ int sign() const {
        for (int k = n - 1; k >= 0; --k)
            if (parts[k] != 0)
                return parts[k] > 0 ? 1 : -1;
        return 0;
    }
};

// The one of two neighbouring floats that is nearer to (S N + m T) / ((n + m) N), which is between them; from S N.
__device__ inline double nearer(double near, bool upwards, ExactSum &difference, double count, double m,
                                      double total, double number) {
    Long bits = __double_as_longlong(near);
    double other = __longlong_as_double(bits + (upwards == (near > 0) ? 1 : -1)), half = 0.5 * (other - near);
    difference.add_product(m, total);
    for (double factor : {count, m}) {
        Pair product = two_product(factor, number);
        for (double part : {product.low, product.high}) {
            difference.add_product(-near, part);
            difference.add(-half * part);
        }
    }
    int side = difference.sign();
    if (side == 0)
        return bits & 1 ? other : near;
    return (side > 0) == (half > 0) ? other : near;
}

struct Found {
    double value;
    bool sure, upwards;
};

// (S + m mu) / (n + m), as in `near_estimate` of cpu_fallback/compiled/estimates.py; S and m mu are pairs with their
// remainders.
__device__ inline Found near_estimate(double own, double count, double m, double high, double left_of_both) {
    Pair top = two_sum(own, high), bottom = two_sum(count, m);
    double rest = top.low + left_of_both, share = 1.0 / bottom.high, first = top.high * share;
    Pair product = two_product(first, bottom.high);
    double left = (top.high - product.high) - product.low, change = (left + (rest - first * bottom.low)) * share;
    double near = first + change, off = change - (near - first);
    return {near, near + off * (1.0 + 0x1p-16) == near && fabs(top.high) >= 0x1p-16 * fabs(own), off > 0};
}

// e to the power of a number that is not NaN, by the steps of cpu_fallback/compiled/elementary.py.
__device__ inline double exponential(double value) {
    double clipped = fmin(fmax(value, -800.0), 800.0), to_whole = 1.5 * 0x1p52;
    double power = (clipped * 1.44269504088896338700e+00 + to_whole) - to_whole;
    double high = clipped - power * 6.93147180369123816490e-01, low = power * 1.90821492927058770002e-10;
    double reduced = high - low, square = reduced * reduced;
    double series = -1.65339022054652515390e-06 + square * 4.13813679705723846039e-08;
    series = 6.61375632143793436117e-05 + square * series;
    series = -2.77777777770155933842e-03 + square * series;
    series = 1.66666666666666019037e-01 + square * series;
    double correction = reduced - square * series;
    double result = 1.0 - ((low - (reduced * correction) / (2.0 - correction)) - high);
    // The result of the first step is a normal number, so only the second step rounds.
    Long exponent = Long(power), half = exponent >> 1;
    return result * __longlong_as_double((half + 1023) << 52) * __longlong_as_double((exponent - half + 1023) << 52);
}

// The weighted mean of a category's mean and the prior, as in `blend_near` of cpu_fallback/compiled/shrinkage.py.
__device__ inline double blended(double mu, double mean, double other) {
    bool nearer_mean = 1.0 >= other;
    double part = (nearer_mean ? other : 1.0) / (1.0 + other), begin = nearer_mean ? mean : mu;
    double end = nearer_mean ? mu : mean, between = begin + part * (end - begin);
    return other == 0 ? mean : between;
}

// The encoding, other than an m-estimate, of a category of `weight` rows, from its mean and n Q - S^2 = spread *
// 2^exponent.
__device__ inline double smoothed(double mean, double weight, double spread, int exponent, const Rule &rule,
                                  const Prior &prior) {
    if (rule.smoothing == SIGMOID)
        return blended(prior.mu, mean, exponential(-((weight - rule.first) / rule.second)));
    if (rule.smoothing == EMPIRICAL_BAYES) {
        double noise = spread / weight / weight;
        double scale = __longlong_as_double(Long(1023 + exponent - prior.exponent) << 52);
        return blended(prior.mu, mean, noise == 0 ? 0.0 : noise / (prior.fraction * weight) * scale);
    }
    return mean;
}

// An m-estimate as a float32; returns whether it is decided.  Its error is at most 2^-50 (|S + m mu| + |m mu|) / (n +
// m): the relative error of S is at most three times 2^-53; S + m mu, n + m, its inverse and their product are rounded
// once, and m mu twice.
__device__ inline bool quick_estimate(double own, double count, const Rule &rule, const Prior &prior, float &found) {
    double share = __drcp_rn(count + rule.first), top = own + prior.high, value = top * share;
    double error = (fabs(top) + fabs(prior.high)) * (share * 0x1p-50);
    found = __double2float_rn(value - error);
    bool alike = __float_as_uint(found) == __float_as_uint(__double2float_rn(value + error));
    return (prior.rest == prior.rest) & ((alike & is_normal(found)) | ((top == 0) & (prior.mu == 0)));
}
