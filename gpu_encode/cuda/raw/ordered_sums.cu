// Encodings of rows without weights, each from the exact sums of the earlier rows of its category in an order.
//
// Each tile of ranks is sorted by bucket of lines, and the rows of a bucket keep their order.  A piece is the rows of a
// bucket in neighbouring tiles, and one warp works on it.  First, the sums that each piece adds to its lines are
// computed, then the sums before each piece.  Then warps walk over their pieces again, with the sums of all lines of
// the bucket in shared memory.
//
// A sum is an integer times 2^(32 low), with one more word for its sign and carries.  A sum of squares is an integer of
// twice as many words, times 2^(64 low).  So no sum is rounded, whatever the numbers are.

#include "smoothing.cuh"
#include "integers.cuh"
#include "digits.cuh"
#include "buckets.cuh"

// Compiled for a number of words in a sum, with squares or without.
#ifndef SUM_WORDS
#define SUM_WORDS 5
#define SQUARES 1
#endif

constexpr int SQUARE_WORDS = SQUARES ? 2 * SUM_WORDS - 1 : 1, ALL_WORDS = 1 + SUM_WORDS + (SQUARES ? SQUARE_WORDS : 0);
// Turns of a warp in a tile; ranks, or pieces, that are read at once.
constexpr unsigned TURNS = 16, AT_ONCE = 4, WARPS = 32;
enum { FLOATS, DOUBLES, INTEGERS };

// Positions of sums among the digits of the library; squares begin `above` digits later.
#define WINDOWS Long low, Long target_kind, Long sum_width, Long square_width, Long sum_whole, Long square_whole, Long above
#define GIVEN_WINDOWS                                                                                                 \
    Windows{__longlong_as_double((1023 - 32 * (low + SUM_WORDS - 2)) << 52), __longlong_as_double((1023 + 32 * low) << 52), \
            int(low), target_kind == INTEGERS, int(sum_width), int(square_width), sum_whole != 0, square_whole != 0,   \
            int(above)}

struct Windows {
    double scale, unit;
    int low;
    bool integers;
    int sum_width, square_width;
    bool sum_whole, square_whole;
    int above;

    __device__ Long length() const { return 1 + sum_width + (SQUARES ? square_width : 0); }
};

// The number of rows, their sum, and the sum of their squares.
struct Sums {
    unsigned count, sum[SUM_WORDS], square[SQUARE_WORDS];

    __device__ void clear() {
        count = 0;
        ::clear(sum);
        ::clear(square);
    }
    __device__ void add(const Sums &more) {
        count += more.count;
        ::add(sum, more.sum);
        if (SQUARES)
            ::add(square, more.square);
    }
    // Call use(word, number) for each word.
    template <typename Use> __device__ void each(Use use) {
        use(count, 0);
#pragma unroll
        for (int k = 0; k < SUM_WORDS; ++k)
            use(sum[k], 1 + k);
#pragma unroll
        for (int k = 0; SQUARES && k < SQUARE_WORDS; ++k)
            use(square[k], 1 + SUM_WORDS + k);
    }
    __device__ void load(const unsigned *from) {
        each([&](unsigned &word, int number) { word = from[number]; });
    }
    __device__ void store(unsigned *to) {
        each([&](unsigned &word, int number) { to[number] = word; });
    }
    __device__ Sums of_lane(unsigned lane) const {
        Sums found = *this;
        found.each([&](unsigned &word, int) { word = __shfl_sync(~0u, word, lane); });
        return found;
    }

    // What a row adds; a double is given by its words, the highest first.
    __device__ void begin(Word bits, const Windows &windows) {
        unsigned size[SUM_WORDS - 1];
        count = 1;
        if (windows.integers) {
            ::clear(size);
            Word whole = Long(bits) < 0 ? 0 - bits : bits;
            size[0] = unsigned(whole), size[1] = unsigned(whole >> 32);
        } else {
            double rest = fabs(__longlong_as_double(Long(bits))) * windows.scale;
#pragma unroll
            for (int k = SUM_WORDS - 2; k >= 0; --k) {
                size[k] = unsigned(rest);
                rest = (rest - size[k]) * 0x1p32;
            }
        }
#pragma unroll
        for (int k = 0; k < SUM_WORDS - 1; ++k)
            sum[k] = size[k];
        sum[SUM_WORDS - 1] = 0;
        negate_if(Long(bits) < 0, sum);
        if (SQUARES)
            multiply(size, size, square);
    }

