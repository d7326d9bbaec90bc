// How kernels walk over rows at the speed of memory: in tiles of several turns of 1,024 neighbouring rows.  A thread
// has four neighbouring rows in each turn, as one vector, and starts the loads of one or two turns (`AT_ONCE`) before
// it uses the first.

#include "rows.cuh"

enum : unsigned { STRIDES = 1024, FOURS = STRIDES / 4, STRAIGHT_TURNS = 4, MOST_TURNS = 64 };

// Numbers between the last vector boundary and the array's first number, 0 to 3.
template <typename Number> __device__ inline unsigned ahead_of_four(const Number *array) {
    return unsigned(reinterpret_cast<Word>(array) / sizeof(Number)) & 3;
}

#define KEYS ARRAY(const KEY, keys), Word base, Long last, Long coded, ARRAY(const int, ranks), Long n_lines
#define GIVEN_SLOTS                                                                                                   \
    Slots<KEY> {                                                                                                      \
        keys, static_cast<KEY>(base), unsigned(last), ranks_size ? ranks : nullptr, unsigned(n_lines), coded != 0     \
    }

// Slots of keys in a table: distances from a base; the last slot is for all keys beyond.  Codes count from -2 (unknown)
// and -1 (missing) on; other keys may have ranks.  If a table in shared memory is ordered by slot, rows need not look
// up their ranks.
template <typename Key> struct Slots {
    const Key *keys;
    Key base;
    unsigned last;
    const int *ranks;
    unsigned n_lines;
    bool coded;

    __device__ unsigned of(Key key) const {
        Key distance = Key(key - base);
        if constexpr (sizeof(Key) == 8)
            return distance < last ? unsigned(distance) : last;
        else
            return min(unsigned(distance), last);
    }

    // Number of a slot's category, plus one; zero means unknown.
    __device__ unsigned rank_of(unsigned slot) const { return slot < last ? ranks[slot] : 0; }
    __device__ unsigned line_of_rank(unsigned rank) const { return rank ? rank - 1 : n_lines - 2; }

    __device__ unsigned line_of(unsigned slot) const {
        if (coded)
            return slot < 2 ? slot + n_lines - 2 : slot - 2;
        return ranks ? line_of_rank(rank_of(slot)) : slot < last ? slot : n_lines - 2;
    }
};

// Rows [begin, end) of a chunk are whole tiles; the other rows are few.
struct Tiles {
    Long begin, end;
    Word block;
    unsigned n_tiles, turns, shift;

    __device__ Long size() const { return Long(turns) * STRIDES; }

    // Tiles of any rows; `ahead`: the rows of an array's vector that are before the first row of the chunk.
    __device__ static Tiles straight(Long n_rows, unsigned ahead) {
        Tiles tiles{};
        tiles.turns = STRAIGHT_TURNS;
        tiles.cut(-ahead & 3, n_rows);
        return tiles;
    }

    // Blocks of random folds that have the same length, shifted by `shift` rows each, so that a block's rows begin at a
    // vector.
    __device__ static Tiles blocks(Word n_splits, Word first_row, Long n_rows, unsigned ahead) {
        Tiles tiles{};
        tiles.turns = unsigned(n_splits);
        tiles.shift = unsigned(first_row - 1023 * n_splits - ahead) & 3;
        Word first = 1023 * n_splits + tiles.shift, size = Word(tiles.size());
        Word number = first_row > first ? (first_row - first + size - 1) / size : 0;
        tiles.block = 10 + number;
        tiles.cut(Long(first + number * size - first_row), n_rows);
        return tiles;
    }

    __device__ void cut(Long from, Long n_rows) {
        begin = min(from, n_rows);
        n_tiles = unsigned((n_rows - begin) / size());
        end = begin + n_tiles * size();
    }
};

// Sources of the folds of four neighbouring rows, turn by turn.  `BLOCKS`: blocks for which a multiprocessor has
// registers. `Fixed`: data for all rows, in shared memory, since registers are few.  `Loaded`: data that is read ahead.

// The defaults of sources.
struct FoldSource {
    enum { BLOCKS = 2 };
    struct Loaded {};
    __device__ static Tiles tiles(const Folds &, Long n_rows, unsigned ahead) {
        return Tiles::straight(n_rows, ahead);
    }
    template <typename Fixed> __device__ void enter(const Fixed &, const Tiles &, unsigned, unsigned) {}
    template <typename Fixed> __device__ void cross(const Fixed &, const Tiles &, unsigned, unsigned) {}
    template <typename Fixed> __device__ void read(const Fixed &, Long, Loaded &) const {}
    template <typename Fixed> __device__ void next(const Fixed &) {}
};

