// Numbers of about 106 bits, as sums of two doubles.  cpu_fallback/compiled/closed_forms.py gives the error of each
// step. No step may overflow; a product below 2^-1022 loses at most 2^-1074.

struct Pair {
    double high, low;
};

// a + b, exactly (Knuth).
__device__ inline Pair two_sum(double a, double b) {
    double sum = a + b, of_b = sum - a;
    return Pair{sum, (a - (sum - of_b)) + (b - of_b)};
}

// a * b, exactly.
__device__ inline Pair two_product(double a, double b) {
    double product = a * b;
    return Pair{product, __fma_rn(a, b, -product)};
}

__device__ inline Pair plus(Pair a, Pair b) {
    Pair sum = two_sum(a.high, b.high);
    return Pair{sum.high, sum.low + (a.low + b.low)};
}

__device__ inline Pair minus(Pair a, Pair b) { return plus(a, Pair{-b.high, -b.low}); }

__device__ inline Pair times(Pair a, double b) {
    Pair product = two_product(a.high, b);
    return Pair{product.high, __fma_rn(a.low, b, product.low)};
}

__device__ inline Pair times(Pair a, Pair b) {
    Pair product = two_product(a.high, b.high);
    return Pair{product.high, __fma_rn(a.high, b.low, __fma_rn(a.low, b.high, product.low))};
}

// Whether the float to which a double was rounded is a normal number.  It looks at the bits, since comparisons of
// floats treat the smallest ones as zero.
__device__ inline bool is_normal(float value) { return (__float_as_uint(value) << 1) - 0x01000000u < 0xFE000000u; }