    // Call use(column, digit) for the digits of the library's cell.  The highest digit of a sum contains its sign.
    template <typename Use> __device__ void each_digit(const Windows &windows, Use use) const {
        use(0, Long(count));
#pragma unroll
        for (int k = 0; k < SUM_WORDS; ++k)
            if (k < windows.sum_width) {
                Long top = windows.sum_whole ? Long(sum[0] | Word(sum[1]) << 32) : Long(int(sum[k]));
                use(1 + k, k + 1 < windows.sum_width ? Long(sum[k]) : top);
            }
#pragma unroll
        for (int k = 0; SQUARES && k < SQUARE_WORDS; ++k) {
            int column = k - windows.above;
            Long digit = windows.square_whole ? Long(square[0] | Word(square[SQUARES]) << 32) : Long(square[k]);
            if (column >= 0 && column < windows.square_width)
                use(1 + windows.sum_width + column, digit);
        }
    }
};

// Adds rows to the sums of segments; each lane has sums of its own, as long as its warp stays in one segment.
struct OfSegments {
    Windows windows;
    Long *segments;
    unsigned current;
    Sums mine;

    __device__ void put(const Sums &state, unsigned segment) const {
        Long *cell = segments + segment * windows.length();
        state.each_digit(windows, [&](int column, Long digit) {
            if (digit)
                add_to(cell + column, digit);
        });
    }
    __device__ void flush() {
#pragma unroll 1
        for (unsigned step = LANES / 2; step; step /= 2)
            mine.add(mine.of_lane(threadIdx.x % LANES ^ step));
        if (threadIdx.x % LANES == 0 && mine.count)
            put(mine, current);
        mine.clear();
    }
    // `first` and `last`: segments of the first and last rank of the turn.
    __device__ void add(const Sums &state, bool inside, unsigned first, unsigned last, unsigned own) {
        if (first != current) {
            flush();
            current = first;
        }
        if (!inside)
            return;
        if (first == last)
            mine.add(state);
        else
            put(state, own);
    }
};

// A sorted row: its line in the bucket and, in the upper half, its position in its tile before sorting.
#define SORTED                                                                                                        \
    ARRAY(unsigned, words), ARRAY(Word, values), ARRAY(unsigned, runs), ARRAY(unsigned, sizes), Long tile_places
#define GIVEN_SORTED                                                                                                  \
    Sorted { words, values, runs, sizes, unsigned(tile_places), unsigned(sizes_size), unsigned(runs_size / sizes_size) }

struct Sorted {
    unsigned *words;
    Word *values;
    unsigned *runs, *sizes, tile_places, n_buckets, n_tiles;
};

// The rows of a tile while a block sorts it.  Shared memory has the words of a scan; for each warp and bucket the
// number of rows, later their target positions; and the numbers of the rows.
struct Tile {
    unsigned *of_warps;
    unsigned short *counts;
    unsigned n_buckets;
    Word *values;

    __device__ Tile(unsigned *table, unsigned n_buckets)
        : of_warps(table), counts(reinterpret_cast<unsigned short *>(table + WARPS)), n_buckets(n_buckets),
          values(reinterpret_cast<Word *>(table + WARPS + (blockDim.x / LANES * n_buckets + 3) / 4 * 2)) {}

    __device__ unsigned short *of_warp() const { return counts + threadIdx.x / LANES * n_buckets; }
    __device__ static unsigned place(unsigned turn) {
        return threadIdx.x / LANES * (TURNS * LANES) + turn * LANES + threadIdx.x % LANES;
    }

