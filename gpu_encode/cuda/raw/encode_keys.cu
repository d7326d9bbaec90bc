// Encodings of the cells of many keys, as every view sees them, from the counts of all folds: one thread a cell.

#include "counts.cuh"

#include "keys.cuh"

enum { OWN, OTHERS, CHOSEN };

// The counts of a cell, by fold and class, and the folds that each view sees.
struct Cell {
    const unsigned *counts;
    unsigned n_folds, n_classes;
    int kind;
    const Long *visibility;

    __device__ unsigned rows_of(unsigned fold) const {
        unsigned sum = 0;
        for (unsigned label = 0; label < n_classes; ++label)
            sum += counts[fold * n_classes + label];
        return sum;
    }
    __device__ unsigned rows() const {
        unsigned sum = 0;
        for (unsigned fold = 0; fold < n_folds; ++fold)
            sum += rows_of(fold);
        return sum;
    }
    __device__ unsigned of_class(unsigned label) const {
        unsigned sum = 0;
        for (unsigned fold = 0; fold < n_folds; ++fold)
            sum += counts[fold * n_classes + label];
        return sum;
    }
    // Sum a number of each fold over the folds that a view sees; `all` is its sum over all folds.
    template <typename Number> __device__ unsigned seen(unsigned view, unsigned all, Number number) const {
        if (kind == OWN)
            return number(view);
        if (kind == OTHERS)
            return all - number(view);
        unsigned sum = 0;
        for (unsigned fold = 0; fold < n_folds; ++fold)
            sum += visibility[view * n_folds + fold] ? number(fold) : 0;
        return sum;
    }
};

// What is the same for all cells; exact priors are total / number, by view and output.
struct Encoder {
    Rule rule;
    Priors priors;
    const double *totals;
    Output output;

    __device__ void write(unsigned own, unsigned count, bool is_missing, Word prior_at, ENCODING *to) const {
        // Ordinary categories are the first of three lines, missing values are the last.
        unsigned line = is_missing ? 2 : 0;
        Prior prior = priors.at(prior_at, rule);
        if (!(count && count >= rule.least && rule.has_category(line, 3))) {
            output.put(rule.without(line, 3, prior.mu), to);
            return;
        }
        if (quickly(own, count, rule, prior, *to))
            return;
        Found found{0, true, false};
        if (ESTIMATES)
            found = settled(own, count, rule, prior, totals[prior_at]);
        else
            found.value = encode(own, count, rule, prior);
        if (!found.sure)
            atomicAdd(output.counters + DOUBTFUL, Word(1));
        output.put(found.value, to);
    }
};

// `kept`: for each cell, the rows of each class that new rows see; the first number is -1 if the cell has other rows only.
extern "C" __global__ void __launch_bounds__(8 * LANES, 4)
    encode_keys(ARRAY(const Long, plan), Long n_keys, Long n_cells, ARRAY(const unsigned, counts), Long n_folds,
                Long n_classes, Long first, Long views, Long n_views, ARRAY(const Long, visibility),
                ARRAY(const Long, new_rows), RULE, PRIORS, ARRAY(const double, totals), ARRAY(Word, counters),
                ARRAY(ENCODING, encodings), ARRAY(int, kept)) {
    Output output{};
    output.counters = counters;
    Encoder encoder{GIVEN_RULE, GIVEN_PRIORS, totals, output};
    unsigned n_outputs = unsigned(n_classes - first);
    Word length = Word(n_folds * n_classes), step = Word(gridDim.x) * blockDim.x;
    for (Word number = Word(blockIdx.x) * blockDim.x + threadIdx.x; number < Word(n_cells); number += step) {
        Cell cell{counts + number * length, unsigned(n_folds), unsigned(n_classes), int(views), visibility};
        unsigned all = cell.rows();
        int *own_kept = kept + number * Word(n_classes);
        unsigned kept_rows = 0;
        for (unsigned label = 0; label < cell.n_classes; ++label) {
            unsigned sum = 0;
            for (unsigned fold = 0; fold < cell.n_folds; ++fold)
                sum += new_rows[fold] ? cell.counts[fold * cell.n_classes + label] : 0;
            own_kept[label] = int(sum), kept_rows += sum;
        }
        if (!all)
            continue;
        if (!kept_rows)
            own_kept[0] = -1;
        Key key = Key::at(plan, key_of(plan, n_keys, number));
        bool is_missing = Long(number - key.first_cell) == key.missing;
        for (unsigned view = 0; view < unsigned(n_views); ++view) {
            unsigned count = cell.seen(view, all, [&](unsigned fold) { return cell.rows_of(fold); });
            for (unsigned at = 0; at < n_outputs; ++at) {
                unsigned label = unsigned(first) + at;
                unsigned own = cell.seen(view, views == OTHERS ? cell.of_class(label) : 0,
                                         [&](unsigned fold) { return cell.counts[fold * cell.n_classes + label]; });
                Word prior_at = Word(view) * n_outputs + at;
                encoder.write(own, count, is_missing, prior_at, encodings + number * n_views * n_outputs + prior_at);
            }
        }
    }
}
