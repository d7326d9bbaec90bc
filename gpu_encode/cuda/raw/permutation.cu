// Ranks of rows in random orders, and rows at ranks: cpu_fallback/row_numbers.py has the definition.

#include "rows.cuh"

constexpr unsigned LANES = 32, ROUNDS = 8, INSIDE_ROUNDS = 6;

// A Feistel network; its keys are in the order in which they are used: forwards from a row to its rank.
#define NETWORK Word network_rows, Long half, ARRAY(const Word, keys), Long forward
#define GIVEN_NETWORK Network{network_rows, unsigned(half), keys, forward != 0}

struct Network {
    Word n_rows;
    unsigned half;
    const Word *keys;
    bool forward;

    __device__ unsigned round(unsigned number, unsigned word) const {
        return unsigned(mixed(word + keys[number])) & ((1u << half) - 1);
    }
};

// A number as two halves; a round hashes the right half.  The backward direction uses the keys, and the halves, in
// reverse order.
struct Halves {
    unsigned left, right;

    __device__ static Halves of(Word number, const Network &network) {
        unsigned mask = (1u << network.half) - 1, low = unsigned(number) & mask;
        unsigned high = unsigned(number >> network.half) & mask;
        return network.forward ? Halves{high, low} : Halves{low, high};
    }
    __device__ Word number(const Network &network) const {
        return network.forward ? Word(left) << network.half | right : Word(right) << network.half | left;
    }
    __device__ bool inside(const Network &network) const { return number(network) < network.n_rows; }
    __device__ void next(unsigned hash) {
        unsigned other = left ^ hash;
        left = right, right = other;
    }
};

// One pass of the network; its first rounds are in tables.
template <int tabulated>
__device__ inline void pass(Halves &halves, const Network &network, const unsigned short *hashes) {
#pragma unroll
    for (unsigned round = 0; round < ROUNDS; ++round)
        halves.next(int(round) < tabulated ? hashes[(round << network.half) + halves.right]
                                           : network.round(round, halves.right));
}

// Each warp walks with the numbers [begin, end); a lane whose number is in the range takes the next one.
template <int tabulated, typename Number>
__device__ inline void walk(const Network &network, const unsigned short *hashes, Word first, Long begin, Long end,
                            Number *out) {
    unsigned lane = threadIdx.x % LANES, earlier = (1u << lane) - 1;
    Long i = begin + lane, next = begin + LANES;
    Halves halves = Halves::of(first + i, network);
    while (__any_sync(~0u, i < end)) {
        pass<tabulated>(halves, network, hashes);
        bool inside = i < end && halves.inside(network);
        unsigned done = __ballot_sync(~0u, inside);
        if (inside) {
            out[i] = Number(halves.number(network));
            i = next + __popc(done & earlier);
            halves = Halves::of(first + i, network);
        }
        next += __popc(done);
    }
}

template <typename Number>
__device__ inline void walk_all(const Network &network, unsigned tabulated, Word first, Long size, Number *out) {
    extern __shared__ __align__(16) unsigned table[];
    unsigned short *hashes = reinterpret_cast<unsigned short *>(table);
    for (unsigned k = threadIdx.x; k < tabulated << network.half; k += blockDim.x)
        hashes[k] = static_cast<unsigned short>(network.round(k >> network.half, k & ((1u << network.half) - 1)));
    __syncthreads();
    Long warp = Long(blockIdx.x) * (blockDim.x / LANES) + threadIdx.x / LANES;
    Long n_warps = Long(gridDim.x) * blockDim.x / LANES;
    Long share = (size + n_warps - 1) / n_warps, begin = min(warp * share, size), end = min(begin + share, size);
    if (tabulated == 8)
        walk<8>(network, hashes, first, begin, end, out);
    else if (tabulated == 7)
        walk<7>(network, hashes, first, begin, end, out);
    else if (tabulated == 3)
        walk<3>(network, hashes, first, begin, end, out);
    else
        walk<0>(network, hashes, first, begin, end, out);
}

extern "C" __global__ void __launch_bounds__(1024)
    walk_rows_32(NETWORK, Long tabulated, Word first, ARRAY(unsigned, out)) {
    walk_all(GIVEN_NETWORK, unsigned(tabulated), first, out_size, out);
}

extern "C" __global__ void __launch_bounds__(1024)
    walk_rows_64(NETWORK, Long tabulated, Word first, ARRAY(Long, out)) {
    walk_all(GIVEN_NETWORK, unsigned(tabulated), first, out_size, out);
}

__device__ inline Word inverse_of(Word odd) {
    Word inverse = odd;
    for (int step = 0; step < 5; ++step)
        inverse *= 2 - odd * inverse;
    return inverse;
}

// The rows of a block, from its key.
struct Inside {
    Word key, size;
    unsigned bits;