    // Rank of a row among the rows of its warp and bucket; all lanes take part.
    __device__ unsigned rank(unsigned bucket, bool inside) const {
        unsigned lane = threadIdx.x % LANES, alike = __match_any_sync(~0u, inside ? bucket : ~0u), found = 0;
        unsigned short *count = of_warp() + bucket;
        if (inside)
            found = *count + __popc(alike & ((1u << lane) - 1));
        __syncwarp();
        if (inside && !(alike >> lane >> 1))
            *count = static_cast<unsigned short>(found + 1);
        __syncwarp();
        return found;
    }

    // Replace counts by the positions at which the rows of each warp begin in the sorted tile, and write the runs.
    __device__ void start(const Sorted &sorted, unsigned number) const {
        unsigned share = (n_buckets + blockDim.x - 1) / blockDim.x, first = threadIdx.x * share, sum = 0;
        unsigned end = min(first + share, n_buckets), n_warps = blockDim.x / LANES;
        for (unsigned bucket = first; bucket < end; ++bucket)
            for (unsigned warp = 0; warp < n_warps; ++warp)
                sum += counts[warp * n_buckets + bucket];
        sum = sum_before(sum, of_warps);
        for (unsigned bucket = first; bucket < end; ++bucket) {
            unsigned begin = sum;
            for (unsigned warp = 0; warp < n_warps; ++warp) {
                unsigned own = counts[warp * n_buckets + bucket];
                counts[warp * n_buckets + bucket] = static_cast<unsigned short>(sum);
                sum += own;
            }
            sorted.runs[Long(bucket) * sorted.n_tiles + number] = begin | (sum - begin) << 16;
            if (sum > begin)
                atomicAdd(sorted.sizes + bucket, sum - begin);
        }
    }

    // Write the numbers of the tile's rows to their sorted positions.
    template <typename Number>
    __device__ void sort(const Number (&numbers)[TURNS], const unsigned (&positions)[TURNS], unsigned n, Number *to) const {
        Number *buffer = reinterpret_cast<Number *>(values);
        __syncthreads();
#pragma unroll
        for (unsigned turn = 0; turn < TURNS; ++turn)
            if (place(turn) < n)
                buffer[positions[turn] & 0xFFFF] = numbers[turn];
        __syncthreads();
        for (unsigned at = threadIdx.x; at < n; at += blockDim.x)
            to[at] = buffer[at];
    }
};

// The data that is read for rows.
struct Source {
    Codes codes;
    const unsigned *target;
    int kind;
    Course course;
    unsigned n_lines;

    __device__ unsigned line(Long row) const {
        int code[4] = {0, 0, 0, 0};
        codes.of_four(row, 1, code);
        return line_of(code[0], n_lines);
    }
    __device__ Word value(Long row) const {
        return kind == FLOATS ? widened(target[row]) : reinterpret_cast<const Word *>(target)[row];
    }
};

// Read the tile's rows and rank them; gives for each its line, and its rank in its warp and bucket.
__device__ inline void read_tile(const Source &source, const Tile &tile, Long begin, unsigned n, unsigned shift,
                                 unsigned (&lines)[TURNS], unsigned (&ranks)[TURNS]) {
#pragma unroll
    for (unsigned first = 0; first < TURNS; first += AT_ONCE) {
        Word values[AT_ONCE];
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; ++k) {
            unsigned place = Tile::place(first + k);
            Long row = place < n ? Long(source.course.row(begin + place)) : 0;
            lines[first + k] = place < n ? source.line(row) : 0;
            values[k] = place < n ? source.value(row) : 0;
        }
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; ++k) {
            ranks[first + k] = tile.rank(lines[first + k] >> shift, Tile::place(first + k) < n);
            tile.values[Tile::place(first + k)] = values[k];
        }
    }
}

