// Runs the kernels of one module on this CPU: warps of 32 lanes in lockstep, whose lanes meet again where all ways do.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define END (-1)
#define MOST_WARPS 32
#define STACK_BYTES (16u << 20)
#define MOST_PARTED 64
#define SECTOR 32

enum kind { LOAD, STORE, ATOMIC, KINDS };

// Memory of an array, and what warps do there: instructions of theirs, lanes that take part, sectors of 32 bytes.
struct range {
    uint64_t begin, end, warps[KINDS], lanes[KINDS], sectors[KINDS], bytes[KINDS];
};

struct parted {
    int at, meeting;
    uint32_t lanes;
};

struct warp {
    uint32_t number, live;
    struct parted parted[MOST_PARTED];
    int top, done;
    char *shared;
    ucontext_t context;
    void (*body)(struct warp *, char **);
};

static struct {
    uint32_t blocks, threads, block;
    uint64_t shared_bytes;
    struct range *ranges;
    int n_ranges;
    uint64_t shared_atomics, strange;
    const char *wrong;
    char **arguments;
} launch;

static struct warp warps[MOST_WARPS];
static ucontext_t scheduler;

#define TID(w, l) ((w)->number * 32u + (uint32_t)(l))

static inline double u2d(uint64_t x) { double d; memcpy(&d, &x, 8); return d; }
static inline uint64_t d2u(double d) { uint64_t x; memcpy(&x, &d, 8); return x; }
static inline float u2f(uint32_t x) { float f; memcpy(&f, &x, 4); return f; }
static inline uint32_t f2u(float f) { uint32_t x; memcpy(&x, &f, 4); return x; }
static inline float ftz(float f) { return fabsf(f) < 1.17549435e-38f ? copysignf(0.0f, f) : f; }
static inline uint64_t high_u64(uint64_t a, uint64_t b) { return (unsigned __int128)a * b >> 64; }
static inline int64_t high_s64(int64_t a, int64_t b) { return (__int128)a * b >> 64; }
// As the GPU converts: what is too large becomes the largest, and NaN of 32 bits zero.
#define TO_WHOLE(type, low, high, nan) \
    static inline type to_##type(double d) { return isnan(d) ? nan : d <= (double)(low) ? low : d >= (double)(high) ? high : (type)d; }
TO_WHOLE(int64_t, INT64_MIN, INT64_MAX, INT64_MIN)
TO_WHOLE(uint64_t, 0u, UINT64_MAX, 1ull << 63)
TO_WHOLE(int32_t, INT32_MIN, INT32_MAX, 0)
TO_WHOLE(uint32_t, 0u, UINT32_MAX, 0u)
TO_WHOLE(int16_t, INT16_MIN, INT16_MAX, 0)
TO_WHOLE(uint16_t, 0u, UINT16_MAX, 0u)

static inline uint64_t two_words(uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; }

static inline uint64_t turn_bits(uint64_t x, int bits) {
    uint64_t turned = 0;
    for (int i = 0; i < bits; i++) turned |= (x >> i & 1) << (bits - 1 - i);
    return turned;
}

static inline uint64_t ones(uint32_t count) { return count >= 64 ? ~0ull : (1ull << count) - 1; }

static inline uint64_t put_bits(uint64_t part, uint64_t whole, uint32_t first, uint32_t count) {
    uint64_t mask = first >= 64 ? 0 : ones(count) << first;
    return (whole & ~mask) | (first >= 64 ? 0 : part << first & mask);
}

static inline uint32_t choose_bytes(uint32_t low, uint32_t high, uint32_t which) {
    uint32_t chosen = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t n = which >> 4 * i & 15, byte = two_words(low, high) >> 8 * (n & 7) & 255;
        chosen |= (n & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
    }
    return chosen;
}

static inline uint32_t join_by_table(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t joined = 0;
    for (int i = 0; i < 8; i++)
        if (table >> i & 1) joined |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return joined;
}

// The lane that a lane of a shuffle takes its number from; beyond `most` it is its own.
static inline int lane_from(int l, int from, uint32_t clamp, int up, uint8_t *within) {
    int segment = clamp >> 8 & 31, most = (l & segment) | (clamp & 31 & ~segment);
    *within = up ? from >= most : from <= most;
    return *within ? from : l;
}

static void stop(const char *why) {
    if (!launch.wrong) launch.wrong = why;
}

// What lanes touch of one array, from the first of them on; gives the lanes that are elsewhere.
static uint32_t touch_range(struct range *r, enum kind kind, const uint64_t *addresses, uint32_t lanes, uint32_t bytes) {
    uint64_t seen[64];
    uint32_t used = 0, here = 0;
    for (uint32_t m = lanes; m; m &= m - 1) {
        uint64_t at = addresses[__builtin_ctz(m)];
        if (at < r->begin || at + bytes > r->end) continue;
        here |= m & -m;
        for (uint64_t sector = at / SECTOR; sector <= (at + bytes - 1) / SECTOR; sector++) {
            uint32_t k = used;
            while (k && seen[k - 1] != sector) k--;
            if (!k && used < 64) seen[used++] = sector;
        }
    }
    r->warps[kind]++;
    r->lanes[kind] += __builtin_popcount(here);
    r->sectors[kind] += used;
    r->bytes[kind] += (uint64_t)bytes * __builtin_popcount(here);
    return lanes & ~here;
}

