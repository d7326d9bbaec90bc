// Writes fold numbers of rows.

#include "rows.cuh"

extern "C" __global__ void __launch_bounds__(1024) number_folds(Long start, FOLDS, ARRAY(int, out)) {
    Folds folds = GIVEN_FOLDS;
    Long first = 4 * (Long(blockIdx.x) * blockDim.x + threadIdx.x), turn = 4 * Long(gridDim.x) * blockDim.x;
    for (Long i = first; i < out_size; i += turn) {
        int n = int(min(out_size - i, Long(4)));
        unsigned found[4] = {0, 0, 0, 0};
        folds.of_four(start + i, n, found);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (k < n)
                out[i + k] = int(found[k]);
    }
}