// Add the tile's rows to the sums of their segments.
__device__ inline void add_tile(const Tile &tile, unsigned begin, unsigned n, int bits, OfSegments &segments) {
#pragma unroll 1
    for (unsigned turn = 0; turn < TURNS; ++turn) {
        unsigned place = Tile::place(turn), first = place - threadIdx.x % LANES;
        if (first >= n)
            return;
        Sums own;
        own.begin(tile.values[place], segments.windows);
        segments.add(own, place < n, segment_of(begin + first, bits), segment_of(begin + min(first + LANES, n) - 1, bits),
                     segment_of(begin + place, bits));
    }
}

// Sort every tile of a range of ranks by bucket, and add the rows to the sums of their segments.
extern "C" __global__ void __launch_bounds__(512)
    sort_places(CODES, ARRAY(const unsigned, target), COURSE, Long n_places, Long n_lines, Long shift, Long bits, WINDOWS,
                ARRAY(Long, segments), SORTED) {
    extern __shared__ __align__(16) unsigned table[];
    Source source{GIVEN_CODES, target, int(target_kind), GIVEN_COURSE, unsigned(n_lines)};
    Sorted sorted = GIVEN_SORTED;
    Tile tile(table, sorted.n_buckets);
    OfSegments of_segments{GIVEN_WINDOWS, segments, 0, {}};
    of_segments.mine.clear();
    for (unsigned number = blockIdx.x; number < sorted.n_tiles; number += gridDim.x) {
        Long begin = Long(number) * sorted.tile_places;
        unsigned n = unsigned(min(n_places - begin, Long(sorted.tile_places))), lines[TURNS], positions[TURNS];
        for (unsigned at = threadIdx.x; at < blockDim.x / LANES * sorted.n_buckets; at += blockDim.x)
            tile.counts[at] = 0;
        __syncthreads();
        read_tile(source, tile, begin, n, unsigned(shift), lines, positions);
        add_tile(tile, unsigned(start + begin), n, int(bits), of_segments);
        __syncthreads();
        tile.start(sorted, number);
        __syncthreads();
        // The target position of a row and, in the upper half, its line in the bucket.
        Word found[TURNS];
#pragma unroll
        for (unsigned turn = 0; turn < TURNS; ++turn) {
            positions[turn] += Tile::place(turn) < n ? tile.of_warp()[lines[turn] >> shift] : 0;
            positions[turn] |= (lines[turn] & ((1u << shift) - 1)) << 16;
            found[turn] = tile.values[Tile::place(turn)];
        }
        tile.sort(found, positions, n, sorted.values + begin);
#pragma unroll
        for (unsigned turn = 0; turn < TURNS; ++turn)
            lines[turn] = positions[turn] >> 16 | Tile::place(turn) << 16;
        tile.sort(lines, positions, n, sorted.words + begin);
        __syncthreads();
    }
    of_segments.flush();
}

// Add to each row's sum those of the turn's earlier rows of its line; gives the last of these rows, or -1.
__device__ inline int sum_alike(unsigned alike, Sums &sum) {
    unsigned earlier = alike & ((1u << threadIdx.x % LANES) - 1);
    int before = earlier ? 31 - __clz(int(earlier)) : -1, from = before;
    while (__any_sync(~0u, from >= 0)) {
        Sums more = sum.of_lane(unsigned(max(from, 0)));
        int next = __shfl_sync(~0u, from, unsigned(max(from, 0)));
        if (from >= 0) {
            sum.add(more);
            from = next;
        }
    }
    return before;
}

// The sums of a bucket's lines while a warp walks over a piece.
struct Lines {
    unsigned *words, n;

    // Add the rows of a turn; gives the sums that each row has seen.
    __device__ Sums advance(Sums own, unsigned line, bool inside) const {
        unsigned alike = __match_any_sync(~0u, inside ? line : ~0u);
        int before = sum_alike(inside ? alike : 0, own);
        Sums earlier = own.of_lane(unsigned(max(before, 0))), seen;
        unsigned *known = words + line * ALL_WORDS;
        seen.load(known);
        __syncwarp();
        if (inside && !(alike >> threadIdx.x % LANES >> 1)) {
            own.add(seen);
            own.store(known);
        }
        __syncwarp();
        if (before >= 0)
            seen.add(earlier);
        return seen;
    }
};

