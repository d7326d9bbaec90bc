// Encodings of rows without weights from counts of the earlier rows in an order, in four steps: the cells of all rows;
// the counts of each chunk of ranks; the counts before each chunk; and a walk over each chunk by one warp.

#include "counts.cuh"

// Ranks that a warp reads at once: four for each lane, one in each turn.
constexpr unsigned TURNS = 4, GROUP = LANES * TURNS;

// Chunks of ranks: short ones first, where segments are shorter than a warp's turns, then long ones.
#define CHUNKS Long n_places, Long n_chunks, Long n_early, Long early, Long size
#define GIVEN_CHUNKS Chunks{n_places, n_chunks, n_early, early, size}

struct Chunks {
    Long n_places, n, n_early, early, size;

    __device__ Long begin(Long number) const {
        return min(min(number, n_early) * early + max(number - n_early, Long(0)) * size, n_places);
    }
};

// Write each row's cell, which combines the line of its category and its class.
extern "C" __global__ void __launch_bounds__(1024)
    number_cells(CODES, ARRAY(const int, classes), Long n_lines, Long n_classes, ARRAY(unsigned short, cells)) {
    Codes source = GIVEN_CODES;
    Long step = 4 * Long(gridDim.x) * blockDim.x;
    for (Long row = 4 * (Long(blockIdx.x) * blockDim.x + threadIdx.x); row < cells_size; row += step) {
        int n = int(min(cells_size - row, Long(4))), found[4], labels[4];
        unsigned short numbers[4];
        source.of_four(row, n, found);
        load(classes + row, n, labels);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            numbers[k] = static_cast<unsigned short>(line_of(found[k], unsigned(n_lines)) * unsigned(n_classes) + labels[k]);
        if (n == 4)
            write_four(cells + row, true, numbers);
        else
            for (int k = 0; k < n; ++k)
                cells[row + k] = numbers[k];
    }
}

// Line of a cell; `inverse` is 2^32 divided by the number of classes, rounded up; it is exact for cells of 16 bits.
__device__ inline unsigned line_of_cell(unsigned cell, unsigned n_classes, unsigned inverse) {
    return n_classes == 1 ? cell : __umulhi(cell, inverse);
}

// Count the rows of one segment that a warp reads; each lane counts one class.
struct OfSegment {
    Word *segments;
    unsigned n_classes, lane, segment = 0, mine = 0;

    __device__ void flush() {
        if (mine)
            atomicAdd(segments + Word(segment) * n_classes + lane, Word(mine));
        mine = 0;
    }

    __device__ void add(unsigned home, const unsigned (&labels)[TURNS]) {
        if (home != segment)
            flush();
        segment = home;
        for (unsigned label = 0; label < n_classes; ++label) {
            unsigned count = 0;
#pragma unroll
            for (unsigned turn = 0; turn < TURNS; ++turn)
                count += __popc(__ballot_sync(~0u, labels[turn] == label));
            mine += lane == label ? count : 0;
        }
    }
};

// Count the rows of each chunk by category and class, one block for each chunk, and add the counts to their segments.
// If rows are in another order, the cell at each rank is stored, so that scattered memory is read only once.
extern "C" __global__ void __launch_bounds__(256)
    count_chunks(ARRAY(const unsigned short, cells), COURSE, CHUNKS, Long n_lines, Long n_classes, Long bits,
                 ARRAY(unsigned, of_chunks), ARRAY(Word, segments), ARRAY(unsigned short, at_places)) {
    extern __shared__ __align__(16) unsigned table[];
    Course course = GIVEN_COURSE;
    Chunks chunks = GIVEN_CHUNKS;
    unsigned n_cells = unsigned(n_lines * n_classes), lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    unsigned inverse = ~0u / unsigned(n_classes) + 1;
    for (unsigned cell = threadIdx.x; cell < n_cells; cell += blockDim.x)
        table[cell] = 0;
    __syncthreads();
    OfSegment whole{segments, unsigned(n_classes), lane};
    Long end = chunks.begin(blockIdx.x + 1);
    // Every lane takes part in every turn, so that the warp is complete.
    for (Long at = chunks.begin(blockIdx.x) + warp * GROUP; at < end; at += blockDim.x / LANES * GROUP) {
        unsigned found[TURNS], labels[TURNS];
#pragma unroll
        for (unsigned turn = 0; turn < TURNS; ++turn) {
            Long i = at + turn * LANES + lane;
            found[turn] = i < end ? cells[course.row(i)] : 0;
        }
#pragma unroll
        for (unsigned turn = 0; turn < TURNS; ++turn) {
            Long i = at + turn * LANES + lane;
            unsigned label = found[turn] - line_of_cell(found[turn], unsigned(n_classes), inverse) * unsigned(n_classes);
            labels[turn] = i < end ? label : ~0u;
        }
        unsigned place = unsigned(start + at), last = unsigned(start + min(at + GROUP, end) - 1);
        unsigned home = segment_of(place, int(bits));
        bool alone = home == segment_of(last, int(bits));
        if (alone)
            whole.add(home, labels);
#pragma unroll
        for (unsigned turn = 0; turn < TURNS; ++turn) {
            Long i = at + turn * LANES + lane;
            if (i >= end)
                continue;
            atomicAdd(table + found[turn], 1u);
            if (at_places_size)
                at_places[i] = static_cast<unsigned short>(found[turn]);
            if (!alone) {
                Word segment = segment_of(unsigned(start + i), int(bits));
                atomicAdd(segments + segment * n_classes + labels[turn], Word(1));
            }
        }
    }
    whole.flush();
    __syncthreads();
    for (unsigned cell = threadIdx.x; cell < n_cells; cell += blockDim.x)
        of_chunks[Word(blockIdx.x) * n_cells + cell] = table[cell];
}