// No folds, or given fold numbers.
struct StraightFolds : FoldSource {
    struct Fixed {
        const unsigned *numbers;
        bool aligned;
    };
    struct Loaded {
        unsigned folds[4];
    };

    __device__ StraightFolds(const Fixed &) {}
    __device__ static Fixed fixed(const Folds &folds, const Tiles &tiles) {
        const unsigned *numbers = reinterpret_cast<const unsigned *>(folds.kind == GIVEN ? folds.numbers : nullptr);
        return Fixed{numbers, !ahead_of_four(numbers + tiles.begin)};
    }
    __device__ void read(const Fixed &fixed, Long row, Loaded &into) const {
        if (fixed.numbers)
            read_four(fixed.numbers + row, fixed.aligned, into.folds);
        else
            into.folds[0] = into.folds[1] = into.folds[2] = into.folds[3] = 0;
    }
    __device__ auto folds(const Fixed &, Long, const Loaded &loaded) const -> const unsigned (&)[4] {
        return loaded.folds;
    }
};

// Any other folds, for four rows at a time.
struct ComputedFolds : FoldSource {
    enum { BLOCKS = 1 };
    struct Fixed {
        Folds folds;
    };
    Folds source;
    unsigned found[4];

    __device__ ComputedFolds(const Fixed &fixed) : source(fixed.folds), found{0, 0, 0, 0} {}
    __device__ static Fixed fixed(const Folds &folds, const Tiles &) { return Fixed{folds}; }
    __device__ void enter(const Fixed &, const Tiles &, unsigned, unsigned) {
        // A thread's next rows may be before its last ones.
        source.begin = source.end = 0;
    }
    __device__ auto folds(const Fixed &, Long row, const Loaded &) -> const unsigned (&)[4] {
        source.of_four(row, 4, found);
        return found;
    }
};

// Random folds of whole blocks: the rows of a stride have one hash, which gives its first fold and the step to the
// next.
struct HashedFolds : FoldSource {
    struct Fixed {
        Word seed;
        unsigned n_units, units_inverse, n_splits, splits_inverse;
        unsigned char units[MOST_TURNS];
    };
    unsigned fold[4], step[4];

    __device__ HashedFolds(const Fixed &) {}
    __device__ static Tiles tiles(const Folds &folds, Long n_rows, unsigned ahead) {
        return Tiles::blocks(folds.n_splits, folds.first_row, n_rows, ahead);
    }
    __device__ static Fixed fixed(const Folds &folds, const Tiles &) {
        Fixed fixed{folds.seed, folds.n_units, folds.units_inverse, unsigned(folds.n_splits), folds.splits_inverse, {}};
        for (unsigned i = 0; i < folds.n_units; ++i)
            fixed.units[i] = static_cast<unsigned char>(folds.units[i]);
        return fixed;
    }
    __device__ static Word key_of(const Fixed &fixed, Word block) {
        return mixed(fixed.seed + block * BLOCK_KEY);
    }
    __device__ void hash(const Fixed &fixed, Word stride_key, int j) {
        Word key = mixed(stride_key);
        step[j] = fixed.units[rest_of(unsigned(key >> 32), fixed.n_units, fixed.units_inverse)];
        fold[j] = rest_of(unsigned(key), fixed.n_splits, fixed.splits_inverse);
    }
    // The smaller one of a number below twice the divisor, and this number minus the divisor, which wraps around.
    __device__ static unsigned rest_of(unsigned value, unsigned divisor, unsigned inverse) {
        unsigned rest = value - __umulhi(value, inverse) * divisor;
        return min(rest, rest - divisor);
    }
    __device__ void advance(const Fixed &fixed, int j) {
        fold[j] += step[j];
        fold[j] = min(fold[j], fold[j] - fixed.n_splits);
    }
    __device__ void enter(const Fixed &fixed, const Tiles &tiles, unsigned tile, unsigned four) {
        Word block_key = key_of(fixed, tiles.block + tile), key = block_key + (4 * four + tiles.shift) * STRIDE_KEY;
#pragma unroll
        for (int j = 0; j < 4; ++j)
            hash(fixed, key + j * STRIDE_KEY, j);
        // Rows after the last stride are one turn ahead.
        if (wraps(tiles, four))
            wrap(fixed, tiles, block_key, true);
    }
    // In the last turn these rows belong to the next block.
    __device__ void cross(const Fixed &fixed, const Tiles &tiles, unsigned tile, unsigned four) {
        if (wraps(tiles, four))
            wrap(fixed, tiles, key_of(fixed, tiles.block + tile + 1), false);
    }
    __device__ static bool wraps(const Tiles &tiles, unsigned four) { return tiles.shift && four == FOURS - 1; }
    __device__ void wrap(const Fixed &fixed, const Tiles &tiles, Word block_key, bool ahead) {
#pragma unroll
        for (int j = 1; j < 4; ++j)
            if (j + tiles.shift >= 4) {
                hash(fixed, block_key + (j + tiles.shift - 4) * STRIDE_KEY, j);
                if (ahead)
                    advance(fixed, j);
            }
    }
    __device__ auto folds(const Fixed &, Long, const Loaded &) const -> const unsigned (&)[4] { return fold; }
    __device__ void next(const Fixed &fixed) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
            advance(fixed, j);
    }
};