// Call use(place, word, value, inside) for the rows of a piece in their order, one turn of a warp at a time.
template <typename Use> __device__ inline void walk_piece(const Sorted &sorted, const Piece &piece, Use use) {
    unsigned lane = threadIdx.x % LANES, begin = Word(piece.first) * sorted.n_tiles / piece.step;
    unsigned end = Word(piece.first + 1) * sorted.n_tiles / piece.step;
    const unsigned *runs = sorted.runs + Long(piece.bucket) * sorted.n_tiles;
    for (unsigned tile = begin; tile < end; tile += LANES) {
        unsigned run = tile + lane < end ? runs[tile + lane] : 0, upto = run >> 16;
#pragma unroll
        for (unsigned step = 1; step < LANES; step *= 2) {
            unsigned other = __shfl_up_sync(~0u, upto, step);
            upto += lane >= step ? other : 0;
        }
        // The position of a row that is before all runs of a tile.
        unsigned origin = lane * sorted.tile_places + (run & 0xFFFF) - (upto - (run >> 16));
        unsigned size = __shfl_sync(~0u, upto, LANES - 1);
        Long first = Long(tile) * sorted.tile_places;
        for (unsigned from = 0; from < size; from += LANES) {
            unsigned number = from + lane, of = 0;
            // The first run that ends after the row.
#pragma unroll
            for (unsigned step = LANES / 2; step; step /= 2)
                of += __shfl_sync(~0u, upto, of + step - 1) <= number ? step : 0;
            bool inside = number < size;
            Long at = first + __shfl_sync(~0u, origin, of) + number;
            unsigned word = inside ? sorted.words[at] : 0;
            use(first + of * sorted.tile_places + (word >> 16), word & 0xFFFF, inside ? sorted.values[at] : 0, inside);
        }
    }
}

// Shared memory of a block that walks: the sums of each warp.
__device__ inline Lines lines_of_warp(unsigned *table, unsigned n) {
    return Lines{table + threadIdx.x / LANES * ALL_WORDS * n, n};
}

// Compute what each piece adds to the lines of its bucket; the first block writes where the pieces of each bucket end.
extern "C" __global__ void __launch_bounds__(128)
    sum_pieces(SORTED, Long shift, Long target, WINDOWS, ARRAY(unsigned, ends), ARRAY(unsigned, of_pieces)) {
    extern __shared__ __align__(16) unsigned table[];
    Sorted sorted = GIVEN_SORTED;
    Windows windows = GIVEN_WINDOWS;
    unsigned *own_ends = table + WARPS, lane = threadIdx.x % LANES, n_warps = blockDim.x / LANES;
    plan_pieces(sizes, sorted.n_buckets, sorted.n_tiles, unsigned(target), table, own_ends);
    for (unsigned bucket = threadIdx.x; !blockIdx.x && bucket < sorted.n_buckets; bucket += blockDim.x)
        ends[bucket] = own_ends[bucket];
    Lines lines = lines_of_warp(own_ends + (sorted.n_buckets + 3) / 4 * 4, 1u << shift);
    unsigned n_words = ALL_WORDS * lines.n, n_pieces = own_ends[sorted.n_buckets - 1];
    for (unsigned number = blockIdx.x * n_warps + threadIdx.x / LANES; number < n_pieces; number += gridDim.x * n_warps) {
        for (unsigned word = lane; word < n_words; word += LANES)
            lines.words[word] = 0;
        __syncwarp();
        walk_piece(sorted, piece_of(number, own_ends, sorted.n_buckets),
                   [&](Long, unsigned line, Word value, bool inside) {
                       Sums own;
                       own.begin(value, windows);
                       lines.advance(own, line, inside);
                   });
        for (unsigned word = lane; word < n_words; word += LANES)
            of_pieces[Word(number) * n_words + word] = lines.words[word];
        __syncwarp();
    }
}