// Replaces each chunk's counts by those of all earlier rows; `before` has the counts before the first chunk, and may be
// empty.  A warp of each block walks over a share of the chunks; each lane has one cell.
extern "C" __global__ void __launch_bounds__(1024)
    scan_chunks(Long n_chunks, ARRAY(const Long, before), ARRAY(Long, after), ARRAY(unsigned, of_chunks)) {
    extern __shared__ __align__(16) unsigned table[];
    unsigned lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, n_warps = blockDim.x / LANES;
    Word n_cells = after_size, cell = blockIdx.x * LANES + lane;
    Long share = (n_chunks + n_warps - 1) / n_warps, begin = warp * share, end = min(begin + share, n_chunks);
    unsigned sum = 0;
    if (cell < n_cells)
#pragma unroll 8
        for (Long chunk = begin; chunk < end; ++chunk)
            sum += of_chunks[chunk * n_cells + cell];
    table[threadIdx.x] = sum;
    __syncthreads();
    if (cell >= n_cells)
        return;
    unsigned running = before_size ? unsigned(before[cell]) : 0;
    for (unsigned earlier = 0; earlier < warp; ++earlier)
        running += table[earlier * LANES + lane];
#pragma unroll 8
    for (Long chunk = begin; chunk < end; ++chunk) {
        unsigned own = of_chunks[chunk * n_cells + cell];
        of_chunks[chunk * n_cells + cell] = running;
        running += own;
    }
    if (warp == n_warps - 1)
        after[cell] = running;
}

// What encodings of all walks have in common; subclasses know what rows see.
struct Encoder {
    Rule rule;
    Priors priors;
    Output output;
    const Long *segments, *running;
    Word burned;
    unsigned n_lines, n_classes, first, n_outputs;

    // Keep an estimate that only the digits can round: the counts of its class and of all other classes.
    __device__ void doubt(unsigned own, unsigned count, Word encoding, unsigned segment, unsigned label) const {
        Word number;
        if (!output.doubt(encoding, segment, n_classes, number))
            return;
        for (unsigned other = 0; other < n_classes; ++other)
            output.seen[number * n_classes + other] = other == label ? own : other == !label ? count - own : 0;
    }

    // Write an encoding exactly; if only the digits can round it, keep the counts instead.
    __device__ void write(unsigned own, unsigned count, bool counted, Word place, Word row, unsigned line,
                          unsigned segment, unsigned number, const Prior &prior) const {
        double value = __longlong_as_double(0x7FF8ll << 48);
        if (place >= burned && counted) {
            unsigned label = first + number;
            Word total = Word(segment) * n_classes + label;
            Found found{0, true, false};
            if (ESTIMATES)
                found = settled(own, count, rule, prior, rule.by_mean ? double(running[total] - segments[total]) : 0);
            else
                found.value = encode(own, count, rule, prior);
            value = found.value;
            if (!found.sure)
                doubt(own, count, row * n_outputs + number, segment, label);
        } else if (place >= burned) {
            value = rule.without(line, n_lines, prior.mu);
        }
        output.put(value, row, number);
    }
};

