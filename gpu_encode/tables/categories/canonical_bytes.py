"""Values as bytes to be hashed: equal values have the same bytes, from whatever library they come."""

from collections.abc import Iterable
from decimal import Decimal

from cpu_fallback.types import MISSING
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.categories.values import UNITS, Values, as_bytes

# UTF-8 never has this byte, so no other value is spelled like a text.
APART = b"\xff"
MISSING_VALUE = APART
KINDS = {
    "number": b"n",
    "bytes": b"b",
    "datetime": b"d",
    "duration": b"u",
    "time": b"t",
    "null": b"",
    "interval": b"i",
    "period": b"p",
}
ZONED = b"z"
JOINT = b"j"


def spell_categories(key: CategoryIndex) -> list[bytes]:
    """Spell every category of a key; a missing value comes last."""
    words = [[*spell(vocabulary.values), MISSING_VALUE] for vocabulary in key.vocabularies]
    if key.tuples is None:
        return words[0]
    assert MISSING == -1  # the index of a missing value among the words
    sized = [[len(word).to_bytes(8, "little") + word for word in column] for column in words]
    columns = [
        [column[code] for code in codes] for column, codes in zip(sized, key.tuples.members.T.tolist(), strict=True)
    ]
    return [*(APART + JOINT + b"".join(row) for row in zip(*columns, strict=True)), MISSING_VALUE]


def spell(values: Values) -> list[bytes]:
    r"""Spell values as bytes: equal values have equal bytes.

    Text is its UTF-8.  Every other value begins with 0xFF and a letter for its kind.  Then bytes follow unchanged.  A
    number follows as decimal digits without zeros at the end, "e" and an exponent (1, 1.0 and True are ``1e0``).  A
    date is the number of seconds since 1970, a time of day the number since midnight, a duration the number of all its
    seconds.  A period has its type before its number; an interval is the text that stands for it (`intervals.spell`).

    Examples
    --------
    >>> from gpu_encode.tables.categories.vocabulary import Vocabulary
    >>> spell(Vocabulary.from_values(["elm", "1"], None)[0].values)
    [b'elm', b'1']
    >>> spell(Vocabulary.from_values([True, 2.5, -1200], None)[0].values)
    [b'\xffn1e0', b'\xffn25e-1', b'\xffn-12e2']
    """
    if values.kind == "text":
        return [text.encode() for text in values.array.to_pylist()]
    mark = APART + (ZONED if values.timezone else KINDS[values.kind])
    if values.kind in ("bytes", "interval"):
        return [mark + value for value in as_bytes(values.array)]
    if values.kind == "period":
        return [mark + f"{values.dtype}{number}".encode() for number in values.array.tolist()]
    if values.kind == "number" and values.array.dtype.kind in "fO":
        return [mark + digits for digits in map(decimal, values.array.tolist())]
    return [mark + digits for digits in integers(values.array.tolist(), -UNITS[values.unit] if values.unit else 0)]


def integers(numbers: Iterable[int], power: int) -> list[bytes]:
    """Spell integers times a power of ten."""
    return [digits(str(int(number)), power) for number in numbers]


def decimal(number: float | int | Decimal) -> bytes:
    """Spell a number exactly: every float and Decimal has finitely many decimal digits."""
    sign, figures, exponent = Decimal(number).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, figures))
    return digits(f"-{text}" if sign else text, exponent)


def digits(text: str, power: int) -> bytes:
    """Spell an integer, given by its digits, times a power of ten."""
    short = text.rstrip("0")
    return f"{short}e{power + len(text) - len(short)}".encode() if short.lstrip("-") else b"0e0"
