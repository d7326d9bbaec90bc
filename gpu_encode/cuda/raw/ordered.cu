// Encodings of rows without weights from the counts of the rows before them in an order: counts of each chunk of places,
// counts before each chunk, and a walk over each chunk by one warp.

#include "smoothing.cuh"

// Places that a warp reads at once: four rows a lane.
constexpr unsigned TURNS = 4, GROUP = LANES * TURNS;

// Codes of the rows at four places, of which the first n are there.
__device__ inline void codes_of_four(const Codes &codes, const Course &course, Long i, int n, int (&found)[4]) {
    if (course.kind == AS_NUMBERED) {
        codes.of_four(Long(course.start) + i, n, found);
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        int one[4] = {0, 0, 0, 0};
        if (k < n)
            codes.of_four(Long(course.row(i + k)), 1, one);
        found[k] = one[0];
    }
}

__device__ inline void classes_of_four(const int *classes, const Course &course, Long i, int n, int (&found)[4]) {
    if (course.kind == AS_NUMBERED) {
        load(classes + course.start + i, n, found);
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k)
        found[k] = k < n ? classes[course.row(i + k)] : 0;
}

// Counts of the rows of one segment that a warp reads: each lane those of its own class.
struct OfSegment {
    Word *segments;
    unsigned n_classes, lane, segment = 0, mine = 0;

    __device__ void flush() {
        if (mine)
            atomicAdd(segments + Word(segment) * n_classes + lane, Word(mine));
        mine = 0;
    }

    __device__ void add(unsigned home, int n, const int (&labels)[4]) {
        if (home != segment)
            flush();
        segment = home;
        for (unsigned label = 0; label < n_classes; ++label) {
            unsigned count = 0;
#pragma unroll
            for (int k = 0; k < 4; ++k)
                count += __popc(__ballot_sync(~0u, k < n && unsigned(labels[k]) == label));
            mine += lane == label ? count : 0;
        }
    }
};

// Count the rows of each chunk by category and class, one block a chunk, and add them to the counts of their segments.
// Where rows stand in another order, what is drawn from all over memory once is kept: the cell at each place.
extern "C" __global__ void __launch_bounds__(256)
    count_chunks(CODES, ARRAY(const int, classes), COURSE, Long n_places, Long n_lines, Long n_classes, Long chunk,
                 Long bits, ARRAY(unsigned, of_chunks), ARRAY(Word, segments), ARRAY(unsigned short, cells)) {
    extern __shared__ __align__(16) unsigned table[];
    Codes source = GIVEN_CODES;
    Course course = GIVEN_COURSE;
    unsigned n_cells = unsigned(n_lines * n_classes), lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    for (unsigned cell = threadIdx.x; cell < n_cells; cell += blockDim.x)
        table[cell] = 0;
    __syncthreads();
    OfSegment whole{segments, unsigned(n_classes), lane};
    Long begin = blockIdx.x * chunk, end = min(begin + chunk, n_places);
    // Every lane takes every turn, so that its warp is whole.
    for (Long at = begin + warp * GROUP; at < end; at += blockDim.x / LANES * GROUP) {
        Long i = at + 4 * lane;
        int n = int(max(min(end - i, Long(4)), Long(0))), found[4], labels[4];
        codes_of_four(source, course, i, n, found);
        classes_of_four(classes, course, i, n, labels);
        unsigned place = unsigned(start + at), last = unsigned(start + min(at + GROUP, end) - 1);
        unsigned home = segment_of(place, int(bits));
        bool alone = home == segment_of(last, int(bits));
        if (alone)
            whole.add(home, n, labels);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (k < n) {
                unsigned cell = line_of(found[k], unsigned(n_lines)) * unsigned(n_classes) + labels[k];
                atomicAdd(table + cell, 1u);
                if (cells_size)
                    cells[i + k] = static_cast<unsigned short>(cell);
                if (!alone) {
                    Word segment = segment_of(unsigned(start + i) + k, int(bits));
                    atomicAdd(segments + segment * n_classes + labels[k], Word(1));
                }
            }
    }
    whole.flush();
    __syncthreads();
    for (unsigned cell = threadIdx.x; cell < n_cells; cell += blockDim.x)
        of_chunks[Word(blockIdx.x) * n_cells + cell] = table[cell];
}

