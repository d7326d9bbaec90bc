// Encodings of many keys by the categories of a model: the encodings of all cells, and how many rows have no category.

#include "rows.cuh"

#include "keys.cuh"

// How many numbers describe the categories of a key; gpu_encode/cuda/key_lookups.py makes them.
enum { CATEGORY_NUMBERS = 4 };

#define CATEGORIES ARRAY(const Long, described), ARRAY(const unsigned, category_cells)
#define CATEGORIES_OF(key, number)                                                                                    \
    Categories { key, described + (number) * CATEGORY_NUMBERS, category_cells }

extern __shared__ __align__(16) unsigned table[];

// The sorted cells of a key's categories; the line after theirs is for unknown values.  In each column, the last two
// codes are a missing and an unknown value.  Unless `missing` is negative, it is the line of rows that lack a value.
struct Categories {
    const Key &key;
    const unsigned *cells;
    unsigned n;
    Word first_value;
    Long missing;

    __device__ Categories(const Key &key, const Long *own, const unsigned *cells)
        : key(key), cells(cells + own[0]), n(unsigned(own[1])), first_value(Word(own[2])), missing(own[3]) {}

    __device__ bool lacks_value(unsigned cell) const {
        for (Long k = Long(key.n_columns) - 1; k >= 0; --k) {
            unsigned radix = unsigned(key.columns[k * COLUMN_NUMBERS + 2]);
            if (cell % radix == radix - 2)
                return true;
            cell /= radix;
        }
        return false;
    }
    __device__ unsigned line_of(unsigned cell) const {
        if (missing >= 0 && lacks_value(cell))
            return unsigned(missing);
        unsigned low = 0, high = n;
        while (low < high) {
            unsigned middle = (low + high) / 2;
            if (cells[middle] < cell)
                low = middle + 1;
            else
                high = middle;
        }
        return low < n && cells[low] == cell ? low : n;
    }
};

// Write the encodings of every cell of all keys: `width` numbers each.  The counts of unknown rows begin at 0.
extern "C" __global__ void __launch_bounds__(256)
    spread_keys(ARRAY(const Long, plan), Long n_keys, Long n_cells, CATEGORIES, Long width,
                ARRAY(const ENTRY, values), ARRAY(ENTRY, entries), ARRAY(Word, unknown)) {
    Word step = Word(gridDim.x) * blockDim.x;
    for (Word cell = Word(blockIdx.x) * blockDim.x + threadIdx.x; cell < Word(n_cells); cell += step) {
        if (cell < Word(n_keys))
            unknown[cell] = 0;
        Long number = key_of(plan, n_keys, cell);
        Key key = Key::at(plan, number);
        Categories categories = CATEGORIES_OF(key, number);
        Word line = categories.line_of(unsigned(cell - key.first_cell));
        const ENTRY *from = values + categories.first_value + line * Word(width);
        for (Long k = 0; k < width; ++k)
            entries[cell * Word(width) + k] = from[k];
    }
}

__device__ inline unsigned code_at(const Column &column, Long row) {
    if (column.bytes == 1)
        return column.codes[row];
    if (column.bytes == 2)
        return reinterpret_cast<const unsigned short *>(column.codes)[row];
    return reinterpret_cast<const unsigned *>(column.codes)[row];
}

// Count the rows whose category is unknown, by key: among the rows 0, stride, 2 * stride and so on.  A block takes a
// chunk of these rows, of one key.
extern "C" __global__ void __launch_bounds__(512)
    count_unknown(KEYS, Long stride, CATEGORIES, ARRAY(Word, unknown)) {
    Column *columns = reinterpret_cast<Column *>(table);
    Long number = Long(blockIdx.x) % n_keys;
    Key key = Key::at(plan, number);
    read_columns(columns, key, codes, LAST_COLUMN);
    Categories categories = CATEGORIES_OF(key, number);
    Long begin = Long(blockIdx.x) / n_keys * chunk, end = min(begin + chunk, (n_rows + stride - 1) / stride);
    unsigned found = 0;
    for (Long row = begin + threadIdx.x; row < end; row += blockDim.x) {
        unsigned cell = 0;
        for (unsigned k = 0; k < key.n_columns; ++k)
            cell = cell * columns[k].radix + code_at(columns[k], row * stride);
        found += categories.line_of(cell) == categories.n;
    }
    if (found)
        atomicAdd(unknown + number, Word(found));
}