template <typename Number> __device__ inline Number pick(const Number (&from)[TURNS], unsigned turn) {
    return turn < 2 ? (turn ? from[1] : from[0]) : (turn < 3 ? from[2] : from[3]);
}

// A chunk of ranks as one warp walks over it; its lanes have neighbouring ranks; it takes a group of turns at a time.
struct Walk {
    const unsigned short *cells;
    Course course;
    Encoder encoder;
    unsigned *state;
    Long begin, end;
    int bits;
    unsigned inverse;

    __device__ unsigned segment_at(Long i) const { return segment_of(unsigned(course.start + i), bits); }

    __device__ void read(Long at, unsigned (&found)[TURNS], unsigned (&rows)[TURNS]) const {
#pragma unroll
        for (unsigned turn = 0; turn < TURNS; ++turn) {
            Long i = at + turn * LANES + threadIdx.x % LANES;
            found[turn] = i < end ? cells[i] : 0;
            rows[turn] = i < end ? unsigned(course.row(i)) : 0;
        }
    }

    // Count the rows of a group; gives for each row how many rows of its category it sees, and how many in the second
    // class. Lanes after the end of the chunk count as well, since no row comes after them.
    __device__ void count(const unsigned (&found)[TURNS], unsigned (&n)[TURNS], unsigned (&s)[TURNS]) const {
        unsigned earlier = (1u << threadIdx.x % LANES) - 1;
        bool beside[TURNS];
#pragma unroll
        for (unsigned turn = 0; turn < TURNS; ++turn) {
            unsigned *counts = state + (found[turn] & ~1u);
            uint2 known = *reinterpret_cast<uint2 *>(counts);
            __syncwarp();
            beside[turn] = atomicAdd(counts, 1u) != known.x;
            atomicAdd(counts + 1, found[turn] & 1);
            __syncwarp();
            n[turn] = known.x, s[turn] = known.y;
        }
        // In most turns no two rows have the same category; finding such rows takes long if there are many categories.
#pragma unroll
        for (unsigned turn = 0; turn < TURNS; ++turn)
            if (__any_sync(~0u, beside[turn])) {
                unsigned alike = __match_any_sync(~0u, found[turn] >> 1) & earlier;
                n[turn] += __popc(alike);
                s[turn] += __popc(alike & __ballot_sync(~0u, found[turn] & 1));
            }
    }

    // With two classes, the first one has no output; a category's state is its number of rows, and those in the second
    // class.
    __device__ void binary() const {
        unsigned lane = threadIdx.x % LANES, current = ~0u, next[TURNS], next_rows[TURNS];
        const Rule &rule = encoder.rule;
        const Output &output = encoder.output;
        Prior prior{};
        read(begin, next, next_rows);
        for (Long at = begin; at < end; at += GROUP) {
            unsigned lines[TURNS], rows[TURNS], n[TURNS], s[TURNS], undecided = 0;
            count(next, n, s);
#pragma unroll
            for (unsigned turn = 0; turn < TURNS; ++turn)
                lines[turn] = next[turn] >> 1, rows[turn] = next_rows[turn];
            // The next rows are loaded while these are encoded.
            read(at + GROUP, next, next_rows);
            unsigned home = segment_at(at);
            bool alone = home == segment_at(min(at + GROUP, end) - 1), burned = course.start + at < encoder.burned;
            if (alone && home != current)
                prior = encoder.priors.at(home, rule);
            current = alone ? home : ~0u;
#pragma unroll
            for (unsigned turn = 0; turn < TURNS; ++turn) {
                Long i = at + turn * LANES + lane;
                bool inside = i < end;
                if (!alone)
                    prior = encoder.priors.at(segment_at(min(i, end - 1)), rule);
                bool counted = inside & (n[turn] >= rule.least) & rule.has_category(lines[turn], encoder.n_lines);
                ENCODING found;
                // There are no branches, so that a turn need not wait for the one before.
                bool sure = quickly(s[turn], n[turn], rule, prior, found) & counted & !burned;
                undecided |= unsigned(inside & !sure) << turn;
                if (sure)
                    output.out[Long(rows[turn]) * output.by_row] = found;
                if (output.unseen && counted)
                    output.unseen[rows[turn]] = 0;
            }
            while (undecided) {
                unsigned turn = __ffs(int(undecided)) - 1, line = pick(lines, turn), own = pick(s, turn);
                unsigned count = pick(n, turn), row = pick(rows, turn);
                undecided &= undecided - 1;
                Word place = course.start + Word(at + turn * LANES + lane);
                unsigned segment = segment_of(unsigned(place), bits);
                bool counted = count >= rule.least && rule.has_category(line, encoder.n_lines);
                encoder.write(own, count, counted, place, row, line, segment, 0, encoder.priors.at(segment, rule));
            }
            __syncwarp();
        }
    }

