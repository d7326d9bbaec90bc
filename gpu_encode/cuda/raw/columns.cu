// Columns of whole numbers, all in one launch: their ranges, the numbers that occur, and codes in as few bytes as they
// need.  Neighbouring blocks read the same rows of different columns, which may be columns of one matrix.

#include "ends.cuh"

// How many numbers of the plan describe a column; gpu_encode/cuda/columns.py makes the plan.
enum { COLUMN_NUMBERS = 9 };

#define COLUMNS ARRAY(const Word, plan), Long n_columns, Long n_rows
#define OWN_COLUMN Column::at(plan + blockIdx.x % n_columns * COLUMN_NUMBERS, n_columns, n_rows)

// Whether a distance is below a size; sizes are below 2^32.
template <typename Key> __device__ inline bool is_inside(Key distance, Word size) {
    return sizeof(Key) == 8 ? distance < size : unsigned(distance) < unsigned(size);
}

template <typename Narrow> __device__ inline void write_as(unsigned char *to, const unsigned (&from)[4]) {
    Narrow narrow[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
        narrow[k] = static_cast<Narrow>(from[k]);
    write_four(reinterpret_cast<Narrow *>(to), true, narrow);
}

// Numbers of `bytes` bytes, each `step` bytes after the one before; what `base`, `size`, `table`, `out`, `out_bytes` and
// `last` are, each kernel says.
struct Column {
    const unsigned char *numbers;
    Long step;
    unsigned bytes;
    Word base, size, table, out;
    unsigned out_bytes, last;
    Long n_rows, first, turn;

    __device__ static Column at(const Word *own, Long n_columns, Long n_rows) {
        return Column{reinterpret_cast<const unsigned char *>(own[0]),
                      Long(own[1]),
                      unsigned(own[2]),
                      own[3],
                      own[4],
                      own[5],
                      own[6],
                      unsigned(own[7]),
                      unsigned(own[8]),
                      n_rows,
                      4 * (blockIdx.x / n_columns * blockDim.x + threadIdx.x),
                      4 * (gridDim.x / n_columns * blockDim.x)};
    }

    // Four neighbouring numbers; past the last row, the last number comes again.
    template <typename Key> __device__ void read(Long row, Key (&into)[4]) const {
        const Key *from = reinterpret_cast<const Key *>(numbers) + row;
        constexpr Word BEYOND = sizeof(Key) < 4 ? 4 * sizeof(Key) - 1 : 15;
        if (step == sizeof(Key) && row + 4 <= n_rows && !(reinterpret_cast<Word>(from) & BEYOND)) {
            read_four(from, true, into);
            return;
        }
#pragma unroll
        for (int k = 0; k < 4; ++k)
            into[k] = *reinterpret_cast<const Key *>(numbers + min(row + k, n_rows - 1) * step);
    }

    // Call use(row, numbers) for every four rows of this thread.
    template <typename Key, typename Use> __device__ void each_four(Use use) const {
        for (Long row = first; row < n_rows; row += turn) {
            Key four[4];
            read(row, four);
            use(row, four);
        }
    }

    // Call work(0), where the 0 has the type of the column's numbers, as unsigned words.
    template <typename Work> __device__ void by_width(Work work) const {
        if (bytes == 1)
            work(static_cast<unsigned char>(0));
        else if (bytes == 2)
            work(static_cast<unsigned short>(0));
        else if (bytes == 4)
            work(0u);
        else
            work(Word(0));
    }

    // Write four neighbouring numbers in as many bytes each as the column says; there is room for whole vectors.
    __device__ void write(unsigned char *held, Long row, const unsigned (&four)[4]) const {
        unsigned char *to = held + out + row * out_bytes;
        if (out_bytes == 1)
            write_as<unsigned char>(to, four);
        else if (out_bytes == 2)
            write_as<unsigned short>(to, four);
        else
            write_as<unsigned>(to, four);
    }

    // Write code(inside, distance) for every row: whether its number is one of the `size` from `base` on, and how far
    // it is from `base`.
    template <typename Code> __device__ void write_codes(unsigned char *held, Code code) const {
        by_width([&](auto zero) {
            typedef decltype(zero) Key;
            Key lowest = Key(base);
            each_four<Key>([&](Long row, const Key(&four)[4]) {
                unsigned codes[4];
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    Key distance = Key(four[k] - lowest);
                    codes[k] = code(is_inside(distance, size), unsigned(distance));
                }
                write(held, row, codes);
            });
        });
    }
};

// Write the smallest and the largest number that each block reads; the bits of `base` are flipped for the comparison.
extern "C" __global__ void __launch_bounds__(1024) measure_columns(COLUMNS, ARRAY(Word, ends)) {
    extern __shared__ __align__(16) unsigned table[];
    Column column = OWN_COLUMN;
    Word lowest = ~0ull, highest = 0;
    column.by_width([&](auto zero) {
        typedef decltype(zero) Key;
        Key low = Key(~0ull), high = 0, flip = Key(column.base);
        column.each_four<Key>([&](Long, const Key(&numbers)[4]) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                Key word = numbers[k] ^ flip;
                low = word < low ? word : low, high = word > high ? word : high;
            }
        });
        lowest = low, highest = high;
    });
    reduce_ends(lowest, highest, reinterpret_cast<Word *>(table));
    if (!threadIdx.x)
        ends[2 * blockIdx.x] = lowest, ends[2 * blockIdx.x + 1] = highest;
}

// Write how far numbers are from `base`, and mark which of the `size` distances occur, from `table` on; one more mark is
// for all numbers outside of the range.  A block marks bits in shared memory if there are so many: in global memory, a
// warp's reads of scattered bytes would be served line by line.
extern "C" __global__ void __launch_bounds__(1024)
    mark_columns(COLUMNS, Long most_shared, ARRAY(unsigned char, present), ARRAY(unsigned char, distances)) {
    extern __shared__ __align__(16) unsigned table[];
    Column column = OWN_COLUMN;
    unsigned char *marks = present + column.table;
    unsigned outside = unsigned(column.size), in_shared = outside < Word(most_shared) ? outside + 1 : 0;
    for (unsigned word = threadIdx.x; 32 * word < in_shared; word += blockDim.x)
        table[word] = 0;
    __syncthreads();
    column.write_codes(distances, [&](bool inside, unsigned distance) {
        unsigned offset = inside ? distance : outside;
        // Several threads may mark the same number: all of them write a one.  Most find it marked already.
        if (in_shared) {
            unsigned bit = 1u << offset % 32;
            if (!(table[offset / 32] & bit))
                atomicOr(table + offset / 32, bit);
        } else if (!marks[offset])
            marks[offset] = 1;
        return offset;
    });
    __syncthreads();
    for (unsigned offset = threadIdx.x; offset < in_shared; offset += blockDim.x)
        if (table[offset / 32] >> offset % 32 & 1)
            marks[offset] = 1;
}

// Write the codes of all columns.  The distance from `base` is the code, or an index into the ranks at the address
// `table`; numbers that are not among the `size` from `base` on have the code `last`.
extern "C" __global__ void __launch_bounds__(1024) narrow_columns(COLUMNS, ARRAY(unsigned char, codes)) {
    Column column = OWN_COLUMN;
    const int *ranks = reinterpret_cast<const int *>(column.table);
    column.write_codes(codes, [&](bool inside, unsigned distance) {
        return !inside ? column.last : ranks ? unsigned(ranks[distance] - 1) : distance;
    });
}
