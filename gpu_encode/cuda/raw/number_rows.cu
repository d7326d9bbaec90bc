// Writes folds and classes of rows in as few bytes as they need.

#include "rows.cuh"

// Write the fold of each row, and fold * n_classes + class; without classes, all rows are of class 0.  Counts, which
// another kernel makes, begin at 0.
extern "C" __global__ void __launch_bounds__(1024)
    number_rows(Long n_numbers, ARRAY(const int, classes), FOLDS, Long n_classes, ARRAY(NARROW, by_fold),
                ARRAY(NARROW, within), ARRAY(unsigned, counts)) {
    Long at_once = Long(gridDim.x) * blockDim.x;
    for (Long number = Long(blockIdx.x) * blockDim.x + threadIdx.x; number < counts_size; number += at_once)
        counts[number] = 0;
    Folds source = GIVEN_FOLDS;
    Long step = 4 * Long(gridDim.x) * blockDim.x;
    for (Long row = 4 * (Long(blockIdx.x) * blockDim.x + threadIdx.x); row < n_numbers; row += step) {
        int n = int(min(n_numbers - row, Long(4))), labels[4] = {0, 0, 0, 0};
        unsigned folds[4] = {0, 0, 0, 0};
        if (classes_size)
            load(classes + row, n, labels);
        source.of_four(row, n, folds);
        NARROW narrow[4], both[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            narrow[k] = static_cast<NARROW>(folds[k]);
            both[k] = static_cast<NARROW>(folds[k] * unsigned(n_classes) + unsigned(labels[k]));
        }
        if (n == 4) {
            write_four(by_fold + row, true, narrow);
            write_four(within + row, true, both);
        } else
#pragma unroll
            for (int k = 0; k < 4; ++k)
                if (k < n)
                    by_fold[row + k] = narrow[k], within[row + k] = both[k];
    }
}