// Replaces each chunk's counts by those of all earlier rows; `before` holds what precedes the first chunk, and may be
// empty.  A warp of each block walks over a share of the chunks, each lane for a cell of its own.
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

__device__ __noinline__ double nearer_of_count(double near, bool upwards, double own, double count, double m,
                                               double total, double number) {
    ExactSum sum;
    sum.add_product(own, number);
    return nearer(near, upwards, sum, count, m, total, number);
}

// m-estimates as `whole_estimate` and `near_estimate` of cpu_fallback/compiled/estimates.py have them.
__device__ inline Found estimate(double own, double count, const Rule &rule, const Prior &prior) {
    double whole = (count + rule.first) * prior.number;
    if (whole < rule.below)
        return {(own * prior.number + prior.weighed) / whole, true, false};
    return near_estimate(own, count, rule.first, prior.high, prior.rest);
}

// The same, and where that does not tell, by the exact sign, unless numbers lie near the ends of the range of floats or
// cancel.
__device__ inline Found settled(double own, double count, const Rule &rule, const Prior &prior, double total) {
    Found found = estimate(own, count, rule, prior);
    if (!found.sure && prior.rest == prior.rest && fabs(own + prior.high) >= 0x1p-16 * fabs(own)) {
        double above = rule.by_mean ? total : rule.prior, number = rule.by_mean ? prior.number : 1.0;
        found = {nearer_of_count(found.value, found.upwards, own, count, rule.first, above, number), true, false};
    }
    return found;
}

// The encoding, other than an m-estimate, of a category of which a row sees `count` rows, `own` of the output's class.
__device__ inline double encode(unsigned own, unsigned count, const Rule &rule, const Prior &prior) {
    return smoothed(double(own) / count, count, double(Word(own) * (count - own)), 0, rule, prior);
}

// The encoding of most rows; says whether it is decided.
__device__ inline bool quickly(unsigned own, unsigned count, const Rule &rule, const Prior &prior, float &found) {
    if (ESTIMATES)
        return quick_estimate(own, count, rule, prior, found);
    double value = encode(own, count, rule, prior);
    found = __double2float_rn(value);
    return is_normal(found) || value == 0;
}

__device__ inline bool quickly(unsigned own, unsigned count, const Rule &rule, const Prior &prior, double &found) {
    Found near{0, true, false};
    if (ESTIMATES)
        near = estimate(own, count, rule, prior);
    else
        near.value = encode(own, count, rule, prior);
    found = near.value;
    return near.sure && found == found;
}

// Rows of a chunk as a walk reads them: first words, or the cells that are kept, and then lines and labels.
struct Reader {
    Codes codes;
    const int *classes;
    const unsigned short *cells;
    Word start;
    unsigned n_lines, n_classes, inverse;

    __device__ Word word(Long i) const {
        if (cells)
            return cells[i];
        if (codes.range && codes.mask >> 32)
            return reinterpret_cast<const Word *>(codes.words)[start + i];
        return unsigned(codes.words[start + i]);
    }
    __device__ unsigned label(Long i) const { return cells ? 0 : unsigned(classes[start + i]); }
    __device__ void find(Word word, unsigned &line, unsigned &label) const {
        if (cells) {
            line = n_classes == 1 ? unsigned(word) : __umulhi(unsigned(word), inverse);
            label = unsigned(word) - line * n_classes;
        } else {
            int code = int(word);
            if (codes.range) {
                Word rank = (word - codes.base) & codes.mask;
                code = rank >= codes.range ? UNKNOWN : codes.ranks ? codes.ranks[rank] - 1 : int(rank);
            }
            line = line_of(code, n_lines);
        }
    }
};

// What encodings of a walk have in common, but for what rows see.
struct Encoder {
    Rule rule;
    Priors priors;
    Output output;
    const Long *segments, *running;
    Word burned;
    unsigned n_lines, n_classes, first, n_outputs;