// Make the compiler read shared memory again instead of keeping its values in registers.
__device__ inline void read_anew() { asm volatile("" ::: "memory"); }

// The data that the threads of a block share; tables follow it.
template <typename Source> struct Plan {
    Tiles tiles;
    typename Source::Fixed fixed;

    __device__ void make(const Folds &folds, Long n_rows, unsigned ahead) {
        tiles = Source::tiles(folds, n_rows, ahead);
        fixed = Source::fixed(folds, tiles);
    }
};
enum : unsigned { PLAN_WORDS = 64 };

// Some turns of a thread whose loads are in flight together; `before_last` is called before the last one is used.
template <unsigned AT_ONCE, typename Source, typename Work, typename Call>
__device__ inline void take_turns(const Plan<Source> &plan, Source &source, const Work &work, Long row, unsigned turns,
                                  Call before_last) {
    typename Work::Rows rows[AT_ONCE];
    typename Source::Loaded loaded[AT_ONCE];
    read_anew();
#pragma unroll
    for (unsigned i = 0; i < AT_ONCE; ++i)
        if (i < turns) {
            work.read(row + i * STRIDES, rows[i]);
            source.read(plan.fixed, row + i * STRIDES, loaded[i]);
        }
#pragma unroll
    for (unsigned i = 0; i < AT_ONCE; ++i)
        if (i < turns) {
            if (i + 1 == turns)
                before_last();
            work.use(row + i * STRIDES, rows[i], source.folds(plan.fixed, row + i * STRIDES, loaded[i]));
            source.next(plan.fixed);
        }
}

// Pass four rows of whole tiles to work.read(row, into), then to work.use(row, read, folds).  The last tiles come first
// if the rows have just been read from the first on.  `AT_ONCE`: turns whose loads are in flight together.
template <typename Source, typename Work>
__device__ inline void walk(const Plan<Source> &plan, const Work &work, bool backwards,
                            unsigned thread = blockIdx.x * blockDim.x + threadIdx.x,
                            unsigned threads = gridDim.x * blockDim.x) {
    constexpr unsigned AT_ONCE = Work::AT_ONCE;
    Source source(plan.fixed);
    unsigned n_items = plan.tiles.n_tiles * FOURS;
    for (unsigned item = thread; item < n_items; item += threads) {
        unsigned tile = item / FOURS, four = item % FOURS;
        if (backwards)
            tile = plan.tiles.n_tiles - 1 - tile;
        Long row = plan.tiles.begin + Long(tile) * plan.tiles.size() + 4 * four;
        source.enter(plan.fixed, plan.tiles, tile, four);
        unsigned left = plan.tiles.turns;
#pragma unroll 1
        for (; left > AT_ONCE; left -= AT_ONCE, row += AT_ONCE * STRIDES)
            take_turns<AT_ONCE>(plan, source, work, row, AT_ONCE, [] {});
        take_turns<AT_ONCE>(plan, source, work, row, left, [&] { source.cross(plan.fixed, plan.tiles, tile, four); });
    }
}

// Pass all other rows to work.use_one(row, fold).
template <typename Work>
__device__ inline void walk_others(const Tiles &tiles, Long n_rows, Folds folds, const Work &work) {
    Long thread = Long(blockIdx.x) * blockDim.x + threadIdx.x, threads = Long(gridDim.x) * blockDim.x;
    Long n_others = tiles.begin + n_rows - tiles.end;
#pragma unroll 1
    for (Long i = thread; i < n_others; i += threads) {
        Long row = i < tiles.begin ? i : i - tiles.begin + tiles.end;
        unsigned found[4] = {0, 0, 0, 0};
        folds.of_four(row, 1, found);
        work.use_one(row, found[0]);
    }
}