// Replace the sums of each piece by the sums before it; write the digits of all rows so far; one thread for each line.
extern "C" __global__ void __launch_bounds__(128)
    scan_pieces(ARRAY(const unsigned, ends), Long shift, Long n_lines, WINDOWS, ARRAY(unsigned, so_far),
                ARRAY(unsigned, of_pieces), ARRAY(Long, digits)) {
    Windows windows = GIVEN_WINDOWS;
    Long line = Long(blockIdx.x) * blockDim.x + threadIdx.x;
    if (line >= n_lines)
        return;
    unsigned n = 1u << shift, bucket = unsigned(line >> shift), slot = unsigned(line) & (n - 1);
    unsigned *carried = so_far + line * ALL_WORDS;
    Sums running;
    running.load(carried);
    unsigned end = ends[bucket];
    for (unsigned first = bucket ? ends[bucket - 1] : 0; first < end; first += AT_ONCE) {
        Sums own[AT_ONCE];
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; ++k)
            own[k].load(of_pieces + (Word(min(first + k, end - 1)) * n + slot) * ALL_WORDS);
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; ++k)
            if (first + k < end) {
                running.store(of_pieces + (Word(first + k) * n + slot) * ALL_WORDS);
                running.add(own[k]);
            }
    }
    running.store(carried);
    Long *cell = digits + line * windows.length();
    running.each_digit(windows, [&](int column, Long digit) { cell[column] = digit; });
}

// The sum of the rows that a row sees, as sign and magnitude.
struct Total {
    double unit;
    bool negative;
    unsigned size[SUM_WORDS];

    __device__ Total(const Sums &seen, const Windows &windows)
        : unit(windows.unit), negative(seen.sum[SUM_WORDS - 1] >> 31) {
#pragma unroll
        for (int k = 0; k < SUM_WORDS; ++k)
            size[k] = seen.sum[k];
        negate_if(negative, size);
    }
    __device__ double factor() const { return negative ? -unit : unit; }
    __device__ Pair pair() const {
        Pair found = pair_of(size);
        return Pair{found.high * factor(), found.low * factor()};
    }
    __device__ double near() const { return nearly(size) * factor(); }
    __device__ ExactSum exact() const {
        ExactSum sum;
        double word_unit = factor();
#pragma unroll
        for (int k = 0; k < SUM_WORDS; ++k) {
            sum.add(size[k] * word_unit);
            word_unit *= 0x1p32;
        }
        return sum;
    }
};

// What encodings of all walks have in common; subclasses know what rows see.
struct Encoder {
    Rule rule;
    Priors priors;
    Output output;
    Windows windows;
    Word burned;
    unsigned n_lines;

    // S / n, or an m-estimate with a given prior; used if only exact signs show to which side it must be rounded.
    __device__ double settled(const Found &found, const Total &total, double count, double m, double prior) const {
        ExactSum sum = total.exact();
        return nearer(found.value, found.upwards, sum, count, m, prior, 1.0);
    }

    __device__ double estimate(const Sums &seen, const Total &total, const Prior &prior, bool &sure) const {
        double m = rule.first, count = seen.count;
        Pair own = total.pair();
        Found found = near_estimate(own.high, count, m, prior.high, own.low + prior.rest);
        bool known = prior.rest == prior.rest && fabs(own.high + prior.high) >= 0x1p-16 * fabs(own.high);
        if (!found.sure && known && (!rule.by_mean || m == 0))
            found = {settled(found, total, count, m, rule.by_mean ? 0 : rule.prior), true, false};
        sure = found.sure;
        return found.value;
    }

