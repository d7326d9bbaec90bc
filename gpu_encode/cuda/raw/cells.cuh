// Rows as cells: (line * n_folds + fold) * n_classes + class.

#include "rows.cuh"

// The parameters for rows in all kernels that read them, and the same as a `Rows`.
#define ROWS                                                                                                          \
    CODES, ARRAY(const int, classes), Long with_classes, FOLDS, Long n_lines, Long n_folds, Long n_classes
#define GIVEN_ROWS                                                                                                    \
    Rows { GIVEN_CODES, with_classes ? classes : nullptr, GIVEN_FOLDS, n_lines, n_folds, n_classes }

struct Rows {
    Codes codes;
    const int *classes;
    Folds folds;
    Long n_lines, n_folds, n_classes;
};

// Cells of four rows; returns how many of the rows exist.  Negative codes count from the end of the table.
template <typename Cell> __device__ inline int four_cells(Rows &rows, Long row, Long end, Cell (&cells)[4]) {
    int n = int(max(min(end - row, Long(4)), Long(0)));
    int codes[4], labels[4] = {0, 0, 0, 0};
    rows.codes.of_four(row, n, codes);
    if (rows.classes)
        load(rows.classes + row, n, labels);
    unsigned folds[4] = {0, 0, 0, 0};
    rows.folds.of_four(row, n, folds);
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (k < n) {
            Cell line = Cell(codes[k] < 0 ? codes[k] + rows.n_lines : codes[k]);
            cells[k] = (line * Cell(rows.n_folds) + folds[k]) * Cell(rows.n_classes) + labels[k];
        }
    return n;
}
