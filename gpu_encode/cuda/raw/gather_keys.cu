// Look up the encodings of rows, by cell and view, for many keys: each block writes a chunk of rows of one key.  The
// kernel is compiled for a size of entries, and for one output or several.  If there is one view, it is not read.

#include "rows.cuh"

#include "keys.cuh"

extern __shared__ __align__(16) unsigned table[];

extern "C" __global__ void __launch_bounds__(512)
    gather_keys(KEYS, Long n_outputs, ARRAY(const ENTRY, entries), ARRAY(ENTRY, out)) {
    Column *columns = reinterpret_cast<Column *>(table);
    Key key = Key::at(plan, Long(blockIdx.x) % n_keys);
    Long begin = Long(blockIdx.x) / n_keys * chunk, end = min(begin + chunk, n_rows);
    read_columns(columns, key, codes, LAST_COLUMN);
    const ENTRY *own = entries + key.first_cell * Word(last_radix * n_outputs);
    ENTRY *line = out + key.line * n_rows;
    each_four(columns, key.n_columns + (last_radix > 1), begin, end, [&](Long row, const unsigned(&cells)[4], int n) {
        ENTRY *to = line + row;
        unsigned width = OUTPUTS == 1 ? 1 : unsigned(n_outputs);
#pragma unroll 1
        for (unsigned output = 0; output < width; ++output, to += n_rows) {
            ENTRY found[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                found[j] = j < n ? own[cells[j] * width + output] : 0;
            if (n == 4)
                write_four(to, (reinterpret_cast<Word>(to) & 15) == 0, found);
            else
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    if (j < n)
                        to[j] = found[j];
        }
    });
}
