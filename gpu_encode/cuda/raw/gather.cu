// Kernels that look the encodings of rows up by category and fold, for entries of 8 to 64 bits.  Each thread reads and
// writes four neighbouring rows as one vector.

#include "rows.cuh"

__device__ inline void store_four(unsigned char *to, const unsigned char (&values)[4]) {
    *reinterpret_cast<uchar4 *>(to) = uchar4{values[0], values[1], values[2], values[3]};
}

__device__ inline void store_four(unsigned short *to, const unsigned short (&values)[4]) {
    *reinterpret_cast<ushort4 *>(to) = ushort4{values[0], values[1], values[2], values[3]};
}

__device__ inline void store_four(unsigned *to, const unsigned (&values)[4]) {
    *reinterpret_cast<uint4 *>(to) = uint4{values[0], values[1], values[2], values[3]};
}

__device__ inline void store_four(Word *to, const Word (&values)[4]) {
    reinterpret_cast<ulonglong2 *>(to)[0] = ulonglong2{values[0], values[1]};
    reinterpret_cast<ulonglong2 *>(to)[1] = ulonglong2{values[2], values[3]};
}

// Bytes of a vector of entries: four, or two of 64 bits.
template <typename Entry> __device__ inline Word vector_bytes() { return sizeof(Entry) == 8 ? 16 : 4 * sizeof(Entry); }

// Write the first n of four values, some places apart.
template <typename Entry> __device__ inline void store(Entry *to, Long step, int n, const Entry (&values)[4]) {
    if (n == 4 && step == 1 && reinterpret_cast<Word>(to) % vector_bytes<Entry>() == 0) {
        store_four(to, values);
    } else {
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (k < n)
                to[k * step] = values[k];
    }
}

// Line of a category; a negative code counts from the end.
__device__ inline Long line_of(int code, unsigned n_lines) { return unsigned(code) + (code < 0 ? n_lines : 0); }

// Look up all outputs of every row; `by_row` and `by_output`: distance of two rows and of two outputs.
template <typename Entry>
__device__ inline void gather(const Entry *__restrict__ table, Long n_lines, Long n_folds, Long n_outputs,
                              Codes codes, Long size, Folds folds, Long by_row, Long by_output,
                              Entry *__restrict__ out) {
    // What is written begins at a vector, but for the first rows of an output that does not.
    Long before = Long(reinterpret_cast<Word>(out) % vector_bytes<Entry>()) / Long(sizeof(Entry));
    Long thread = Long(blockIdx.x) * blockDim.x + threadIdx.x, turn = 4 * Long(gridDim.x) * blockDim.x;
    for (Long begin = 4 * thread - before; begin < size; begin += turn) {
        Long row = max(begin, Long(0));
        int code[4], n = int(min(begin + 4, size) - row);
        unsigned fold[4] = {0, 0, 0, 0};
        codes.of_four(row, n, code);
        folds.of_four(row, n, fold);
        // Rows beyond the last one read the first entry, so that no branch stands between the loads.
        Long places[4] = {0, 0, 0, 0};
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (k < n)
                places[k] = (line_of(code[k], unsigned(n_lines)) * unsigned(n_folds) + fold[k]) * n_outputs;
#pragma unroll 1
        for (Long output = 0; output < n_outputs; ++output) {
            Entry found[4];
#pragma unroll
            for (int k = 0; k < 4; ++k)
                found[k] = table[places[k] + output];
            store(out + row * by_row + output * by_output, by_row, n, found);
        }
    }
}

#define TABLE(Entry) ARRAY(const Entry, table), Long n_lines, Long n_folds
#define ROWS CODES, FOLDS
#define OUT(Entry) Long by_row, Long by_output, ARRAY(Entry, out)

extern "C" __global__ void __launch_bounds__(256) gather_one_8(TABLE(unsigned char), ROWS, ARRAY(unsigned char, out)) {
    gather(table, n_lines, n_folds, 1, GIVEN_CODES, codes_size, GIVEN_FOLDS, 1, 0, out);
}

extern "C" __global__ void __launch_bounds__(256) gather_one_16(TABLE(unsigned short), ROWS, ARRAY(unsigned short, out)) {
    gather(table, n_lines, n_folds, 1, GIVEN_CODES, codes_size, GIVEN_FOLDS, 1, 0, out);
}

extern "C" __global__ void __launch_bounds__(256) gather_one_32(TABLE(unsigned), ROWS, ARRAY(unsigned, out)) {
    gather(table, n_lines, n_folds, 1, GIVEN_CODES, codes_size, GIVEN_FOLDS, 1, 0, out);
}

extern "C" __global__ void __launch_bounds__(256) gather_one_64(TABLE(Word), ROWS, ARRAY(Word, out)) {
    gather(table, n_lines, n_folds, 1, GIVEN_CODES, codes_size, GIVEN_FOLDS, 1, 0, out);
}

extern "C" __global__ void __launch_bounds__(256)
    gather_several_8(TABLE(unsigned char), Long n_outputs, ROWS, OUT(unsigned char)) {
    gather(table, n_lines, n_folds, n_outputs, GIVEN_CODES, codes_size, GIVEN_FOLDS, by_row, by_output, out);
}

extern "C" __global__ void __launch_bounds__(256)
    gather_several_16(TABLE(unsigned short), Long n_outputs, ROWS, OUT(unsigned short)) {
    gather(table, n_lines, n_folds, n_outputs, GIVEN_CODES, codes_size, GIVEN_FOLDS, by_row, by_output, out);
}

extern "C" __global__ void __launch_bounds__(256)
    gather_several_32(TABLE(unsigned), Long n_outputs, ROWS, OUT(unsigned)) {
    gather(table, n_lines, n_folds, n_outputs, GIVEN_CODES, codes_size, GIVEN_FOLDS, by_row, by_output, out);
}

extern "C" __global__ void __launch_bounds__(256)
    gather_several_64(TABLE(Word), Long n_outputs, ROWS, OUT(Word)) {
    gather(table, n_lines, n_folds, n_outputs, GIVEN_CODES, codes_size, GIVEN_FOLDS, by_row, by_output, out);
}
