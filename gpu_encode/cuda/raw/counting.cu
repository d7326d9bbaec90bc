// Counts rows per (line, fold, class) cell in global memory.  Each thread reads four neighbouring rows as one vector.

#include "cells.cuh"

// The rows of a warp in the same cell are added at once.
extern "C" __global__ void __launch_bounds__(1024) count_in_memory(ROWS, ARRAY(Long, cells)) {
    Rows rows = GIVEN_ROWS;
    Long first = 4 * (Long(blockIdx.x) * blockDim.x + threadIdx.x), turn = 4 * Long(gridDim.x) * blockDim.x;
    // Every lane takes part in every turn, so that the warp is complete.
    for (Long begin = 0; begin < codes_size; begin += turn) {
        Word cell[4];
        int n = four_cells(rows, begin + first, codes_size, cell);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            unsigned alike = __match_any_sync(~0u, k < n ? cell[k] : ~0ull);
            if (k < n && __ffs(alike) - 1 == int(threadIdx.x & 31))
                atomicAdd(reinterpret_cast<Word *>(cells) + cell[k], Word(__popc(alike)));
        }
    }
}