    // Keep an estimate that only the digits can round: rows of its class, and all others.
    __device__ void doubt(unsigned own, unsigned count, Word encoding, unsigned segment, unsigned label) const {
        Word number;
        if (!output.doubt(encoding, segment, n_classes, number))
            return;
        for (unsigned other = 0; other < n_classes; ++other)
            output.seen[number * n_classes + other] = other == label ? own : other == !label ? count - own : 0;
    }

    // Write an encoding exactly, or keep what is seen where only the digits can round it.
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

// A chunk of places as one warp walks it, whose lanes stand at neighbouring places: a group of turns at a time.
struct Walk {
    Reader reader;
    Course course;
    Encoder encoder;
    unsigned *state;
    Long begin, end;
    int bits;

    __device__ unsigned segment_at(Long i) const { return segment_of(unsigned(course.start + i), bits); }

    __device__ void read(Long at, Word (&words)[TURNS], unsigned (&labels)[TURNS]) const {
#pragma unroll
        for (unsigned turn = 0; turn < TURNS; ++turn) {
            Long i = at + turn * LANES + threadIdx.x % LANES;
            words[turn] = i < end ? reader.word(i) : 0;
            labels[turn] = i < end ? reader.label(i) : 0;
        }
    }

    // Of two classes the first has no output: a category's state is how many rows there were, and how many of the second.
    __device__ void binary() const {
        unsigned lane = threadIdx.x % LANES, earlier = (1u << lane) - 1, current = ~0u, labels[TURNS];
        uint2 *counts = reinterpret_cast<uint2 *>(state);
        const Rule &rule = encoder.rule;
        const Output &output = encoder.output;
        Word words[TURNS];
        Prior prior{};
        read(begin, words, labels);
        for (Long at = begin; at < end; at += GROUP) {
            unsigned lines[TURNS], n[TURNS], s[TURNS], undecided = 0;
            bool second[TURNS];
#pragma unroll
            for (unsigned turn = 0; turn < TURNS; ++turn) {
                reader.find(words[turn], lines[turn], labels[turn]);
                second[turn] = labels[turn] != 0;
            }
            // The next rows are on their way while these are encoded.
            read(at + GROUP, words, labels);
            unsigned home = segment_at(at);
            bool alone = home == segment_at(min(at + GROUP, end) - 1), burned = course.start + at < encoder.burned;
            if (alone && home != current)
                prior = encoder.priors.at(home, rule);
            current = alone ? home : ~0u;
#pragma unroll
            for (unsigned turn = 0; turn < TURNS; ++turn) {
                Long i = at + turn * LANES + lane;
                bool inside = i < end;
                unsigned line = lines[turn], alike = __match_any_sync(~0u, inside ? line : ~0u);
                unsigned ones = __ballot_sync(~0u, inside && second[turn]);
                uint2 known = counts[line];
                __syncwarp();
                if (inside && !(alike >> lane >> 1))
                    counts[line] = uint2{known.x + __popc(alike), known.y + __popc(alike & ones)};
                __syncwarp();
                n[turn] = known.x + __popc(alike & earlier);
                s[turn] = known.y + __popc(alike & earlier & ones);
                if (!inside)
                    continue;
                if (!alone)
                    prior = encoder.priors.at(segment_at(i), rule);
                bool counted = n[turn] >= rule.least && rule.has_category(line, encoder.n_lines);
                ENCODING found;
                if (!burned && counted && quickly(s[turn], n[turn], rule, prior, found))
                    output.out[Long(course.row(i)) * output.by_row] = found;
                else
                    undecided |= 1u << turn;
                if (output.unseen && counted)
                    output.unseen[course.row(i)] = 0;
            }
            while (undecided) {
                unsigned turn = __ffs(int(undecided)) - 1, line = pick(lines, turn), own = pick(s, turn);
                unsigned count = pick(n, turn), segment;
                undecided &= undecided - 1;
                Long i = at + turn * LANES + lane;
                segment = segment_at(i);
                bool counted = count >= rule.least && rule.has_category(line, encoder.n_lines);
                encoder.write(own, count, counted, course.start + i, course.row(i), line, segment, 0,
                              encoder.priors.at(segment, rule));
            }
        }
    }