// What a warp touches outside of its registers: `addresses` of the lanes in `lanes`, which may be in several arrays.
static void touch(struct warp *w, enum kind kind, const uint64_t *addresses, uint32_t lanes, uint32_t bytes) {
    while (lanes) {
        uint32_t one = __builtin_ctz(lanes);
        uint64_t first = addresses[one], base = (uint64_t)(uintptr_t)w->shared;
        struct range *r = launch.ranges, *end = r + launch.n_ranges;
        while (r < end && !(first >= r->begin && first + bytes <= r->end)) r++;
        if (r < end) {
            lanes = touch_range(r, kind, addresses, lanes, bytes);
            continue;
        }
        if (first - base < launch.shared_bytes) launch.shared_atomics += kind == ATOMIC;
        else launch.strange++;
        lanes &= lanes - 1;
    }
}

// Lanes end a function whose ways begin at `base`; those that end the kernel live no longer.
static void leave(struct warp *w, uint32_t lanes, int base) {
    if (!base) w->live &= ~lanes;
    for (int k = base; k <= w->top; k++) w->parted[k].lanes &= ~lanes;
}

static int begin_function(struct warp *w, uint32_t lanes) {
    if (w->top + 3 >= MOST_PARTED) { stop("functions call each other too deep"); return w->top + 1; }
    w->parted[++w->top] = (struct parted){0, END, lanes};
    return w->top;
}

// Lanes in `taken` go one way and the others of the top another; all go on from `meeting` together.
static void part(struct warp *w, uint32_t taken, int there, int here, int meeting) {
    struct parted *top = &w->parted[w->top];
    uint32_t others = top->lanes & ~taken;
    if (!taken || !others) { top->at = taken ? there : here; return; }
    top->at = meeting;
    if (top->meeting == meeting && meeting != END) w->top--;
    if (w->top + 2 >= MOST_PARTED) { stop("lanes are on more ways than there is room for"); return; }
    if (here != meeting) w->parted[++w->top] = (struct parted){here, meeting, others};
    if (there != meeting) w->parted[++w->top] = (struct parted){there, meeting, taken};
}

static void wait_for_block(struct warp *w, uint32_t lanes) {
    if (lanes != w->live) stop("a barrier that some lanes of a warp do not reach");
    swapcontext(&w->context, &scheduler);
}

static void check_together(struct warp *w, uint32_t lanes, uint32_t asked) {
    if ((asked & w->live) & ~lanes) stop("an operation of a warp that some of its lanes do not reach");
}

static void begin(int number) {
    struct warp *w = &warps[number];
    w->body(w, launch.arguments);
    w->done = 1;
    swapcontext(&w->context, &scheduler);
}

static void run_block(void (*body)(struct warp *, char **), char *shared) {
    static char *stacks[MOST_WARPS];
    int n = (launch.threads + 31) / 32, left = n;
    for (int k = 0; k < n; k++) {
        struct warp *w = &warps[k];
        if (!stacks[k]) stacks[k] = mmap(0, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        uint32_t lanes = launch.threads - 32 * k >= 32 ? ~0u : (1u << (launch.threads - 32 * k)) - 1;
        w->number = k, w->live = lanes, w->top = 0, w->done = 0, w->shared = shared, w->body = body;
        w->parted[0] = (struct parted){0, END, lanes};
        getcontext(&w->context);
        w->context.uc_stack.ss_sp = stacks[k], w->context.uc_stack.ss_size = STACK_BYTES, w->context.uc_link = 0;
        makecontext(&w->context, (void (*)(void))begin, 1, k);
    }
    while (left && !launch.wrong)
        for (int k = 0; k < n; k++)
            if (!warps[k].done) {
                swapcontext(&scheduler, &warps[k].context);
                left -= warps[k].done;
            }
}

static const char *run_grid(void (*body)(struct warp *, char **), uint32_t blocks, uint32_t threads, uint64_t shared_bytes,
                            char **arguments, struct range *ranges, int n_ranges, uint64_t *atomics) {
    char *shared = aligned_alloc(256, (shared_bytes / 256 + 1) * 256);
    launch.blocks = blocks, launch.threads = threads, launch.shared_bytes = shared_bytes, launch.arguments = arguments;
    launch.ranges = ranges, launch.n_ranges = n_ranges, launch.shared_atomics = launch.strange = 0, launch.wrong = 0;
    for (launch.block = 0; launch.block < blocks && !launch.wrong; launch.block++) {
        memset(shared, 0xA5, shared_bytes);
        run_block(body, shared);
    }
    free(shared);
    atomics[0] = launch.shared_atomics, atomics[1] = launch.strange;
    return launch.wrong;
}
