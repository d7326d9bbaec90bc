// Four neighbouring numbers, read as vectors if they are aligned.

typedef long long Long;
typedef unsigned long long Word;

// The data of one instruction: four numbers, or two of 64 bits.
template <typename Number> struct alignas(4 * sizeof(Number)) Four {
    Number x, y, z, w;
};
template <typename Number> struct alignas(16) Two {
    Number x, y;
};

template <typename Number> __device__ inline void read_four(const Number *from, bool aligned, Number (&into)[4]) {
    if (!aligned) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
            into[j] = from[j];
    } else if constexpr (sizeof(Number) == 8) {
        Two<Number> first = reinterpret_cast<const Two<Number> *>(from)[0];
        Two<Number> second = reinterpret_cast<const Two<Number> *>(from)[1];
        into[0] = first.x, into[1] = first.y, into[2] = second.x, into[3] = second.y;
    } else {
        Four<Number> found = *reinterpret_cast<const Four<Number> *>(from);
        into[0] = found.x, into[1] = found.y, into[2] = found.z, into[3] = found.w;
    }
}

template <typename Number> __device__ inline void write_four(Number *to, bool aligned, const Number (&from)[4]) {
    if (!aligned) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
            to[j] = from[j];
    } else if constexpr (sizeof(Number) == 8) {
        reinterpret_cast<Two<Number> *>(to)[0] = Two<Number>{from[0], from[1]};
        reinterpret_cast<Two<Number> *>(to)[1] = Two<Number>{from[2], from[3]};
    } else {
        *reinterpret_cast<Four<Number> *>(to) = Four<Number>{from[0], from[1], from[2], from[3]};
    }
}

// Only the first n numbers exist.
template <typename Number> __device__ inline void load(const Number *from, int n, Number (&into)[4]) {
    if (n >= 4 && (reinterpret_cast<Word>(from) & 15) == 0) {
        read_four(from, true, into);
    } else {
#pragma unroll
        for (int k = 0; k < 4; ++k)
            into[k] = k < n ? from[k] : 0;
    }
}
