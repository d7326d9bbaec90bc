"""XXH64 and folds by values in plain Python, from the published specification and the docstring of KFold."""

MASK = 2**64 - 1
PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def rotate(number, by):
    return (number << by | number >> 64 - by) & MASK


def stir(lane, word):
    return rotate(lane + word * PRIMES[1] & MASK, 31) * PRIMES[0] & MASK


def xxh64(text, seed):
    """Hash bytes with a seed."""
    one, two, three, four, five = PRIMES
    number = lambda start, size: int.from_bytes(text[start : start + size], "little")  # noqa: E731
    at = 0
    if len(text) < 32:
        total = seed + five
    else:
        lanes = [seed + one + two, seed + two, seed, seed - one]
        while at + 32 <= len(text):
            lanes = [stir(lane & MASK, number(at + 8 * place, 8)) for place, lane in enumerate(lanes)]
            at += 32
        total = sum(rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            total = ((total & MASK) ^ stir(0, lane)) * one + four
    total = total + len(text) & MASK
    for size in [8] * ((len(text) - at) // 8) + [4] * (len(text) % 8 // 4) + [1] * (len(text) % 4):
        word = number(at, size)
        if size == 8:
            total = rotate(total ^ stir(0, word), 27) * one + four & MASK
        elif size == 4:
            total = rotate(total ^ word * one & MASK, 23) * two + three & MASK
        else:
            total = rotate(total ^ word * five & MASK, 11) * one & MASK
        at += size
    for by, prime in ((33, two), (29, three), (32, 1)):
        total = (total ^ total >> by) * prime & MASK
    return total


def fold_of(values, n_splits, seed):
    """Return the fold of a row; its values are None, whole numbers or bytes."""
    hashed = seed % 2**64
    for value in values:
        if value is not None:
            text = value if isinstance(value, bytes) else value.to_bytes(8, "little", signed=True)
            hashed = xxh64(text, hashed)
    return (hashed - 2**64 if hashed >= 2**63 else hashed) % n_splits