    __device__ Word step(unsigned number) const { return mixed(key + number * BLOCK_KEY); }

    __device__ Word scrambled(Word word, bool forward) const {
        Word mask = (Word(1) << bits) - 1;
        unsigned shift = (bits + 1) / 2;
        for (unsigned round = 0; round < INSIDE_ROUNDS; ++round) {
            Word own = step(forward ? INSIDE_ROUNDS - round : round + 1), factor = own >> 32 | 1;
            if (forward) {
                word = ((word ^ (word >> shift)) - own) * inverse_of(factor) & mask;
            } else {
                word = (word * factor + own) & mask;
                word ^= word >> shift;
            }
        }
        return word;
    }
    __device__ Word walked(Word word, bool forward) const {
        do
            word = scrambled(word, forward);
        while (word >= size);
        return word;
    }
};

// Write the rank of each row from the first one on, or the row at each rank, in an order of blocks.
extern "C" __global__ void __launch_bounds__(256)
    walk_blocks(Word first, Word n_rows, Word block, Long bits, Word last, Word lacking, NETWORK, Word inside_key,
                ARRAY(Long, out)) {
    Network network = GIVEN_NETWORK;
    for (Long i = Long(blockIdx.x) * blockDim.x + threadIdx.x; i < out_size; i += Long(gridDim.x) * blockDim.x) {
        Word at = first + Word(i);
        if (!network.forward && at >= (last + 1) * block - lacking)
            at += lacking;
        Word number = at / block;
        Halves halves = Halves::of(number, network);
        do
            pass<0>(halves, network, nullptr);
        while (!halves.inside(network));
        Word other = halves.number(network), mine = network.forward ? number : other;
        Inside inside{inside_key + mine * STRIDE_KEY, min(block, n_rows - mine * block), unsigned(bits)};
        Word begin = other * block - (network.forward && other > last ? lacking : 0);
        out[i] = Long(begin + inside.walked(at - number * block, network.forward));
    }
}

// Write for each rank from `start` on the position of its row in its block; one warp works on a block of at most 256
// rows.  `numbers` are the blocks; the first one begins at or before `start`.
extern "C" __global__ void __launch_bounds__(256)
    shuffle_blocks(Long start, Word n_rows, ARRAY(const unsigned, numbers), Long block, Long first, Long turn,
                   Long lacking, Long bits, Word inside_key, ARRAY(unsigned char, out)) {
    unsigned lane = threadIdx.x % LANES, shift = unsigned(bits + 1) / 2, mask = (1u << bits) - 1;
    // A word has two numbers.
    unsigned both = mask | mask << 16;
    Long warp = Long(blockIdx.x) * (blockDim.x / LANES) + threadIdx.x / LANES;
    for (Long k = warp; k < numbers_size; k += Long(gridDim.x) * (blockDim.x / LANES)) {
        Word number = numbers[k];
        Word size = min(Word(block), n_rows - number * Word(block));
        Inside inside{inside_key + number * STRIDE_KEY, size, unsigned(bits)};
        Word own = inside.step(min(lane, INSIDE_ROUNDS - 1) + 1);
        unsigned of_round = (unsigned(own >> 32 | 1) & mask) | (unsigned(own) & mask) << 16;
        unsigned factor[INSIDE_ROUNDS], added[INSIDE_ROUNDS];
#pragma unroll
        for (unsigned round = 0; round < INSIDE_ROUNDS; ++round) {
            unsigned given = __shfl_sync(~0u, of_round, round);
            factor[round] = given & 0xFFFF, added[round] = given >> 16 | (given & 0xFFFF0000u);
        }
        Long begin = (first + k) * block;
        begin -= start + (begin >= turn + lacking ? lacking : 0);
        for (unsigned place = 4 * lane; place < inside.size; place += 4 * LANES) {
            unsigned even = place | (place + 2) << 16, odd = (place + 1) | (place + 3) << 16;
#pragma unroll
            for (unsigned round = 0; round < INSIDE_ROUNDS; ++round) {
                even = (even * factor[round] + added[round]) & both, odd = (odd * factor[round] + added[round]) & both;
                even = (even ^ (even >> shift)) & both, odd = (odd ^ (odd >> shift)) & both;
            }
            unsigned four = even | odd << 8;
            Long at = begin + place;
            if (inside.size == mask + 1 && bits > 1 && at >= 0 && at + 4 <= out_size && at % 4 == 0) {
                *reinterpret_cast<unsigned *>(out + at) = four;
                continue;
            }
            // Only numbers that start inside of the block are sure to return to it.
            for (unsigned j = 0; j < 4 && place + j < inside.size; ++j, four >>= 8) {
                Word row = four & 255;
                while (row >= inside.size)
                    row = inside.scrambled(row, false);
                if (at + j >= 0 && at + j < out_size)
                    out[at + j] = static_cast<unsigned char>(row);
            }
        }
    }
}