    // n Q - S^2, rounded once: by pairs, which are accurate to 2^-95 of n Q; if that does not decide, by integers.
    __device__ double spread(const Sums &seen, const Total &total) const {
        Pair own = pair_of(total.size), all = times(pair_of(seen.square), seen.count), left = minus(all, times(own, own));
        double error = all.high * 0x1p-95, found = left.high + (left.low - error);
        if (seen.count == 1 || found == left.high + (left.low + error))
            return seen.count == 1 ? 0 : found;
        unsigned product[2 * SUM_WORDS], square[2 * SUM_WORDS], count[1] = {seen.count};
        multiply(count, seen.square, product);
        multiply(total.size, total.size, square);
        negate_if(true, square);
        add(product, square);
        return rounded(product);
    }

    __device__ double blend(const Sums &seen, const Total &total, const Prior &prior) const {
        double count = seen.count, noise = 0;
        Pair own = total.pair();
        Found mean = near_estimate(own.high, count, 0, 0, own.low);
        if (!mean.sure)
            mean.value = settled(mean, total, count, 0, 0);
        if (SQUARES)
            noise = spread(seen, total);
        return smoothed(mean.value, count, noise, 64 * windows.low, rule, prior);
    }

    // Keep an estimate that only the digits can round.
    __device__ void doubt(const Sums &seen, Word row, unsigned segment) const {
        Word number;
        Long length = windows.length();
        if (output.doubt(row, segment, length, number))
            seen.each_digit(windows, [&](int column, Long digit) { output.seen[number * length + column] = digit; });
    }

    __device__ void encode(const Sums &seen, Word place, Word row, unsigned line, unsigned segment) const {
        bool counted = seen.count >= rule.least && rule.has_category(line, n_lines), sure = true;
        double value = __longlong_as_double(0x7FF8ll << 48);
        if (output.unseen && counted)
            output.unseen[row] = 0;
        if (place >= burned) {
            Prior prior = priors.at(segment, rule);
            value = rule.without(line, n_lines, prior.mu);
            if (counted) {
                Total total(seen, windows);
                float quick;
                if (ESTIMATES && sizeof(ENCODING) == 4 && quick_estimate(total.near(), seen.count, rule, prior, quick)) {
                    output.out[Long(row) * output.by_row] = quick;
                    return;
                }
                value = ESTIMATES ? estimate(seen, total, prior, sure) : blend(seen, total, prior);
            }
        }
        if (!sure)
            doubt(seen, row, segment);
        output.put(value, row, 0);
    }
};

// Write the encodings of the rows of all pieces, starting from the sums before them.
extern "C" __global__ void __launch_bounds__(128, 1)
    walk_pieces(COURSE, SORTED, ARRAY(const unsigned, ends), Long shift, Long n_lines, Long bits, Long burned, WINDOWS,
                ARRAY(const unsigned, before), RULE, PRIORS, OUTPUT) {
    extern __shared__ __align__(16) unsigned table[];
    Sorted sorted = GIVEN_SORTED;
    Course course = GIVEN_COURSE;
    Encoder encoder{GIVEN_RULE, GIVEN_PRIORS, GIVEN_OUTPUT, GIVEN_WINDOWS, Word(burned), unsigned(n_lines)};
    unsigned lane = threadIdx.x % LANES, n_warps = blockDim.x / LANES, n_pieces = ends[sorted.n_buckets - 1];
    Lines lines = lines_of_warp(table, 1u << shift);
    unsigned n_words = ALL_WORDS * lines.n;
    for (unsigned number = blockIdx.x * n_warps + threadIdx.x / LANES; number < n_pieces; number += gridDim.x * n_warps) {
        for (unsigned word = lane; word < n_words; word += LANES)
            lines.words[word] = before[Word(number) * n_words + word];
        __syncwarp();
        Piece piece = piece_of(number, ends, sorted.n_buckets);
        walk_piece(sorted, piece, [&](Long i, unsigned line, Word value, bool inside) {
            Sums own;
            own.begin(value, encoder.windows);
            Sums seen = lines.advance(own, line, inside);
            Word place = course.start + Word(i);
            if (inside)
                encoder.encode(seen, place, course.row(i), line + (piece.bucket << shift),
                               segment_of(unsigned(place), int(bits)));
        });
        __syncwarp();
    }
}
