// Four neighbouring numbers: as vectors, where they lie on such.

typedef long long Long;
typedef unsigned long long Word;

// What one instruction moves of them: 16 bytes at most.
template <typename Number> struct alignas(sizeof(Number) < 4 ? 4 * sizeof(Number) : 16) Vector {
    enum : int { LENGTH = sizeof(Number) < 8 ? 4 : 2 };
    Number numbers[LENGTH];
};

template <typename Number> __device__ inline void read_four(const Number *from, bool aligned, Number (&into)[4]) {
    constexpr int LENGTH = Vector<Number>::LENGTH;
    if (!aligned) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
            into[j] = from[j];
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; k += LENGTH) {
        Vector<Number> found = reinterpret_cast<const Vector<Number> *>(from)[k / LENGTH];
#pragma unroll
        for (int j = 0; j < LENGTH; ++j)
            into[k + j] = found.numbers[j];
    }
}

template <typename Number> __device__ inline void write_four(Number *to, bool aligned, const Number (&from)[4]) {
    constexpr int LENGTH = Vector<Number>::LENGTH;
    if (!aligned) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
            to[j] = from[j];
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; k += LENGTH) {
        Vector<Number> given;
#pragma unroll
        for (int j = 0; j < LENGTH; ++j)
            given.numbers[j] = from[k + j];
        reinterpret_cast<Vector<Number> *>(to)[k / LENGTH] = given;
    }
}

// Those of which the first n are there.
template <typename Number> __device__ inline void load(const Number *from, int n, Number (&into)[4]) {
    if (n >= 4 && reinterpret_cast<Word>(from) % sizeof(Vector<Number>) == 0) {
        read_four(from, true, into);
    } else {
#pragma unroll
        for (int k = 0; k < 4; ++k)
            into[k] = k < n ? from[k] : 0;
    }
}
