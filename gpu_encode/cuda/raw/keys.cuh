// Many keys of columns of codes: a row's cell is the mixed-radix number of its codes in the key's columns, the last of
// which is the fold, or the fold and the class.  gpu_encode/cuda/keys_by_fold.py makes the plan.

// How many numbers of the plan describe a key, and how many describe a column of a key.
enum { KEY_NUMBERS = 7, COLUMN_NUMBERS = 3 };
// Most columns of a key, folds included. A block describes them in shared memory, before its table.
enum : unsigned { MOST_COLUMNS = 16, PLAN_WORDS = 4 * MOST_COLUMNS };

// Arguments of all kernels that walk over rows: a block takes a chunk of rows of one key. All keys have the same last
// column.
#define KEYS                                                                                                          \
    ARRAY(const unsigned char, codes), ARRAY(const Long, plan), Long n_keys, Long n_rows, Long chunk,                 \
        ARRAY(const unsigned char, last), Long last_bytes, Long last_radix
#define LAST_COLUMN                                                                                                   \
    Column { last, unsigned(last_bytes), unsigned(last_radix) }

struct Key {
    const Long *columns;
    unsigned n_columns, n_cells;
    Word first_cell;
    Long missing, line;
    unsigned copies;

    __device__ static Key at(const Long *plan, Long number) {
        const Long *own = plan + number * KEY_NUMBERS;
        return Key{plan + own[0], unsigned(own[1]), unsigned(own[2]), Word(own[3]), own[4], own[5], unsigned(own[6])};
    }
};

// Number of the key that a cell belongs to.
__device__ inline Long key_of(const Long *plan, Long n_keys, Word cell) {
    Long low = 0, high = n_keys;
    while (high - low > 1) {
        Long middle = (low + high) / 2;
        (Word(plan[middle * KEY_NUMBERS + 3]) <= cell ? low : high) = middle;
    }
    return low;
}

// The codes of a column, the bytes of a code, and the number of different codes.
struct alignas(16) Column {
    const unsigned char *codes;
    unsigned bytes, radix;
};

// Describe the columns of the block's key in shared memory; all threads wait.
__device__ inline void read_columns(Column *columns, const Key &key, const unsigned char *codes, const Column &last) {
    if (threadIdx.x < key.n_columns) {
        const Long *own = key.columns + threadIdx.x * COLUMN_NUMBERS;
        columns[threadIdx.x] = Column{codes + own[0], unsigned(own[1]), unsigned(own[2])};
    }
    if (threadIdx.x == 0)
        columns[key.n_columns] = last;
    __syncthreads();
}

template <typename Code>
__device__ inline void append(const Column &column, Long row, unsigned (&cells)[4]) {
    Code found[4];
    read_four(reinterpret_cast<const Code *>(column.codes) + row, true, found);
#pragma unroll
    for (int j = 0; j < 4; ++j)
        cells[j] = cells[j] * column.radix + found[j];
}

// Compute the cells of four neighbouring rows. Columns are padded: reading past the last row is safe.
__device__ inline void cells_of_four(const Column *columns, unsigned n_columns, Long row, unsigned (&cells)[4]) {
    cells[0] = cells[1] = cells[2] = cells[3] = 0;
#pragma unroll 1
    for (unsigned k = 0; k < n_columns; ++k) {
        Column column = columns[k];
        if (column.bytes == 1)
            append<unsigned char>(column, row, cells);
        else if (column.bytes == 2)
            append<unsigned short>(column, row, cells);
        else
            append<unsigned>(column, row, cells);
    }
}

// Call use(row, cells, n) for every four rows of a block's chunk; only the first n of the four exist.
template <typename Use>
__device__ inline void each_four(const Column *columns, unsigned n_columns, Long begin, Long end, Use use) {
    for (Long row = begin + 4 * threadIdx.x; row < end; row += 4 * blockDim.x) {
        unsigned cells[4];
        cells_of_four(columns, n_columns, row, cells);
        use(row, cells, int(min(end - row, Long(4))));
    }
}