    // With several classes, a category's state is the number of rows in each class.
    __device__ void several() const {
        unsigned lane = threadIdx.x % LANES, earlier = (1u << lane) - 1, n_classes = encoder.n_classes;
        unsigned next[TURNS], next_rows[TURNS];
        const Rule &rule = encoder.rule;
        read(begin, next, next_rows);
        for (Long at = begin; at < end; at += GROUP) {
            unsigned found[TURNS], rows[TURNS];
#pragma unroll
            for (unsigned turn = 0; turn < TURNS; ++turn)
                found[turn] = next[turn], rows[turn] = next_rows[turn];
            read(at + GROUP, next, next_rows);
#pragma unroll 1
            for (unsigned turn = 0; turn < TURNS; ++turn) {
                Long i = at + turn * LANES + lane;
                bool inside = i < end;
                unsigned cell = pick(found, turn), row = pick(rows, turn), line = line_of_cell(cell, n_classes, inverse);
                unsigned alike = __match_any_sync(~0u, inside ? line : ~0u), *counts = state + line * n_classes;
                unsigned label = inside ? cell - line * n_classes : ~0u, count = 0;
                for (unsigned other = 0; other < n_classes; ++other)
                    count += counts[other];
                __syncwarp();
                count += __popc(alike & earlier);
                bool counted = count >= rule.least && rule.has_category(line, encoder.n_lines);
                for (unsigned other = 0; other < n_classes; ++other) {
                    unsigned ones = __ballot_sync(~0u, label == other) & alike, known = counts[other];
                    __syncwarp();
                    if (!inside)
                        continue;
                    if (!(alike >> lane >> 1))
                        counts[other] = known + __popc(ones);
                    if (other >= encoder.first)
                        encode(i, row, line, known + __popc(ones & earlier), count, counted, other - encoder.first);
                }
                __syncwarp();
                if (encoder.output.unseen && inside && counted)
                    encoder.output.unseen[row] = 0;
            }
        }
    }

    __device__ void encode(Long i, Word row, unsigned line, unsigned own, unsigned count, bool counted, unsigned number) const {
        unsigned segment = segment_at(i);
        Prior prior = encoder.priors.at(Word(segment) * encoder.n_outputs + number, encoder.rule);
        const Output &output = encoder.output;
        Word place = course.start + i;
        ENCODING found;
        if (place >= encoder.burned && counted && quickly(own, count, encoder.rule, prior, found))
            output.out[Long(row) * output.by_row + number * output.by_output] = found;
        else
            encoder.write(own, count, counted, place, row, line, segment, number, prior);
    }
};

// Write the encodings of the rows at some ranks: each warp walks over a chunk, starting from the counts before it.
extern "C" __global__ void __launch_bounds__(512, 1)
    walk_chunks(ARRAY(const unsigned short, cells), COURSE, CHUNKS, Long n_lines, Long n_classes, Long first, Long bits,
                Long burned, ARRAY(const unsigned, before), RULE, PRIORS, ARRAY(const Long, segments),
                ARRAY(const Long, running), OUTPUT) {
    extern __shared__ __align__(16) unsigned table[];
    unsigned lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, n_cells = unsigned(n_lines * n_classes);
    Long own = Long(blockIdx.x) * (blockDim.x / LANES) + warp;
    if (own >= n_chunks)
        return;
    Chunks chunks = GIVEN_CHUNKS;
    bool binary = n_classes == 2 && first == 1;
    unsigned *state = table + warp * n_cells;
    for (unsigned cell = lane; cell < n_cells; cell += LANES) {
        unsigned count = before[Word(own) * n_cells + cell];
        state[cell] = binary && cell % 2 == 0 ? count + before[Word(own) * n_cells + cell + 1] : count;
    }
    __syncwarp();
    Encoder encoder{GIVEN_RULE, GIVEN_PRIORS, GIVEN_OUTPUT, segments, running, Word(burned), unsigned(n_lines),
                    unsigned(n_classes), unsigned(first), unsigned(n_classes - first)};
    Walk walk{cells, GIVEN_COURSE, encoder, state, chunks.begin(own), chunks.begin(own + 1), int(bits),
              ~0u / unsigned(n_classes) + 1};
    if (binary)
        walk.binary();
    else
        walk.several();
}
