// Integers of several 32-bit words, the lowest first; signed ones are in two's complement.

template <int n> __device__ inline void clear(unsigned (&number)[n]) {
#pragma unroll
    for (int k = 0; k < n; ++k)
        number[k] = 0;
}

template <int n> __device__ inline void add(unsigned (&to)[n], const unsigned (&more)[n]) {
    Word carried = 0;
#pragma unroll
    for (int k = 0; k < n; ++k) {
        carried += Word(to[k]) + more[k];
        to[k] = unsigned(carried);
        carried >>= 32;
    }
}

template <int n> __device__ inline void negate_if(bool negative, unsigned (&number)[n]) {
    unsigned flipped = negative ? ~0u : 0;
    Word carried = negative;
#pragma unroll
    for (int k = 0; k < n; ++k) {
        carried += number[k] ^ flipped;
        number[k] = unsigned(carried);
        carried >>= 32;
    }
}

// The product of two unsigned numbers, as far as it fits.
template <int n, int m, int size>
__device__ inline void multiply(const unsigned (&left)[n], const unsigned (&right)[m], unsigned (&product)[size]) {
    clear(product);
#pragma unroll
    for (int i = 0; i < n; ++i) {
        Word carried = 0;
#pragma unroll
        for (int k = 0; k <= m && i + k < size; ++k) {
            carried += product[i + k];
            if (k < m)
                carried += Word(left[i]) * right[k < m ? k : 0];
            product[i + k] = unsigned(carried);
            carried >>= 32;
        }
    }
}

// An unsigned number as a double, rounded once.
template <int n> __device__ inline double rounded(const unsigned (&number)[n]) {
    unsigned first = 0, second = 0, third = 0, below = 0, lowest = 0;
    int exponent = 0;
#pragma unroll
    for (int k = 0; k < n; ++k) {
        lowest |= k > 2 ? number[k > 2 ? k - 3 : 0] : 0;
        if (number[k]) {
            first = number[k], second = k > 0 ? number[k > 0 ? k - 1 : 0] : 0;
            third = k > 1 ? number[k > 1 ? k - 2 : 0] : 0, below = lowest;
            exponent = 32 * (k - 1);
        }
    }
    int ahead = first ? __clz(int(first)) : 0;
    Word high = Word(first) << 32 | second;
    if (ahead)
        high = high << ahead | third >> (32 - ahead);
    // The bits below 64 bits only say on which side of a midpoint the number is.
    double unit = __longlong_as_double(Long(1023 + exponent - ahead) << 52);
    return double(high | ((third << ahead | below) != 0)) * unit;
}

// An unsigned number as a pair, with a relative error of at most 2^-100.
template <int n> __device__ inline Pair pair_of(const unsigned (&number)[n]) {
    double high = number[n - 1], low = 0;
#pragma unroll
    for (int k = n - 2; k >= 0; --k) {
        high *= 0x1p32, low *= 0x1p32;
        double word = number[k], sum = high + word;
        low += word - (sum - high);
        high = sum;
    }
    return two_sum(high, low);
}

// The same as one double, with a relative error of at most three times 2^-53.
template <int n> __device__ inline double nearly(const unsigned (&number)[n]) {
    double sum = 0, unit = 1;
#pragma unroll
    for (int k = 0; k < n; ++k) {
        sum += number[k] * unit;
        unit *= 0x1p32;
    }
    return sum;
}
