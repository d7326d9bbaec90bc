// From counts of rows to an encoding, with the bits of the definition.

#include "smoothing.cuh"

__device__ __noinline__ double nearer_of_count(double near, bool upwards, double own, double count, double m,
                                               double total, double number) {
    ExactSum sum;
    sum.add_product(own, number);
    return nearer(near, upwards, sum, count, m, total, number);
}

// m-estimates, as in `whole_estimate` and `near_estimate` of cpu_fallback/compiled/estimates.py.
__device__ inline Found estimate(double own, double count, const Rule &rule, const Prior &prior) {
    double whole = (count + rule.first) * prior.number;
    if (whole < rule.below)
        return {(own * prior.number + prior.weighed) / whole, true, false};
    return near_estimate(own, count, rule.first, prior.high, prior.rest);
}

// The same; if that does not decide, by the exact sign, unless numbers are near the ends of the range of floats or
// cancel.
__device__ inline Found settled(double own, double count, const Rule &rule, const Prior &prior, double total) {
    Found found = estimate(own, count, rule, prior);
    if (!found.sure && prior.rest == prior.rest && fabs(own + prior.high) >= 0x1p-16 * fabs(own)) {
        double above = rule.by_mean ? total : rule.prior, number = rule.by_mean ? prior.number : 1.0;
        found = {nearer_of_count(found.value, found.upwards, own, count, rule.first, above, number), true, false};
    }
    return found;
}

// The encoding, other than an m-estimate, of a category of which a row sees `count` rows, `own` in the output's class.
__device__ inline double encode(unsigned own, unsigned count, const Rule &rule, const Prior &prior) {
    return smoothed(double(own) / count, count, double(Word(own) * (count - own)), 0, rule, prior);
}

// The encoding of most rows; returns whether it is decided.
__device__ inline bool quickly(unsigned own, unsigned count, const Rule &rule, const Prior &prior, float &found) {
    if (ESTIMATES)
        return quick_estimate(own, count, rule, prior, found);
    double value = encode(own, count, rule, prior);
    found = __double2float_rn(value);
    return is_normal(found) || value == 0;
}

__device__ inline bool quickly(unsigned own, unsigned count, const Rule &rule, const Prior &prior, double &found) {
    Found near{0, true, false};
    if (ESTIMATES)
        near = estimate(own, count, rule, prior);
    else
        near.value = encode(own, count, rule, prior);
    found = near.value;
    return near.sure && found == found;
}
