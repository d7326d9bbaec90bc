// Kernels that add rows to cells.  Each thread reads four neighbouring rows as vectors, and adds them one by one.

#include "rows.cuh"
#include "digits.cuh"

#define ROWS                                                                                                          \
    CODES, ARRAY(const int, classes), ARRAY(const Word, target), ARRAY(const Word, weight), FOLDS,                    \
        ARRAY(const Long, plan)
#define GIVEN_ROWS                                                                                                    \
    Rows { GIVEN_CODES, classes, target, weight, GIVEN_FOLDS, plan }

// Add the two halves of a digit to their words.
__device__ inline void add_halves(unsigned digit, Long sign, unsigned *word, unsigned step) {
    if (digit & 0xFFFF)
        atomicAdd(word, unsigned(apply_sign(digit & 0xFFFF, sign)));
    if (digit >> 16)
        atomicAdd(word + step, unsigned(apply_sign(digit >> 16, sign)));
}

// Add weight * target^power of a row to its words, which are some positions apart; digits without a word go to the
// cell.
__device__ inline void add_to_table(int power, const Factors &factors, const Long *measure, unsigned *word,
                                    unsigned step, Long *cell) {
    if (measure[WORDS] == 1) {
        atomicAdd(word, 1u);
    } else if (measure[IS_WHOLE]) {
        Number number = whole_number(power, factors);
        add_halves(unsigned(number.first), number.sign, word, step);
        add_halves(unsigned(number.first >> 32), number.sign, word + 2 * step, step);
    } else {
        each_digit(power, factors, measure, [&](Long column, unsigned digit, Long sign) {
            if (column < measure[COLUMNS])
                add_halves(digit, sign, word + 2 * unsigned(column) * step, step);
            else
                add_to(cell + column, apply_sign(digit, sign));
        });
    }
}

// Add a row to its slot in the tables of the block.
__device__ inline void add_in_table(const Factors &factors, const Long *plan, unsigned *table, Long slot, Long *cell) {
    unsigned step = unsigned(plan[IN_TABLE]);
    unsigned *word = table + (threadIdx.x & unsigned(plan[COPIES] - 1)) * unsigned(plan[SIZE]) + slot;
#pragma unroll 1
    for (int power = 0; power < 3; ++power, plan += LINE)
        if (plan[KEPT]) {
            add_to_table(power, factors, plan, word, step, cell);
            word += unsigned(plan[WORDS]) * step;
            cell += plan[MEASURE_WIDTH];
        }
}

__device__ inline void clear(const Long *plan, unsigned *table) {
    for (unsigned word = threadIdx.x; word < unsigned(plan[COPIES] * plan[SIZE]); word += blockDim.x)
        table[word] = 0;
}

// Sum of the copies of a word, which are cleared.
__device__ inline Long take(const Long *plan, unsigned *word) {
    Long total = 0;
    for (unsigned copy = 0; copy < unsigned(plan[COPIES]); ++copy, word += plan[SIZE]) {
        total += int(*word);
        *word = 0;
    }
    return total;
}

// Add what the tables of the block have in a slot to the cell.
__device__ inline void move_slot(const Long *plan, unsigned *word, Long *cell) {
    for (int power = 0; power < 3; ++power) {
        const Long *measure = plan + LINE * power;
        for (Long column = 0; column < measure[COLUMNS]; ++column) {
            Long total = 0;
            for (Long half = 0; half < measure[WORDS] / measure[COLUMNS]; ++half, word += plan[IN_TABLE])
                total += take(plan, word) * (Long(1) << 16 * half);
            if (total)
                add_to(cell + column, total);
        }
        cell += measure[MEASURE_WIDTH];
    }
}

struct Rows {
    Codes codes;
    const int *classes;
    const Word *target, *weight;
    Folds folds;
    const Long *plan;
};

// Raw words of the targets of four rows, of which the first n exist; words of 32 bits are extended to 64.
__device__ inline void load_target(const Rows &rows, Long first, int n, Word (&target)[4]) {
    if (rows.plan[TARGET_BYTES] == 8) {
        load(rows.target + first, n, target);
        return;
    }
    unsigned narrow[4];
    load(reinterpret_cast<const unsigned *>(rows.target) + first, n, narrow);
#pragma unroll
    for (int k = 0; k < 4; ++k)
        target[k] = widened(narrow[k]);
}