    // Of several classes a category's state are the rows of each.
    __device__ void several() const {
        unsigned lane = threadIdx.x % LANES, earlier = (1u << lane) - 1, n_classes = encoder.n_classes, labels[TURNS];
        const Rule &rule = encoder.rule;
        Word words[TURNS];
        read(begin, words, labels);
        for (Long at = begin; at < end; at += GROUP) {
            unsigned lines[TURNS], mine[TURNS];
#pragma unroll
            for (unsigned turn = 0; turn < TURNS; ++turn) {
                reader.find(words[turn], lines[turn], labels[turn]);
                mine[turn] = labels[turn];
            }
            read(at + GROUP, words, labels);
#pragma unroll 1
            for (unsigned turn = 0; turn < TURNS; ++turn) {
                Long i = at + turn * LANES + lane;
                bool inside = i < end;
                unsigned line = pick(lines, turn), label = inside ? pick(mine, turn) : ~0u, count = 0;
                unsigned alike = __match_any_sync(~0u, inside ? line : ~0u), *counts = state + line * n_classes;
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
                        encode(i, line, known + __popc(ones & earlier), count, counted, other - encoder.first);
                }
                __syncwarp();
                if (encoder.output.unseen && inside && counted)
                    encoder.output.unseen[course.row(i)] = 0;
            }
        }
    }

    __device__ void encode(Long i, unsigned line, unsigned own, unsigned count, bool counted, unsigned number) const {
        unsigned segment = segment_at(i);
        Prior prior = encoder.priors.at(Word(segment) * encoder.n_outputs + number, encoder.rule);
        const Output &output = encoder.output;
        Word row = course.row(i), place = course.start + i;
        ENCODING found;
        if (place >= encoder.burned && counted && quickly(own, count, encoder.rule, prior, found))
            output.out[Long(row) * output.by_row + number * output.by_output] = found;
        else
            encoder.write(own, count, counted, place, row, line, segment, number, prior);
    }
};

// Write the encodings of the rows at some places: each warp walks over a chunk of them, from the counts before it.
extern "C" __global__ void __launch_bounds__(512, 1)
    walk_chunks(CODES, ARRAY(const int, classes), COURSE, ARRAY(const unsigned short, cells), Long n_places, Long n_lines,
                Long n_classes, Long first, Long chunk, Long n_chunks, Long bits, Long burned,
                ARRAY(const unsigned, before), RULE, PRIORS, ARRAY(const Long, segments), ARRAY(const Long, running),
                OUTPUT) {
    extern __shared__ __align__(16) unsigned table[];
    unsigned lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, n_cells = unsigned(n_lines * n_classes);
    Long own = Long(blockIdx.x) * (blockDim.x / LANES) + warp, begin = own * chunk;
    if (own >= n_chunks)
        return;
    bool binary = n_classes == 2 && first == 1;
    unsigned *state = table + warp * n_cells;
    for (unsigned cell = lane; cell < n_cells; cell += LANES) {
        unsigned count = before[Word(own) * n_cells + cell];
        state[cell] = binary && cell % 2 == 0 ? count + before[Word(own) * n_cells + cell + 1] : count;
    }
    __syncwarp();
    Reader reader{GIVEN_CODES, classes, cells_size ? cells : nullptr, Word(start), unsigned(n_lines), unsigned(n_classes),
                  ~0u / unsigned(n_classes) + 1};
    Encoder encoder{GIVEN_RULE, GIVEN_PRIORS, GIVEN_OUTPUT, segments, running, Word(burned), unsigned(n_lines),
                    unsigned(n_classes), unsigned(first), unsigned(n_classes - first)};
    Walk walk{reader, GIVEN_COURSE, encoder, state, begin, min(begin + chunk, n_places), int(bits)};
    if (binary)
        walk.binary();
    else
        walk.several();
}