// Call add(line, position in the line, factors) for this thread's rows, four neighbouring ones at a time, a turn apart.
template <typename Add> __device__ inline void each_row(Rows &rows, Long begin, Long end, Long turn, Add add) {
    const Long *plan = rows.plan;
    int target_kind = int(plan[TARGET_KIND]), weight_kind = int(plan[WEIGHT_KIND]);
    for (Long first = begin; first < end; first += turn) {
        int n = int(min(end - first, Long(4))), code[4], label[4] = {0, 0, 0, 0};
        unsigned inside[4] = {0, 0, 0, 0};
        Word target[4] = {0, 0, 0, 0};
        rows.codes.of_four(first, n, code);
        if (plan[CLASS_STEP])
            load(rows.classes + first, n, label);
        if (target_kind != ABSENT)
            load_target(rows, first, n, target);
        rows.folds.of_four(first, n, inside);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            inside[k] = inside[k] * unsigned(plan[N_CLASSES]) + label[k];
        // Rows move up to the first position, which the code for one row reads: this code is long, and appears only
        // once.
#pragma unroll 1
        for (Long row = first; row < first + n; ++row) {
            Word weight = weight_kind == ABSENT ? 0 : rows.weight[row];
            Long line = code[0] < 0 ? code[0] + plan[N_LINES] : code[0];
            add(line, inside[0], Factors{target[0], weight, target_kind, weight_kind});
#pragma unroll
            for (int k = 0; k < 3; ++k)
                code[k] = code[k + 1], inside[k] = inside[k + 1], target[k] = target[k + 1];
        }
    }
}

// Add all rows to their cells.
extern "C" __global__ void __launch_bounds__(768) add_in_cells(ROWS, ARRAY(Long, cells)) {
    Rows rows = GIVEN_ROWS;
    Long first = 4 * (Long(blockIdx.x) * blockDim.x + threadIdx.x), turn = 4 * Long(gridDim.x) * blockDim.x;
    each_row(rows, first, codes_size, turn, [&](Long line, unsigned inside, const Factors &factors) {
        add_in_memory(factors, plan, cells + (line * plan[IN_LINE] + inside) * plan[WIDTH]);
    });
}

// Add all rows in tables; after each chunk, a block adds its tables to the cells.
extern "C" __global__ void __launch_bounds__(768) add_in_tables(ROWS, ARRAY(Long, cells)) {
    extern __shared__ unsigned table[];
    Rows rows = GIVEN_ROWS;
    Long chunk = plan[CHUNK];
    clear(plan, table);
    for (Long begin = blockIdx.x * chunk; begin < codes_size; begin += gridDim.x * chunk) {
        __syncthreads();
        Long end = min(begin + chunk, codes_size);
        each_row(rows, begin + 4 * threadIdx.x, end, 4 * Long(blockDim.x),
                 [&](Long line, unsigned inside, const Factors &factors) {
                     Long cell = line * plan[IN_LINE] + inside;
                     add_in_table(factors, plan, table, cell, cells + cell * plan[WIDTH]);
                 });
        __syncthreads();
        for (Long slot = threadIdx.x; slot < plan[IN_TABLE]; slot += blockDim.x)
            move_slot(plan, table + slot, cells + slot * plan[WIDTH]);
    }
}

// Add the rows of hot lines, whose rank is 1 or more, in tables, and all other rows to their cells.
extern "C" __global__ void __launch_bounds__(768)
    add_hot_in_tables(ROWS, ARRAY(Long, cells), ARRAY(const Long, hot), ARRAY(const unsigned char, ranks)) {
    extern __shared__ unsigned table[];
    Rows rows = GIVEN_ROWS;
    Long chunk = plan[CHUNK];
    unsigned in_line = unsigned(plan[IN_LINE]);
    clear(plan, table);
    for (Long begin = blockIdx.x * chunk; begin < codes_size; begin += gridDim.x * chunk) {
        __syncthreads();
        Long end = min(begin + chunk, codes_size);
        each_row(rows, begin + 4 * threadIdx.x, end, 4 * Long(blockDim.x),
                 [&](Long line, unsigned inside, const Factors &factors) {
                     Long *cell = cells + (line * in_line + inside) * plan[WIDTH];
                     if (Long rank = ranks[line])
                         add_in_table(factors, plan, table, (rank - 1) * in_line + inside, cell);
                     else
                         add_in_memory(factors, plan, cell);
                 });
        __syncthreads();
        for (unsigned slot = threadIdx.x; slot < unsigned(plan[IN_TABLE]); slot += blockDim.x)
            move_slot(plan, table + slot, cells + (hot[slot / in_line] * in_line + slot % in_line) * plan[WIDTH]);
    }
}
