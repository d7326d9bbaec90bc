"""Text files with a separator: how they are cut into blocks of whole rows, and how their cells become values.

The cells of a column that passes through are copied as they stand; all other cells get the type that reading the whole
file would give.  These types are found block by block.
"""

import codecs
import contextlib
import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from cpu_fallback.settings import number_from_environment
from cpu_fallback.types import Array
from gpu_encode.scale import messages

if TYPE_CHECKING:
    from gpu_encode.scale.files.files import SourceFile

# Bytes of text that are read at a time; if a row is longer, up to so many as BLOCK.
FIRST_BLOCK, SETTING = 1 << 20, "GPU_ENCODE_CSV_BLOCK"
BLOCK = (number_from_environment(SETTING, "a number of MiB, 1 or more", 1) or 4) << 20
# The words that pandas.read_csv takes for a missing value, in quotes or not; so is an empty cell.
WORDS_FOR_MISSING = (
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL",
    "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
# Types of whole numbers that int64 cannot hold.
LARGE_NUMBERS = (pa.uint64(), pa.decimal128(38, 0))
WHOLE_NUMBERS = (pa.int64(), *LARGE_NUMBERS)
# Floats hold all whole numbers below the first bound.  The type holds numbers below the second bound, and 18 digits of
# fractions; Arrow reads larger numbers in it, too, but wrongly.
MOST_IN_FLOATS, MOST_WITH_FRACTIONS, WITH_FRACTIONS = 2.0**53, 1e20, pa.decimal128(38, 18)
# Types that are tried on a column, one after the other, until one fits all its cells.
LADDER = (
    pa.null(), *WHOLE_NUMBERS, pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns"),
    pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC"), pa.float64(), pa.string(), pa.binary(),
)  # fmt: skip
DELIMITERS = (",", ";", "\t", "|")
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
# Metadata of a column whose texts are written as they are, with the quotation marks that they have or need.
AS_IT_STANDS, WHERE_NEEDED = {b"gpu_encode cells": b"as they stand"}, {b"gpu_encode cells": b"quoted where needed"}
# Bytes that no text in UTF-8 has: they stand for a delimiter and for the ends of lines inside of quotes.
STANDING_IN = (b"\xfd", b"\xfe", b"\xff")


@dataclass(frozen=True)
class TextRules:
    """How text files are read.

    Parameters
    ----------
    missing_text : sequence of str
        Texts that mean a missing value in files of every format.
    missing_words : sequence of str, optional
        Words that mean a missing value in text files, beside an empty cell; None stands for those of pandas.
    text : sequence of str
        Columns that are text, whatever they look like, and in which only `missing_words` and empty cells are missing.
    delimiter, quote, encoding : str, optional
        None stands for what the suffix, or the first bytes of the file, tell.
    known : mapping of str to collection of (str or None)
        For each column that is text to a fitted encoder: the words, the empty one too, that are categories, and so are
        not missing there.  None: so are missing values; then an empty cell is one.
    numbers : mapping of str to pyarrow.DataType
        The type of each column that holds numbers, dates or times to a fitted encoder.
    """

    missing_text: Sequence[str] = ()
    missing_words: Sequence[str] | None = None
    text: Sequence[str] = ()
    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None
    known: Mapping[str, Collection[str | None]] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse signs and encodings that no text file has."""
        for parameter, given in (("delimiter", self.delimiter), ("quote", self.quote)):
            is_sign = isinstance(given, str) and given.isascii() and re.fullmatch(r"[^\r\n\0]", given)
            if not (given is None or is_sign or (given == "" and parameter == "quote")):
                raise ValueError(f"{parameter} must be one ASCII character, such as ';' or '\\t'. Got {given!r}.")
        if self.quote is not None and self.quote == self.delimiter:
            raise ValueError(f"delimiter and quote must differ. Got {self.quote!r} for both.")
        try:
            "".encode(self.encoding or "utf-8")
        except (LookupError, TypeError):
            raise ValueError(
                f"encoding {self.encoding!r} is unknown to Python. Give one such as 'utf-8', 'utf-16' or 'latin-1'."
            ) from None

    def words_of(self, column: str) -> tuple[str, ...]:
        """Give the words that are missing values in a column."""
        words, known = self.missing_words, self.known.get(column, ())
        empty = () if words is None and "" in known and None not in known else ("",)
        if words is None:
            kept = WORDS_FOR_MISSING if column in self.text else known
            words = [word for word in WORDS_FOR_MISSING if word not in kept]
        return (*empty, *words, *self.missing_text)

    def parsing(self, suffix: str) -> Any:
        """Return the options that say how lines are split into cells."""
        quote = '"' if self.quote is None else self.quote or False
        return pyarrow.csv.ParseOptions(
            delimiter=self.delimiter or delimiter(suffix), quote_char=quote, newlines_in_values=True
        )


def delimiter(suffix: str) -> str:
    """Return the character between the cells of a file with this suffix."""
    return "\t" if suffix.startswith(".tsv") else ","


def conversion(words: Sequence[str], types: Mapping[str, Any], columns: Sequence[str] | None = None) -> Any:
    """Return the options that say how cells become values.

    Parameters
    ----------
    words : sequence of str
        Words that mean a missing value, in quotes or not.
    types : mapping of str to pyarrow.DataType
        Types of the columns whose type is known; the types of all others are inferred.
    columns : sequence of str, optional
        Columns to read.
    """
    return pyarrow.csv.ConvertOptions(
        null_values=list(words),
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
        # 0 and 1 are numbers, also beside words.
        true_values=["".join(signs) for signs in product(*zip("true", "TRUE", strict=True))],
        false_values=["".join(signs) for signs in product(*zip("false", "FALSE", strict=True))],
        column_types=dict(types),
        include_columns=None if columns is None else list(columns),
    )


def open_text(file: "SourceFile") -> Any:
    """Open a text file to read its bytes."""
    stream = file.open()
    return pa.CompressedInputStream(stream, "gzip") if file.suffix.endswith(".gz") else stream


def decoding(head: bytes, encoding: str | None) -> Callable[[bytes, bool], bytes] | None:
    """Give a function that turns the bytes of a file into UTF-8, unless the file is in UTF-8 without a mark.

    Examples
    --------
    >>> decoding(b"a,b", None) is None
    True
    >>> decoding("ä".encode("utf-16"), None)("ä".encode("utf-16"), True).decode()
    'ä'
    """
    marked = next((name for mark, name in BYTE_ORDER_MARKS if head.startswith(mark)), None)
    if encoding is None and marked is None and b"\0" in head[:2]:
        order = "be" if head[:1] == b"\0" else "le"
        raise pa.ArrowInvalid(f"it looks like UTF-16 without a byte-order mark. Give encoding='utf-16-{order}'")
    name = codecs.lookup(encoding or marked or "utf-8").name
    if name == "utf-8" and marked == "utf-8":
        name = "utf-8-sig"
    if name == "utf-8":
        return None
    decoder = codecs.getincrementaldecoder(name)()

    def decode(text: bytes, final: bool) -> bytes:
        return decoder.decode(text, final).encode()

    return decode


class Quotes:
    r"""Where the quoted cells of a text are.

    Parameters
    ----------
    text : bytes
        Text in UTF-8 that begins with a row.
    parsing : pyarrow.csv.ParseOptions

    Attributes
    ----------
    open_at : int or None
        Where the last mark is, if the text ends inside of its cell.

    Examples
    --------
    >>> quotes = Quotes(b'a,"b,\nc"\nd,"e', pyarrow.csv.ParseOptions())
    >>> quotes.end_of_rows(), quotes.hidden(9)
    (9, b'a,"b\xff\xfec"\n')
    """

    def __init__(self, text: bytes, parsing: Any) -> None:
        self._text, self._separators = text, b"\r\n" + parsing.delimiter.encode()
        quote = parsing.quote_char.encode() if parsing.quote_char else b""
        found = np.zeros(0, np.int64)
        if quote and quote in text:
            found = np.flatnonzero(np.frombuffer(text, np.uint8) == quote[0])
            if not self._are_pairs(found, quote):
                found = self._search(quote)
        self.open_at = int(found[-1]) if len(found) % 2 else None
        # Quotation marks in pairs; the last one may be open.
        self._opened, self._closed = found[::2], np.append(found[1::2], [len(text)] * (len(found) % 2)).astype(np.int64)

    def _are_pairs(self, found: Array, quote: bytes) -> bool:
        """Tell whether every first mark begins a cell, and every second mark ends one, or is followed by a first."""
        signs = np.zeros(256, bool)
        signs[list(self._separators + quote)] = True
        around = np.frombuffer(b"\n" + self._text + b"\n", np.uint8)
        opened, closed = found[::2], found[1::2]
        begins = signs[around[opened]]
        # A mark after a mark: the second half of a doubled mark, if the one before closed.
        doubled = np.append(False, opened[1:] == closed[: len(opened) - 1] + 1)
        begins &= (around[opened] != quote[0]) | doubled
        return bool(begins.all() and signs[around[closed + 2]].all())

    def _search(self, quote: bytes) -> Array:
        """Find the quoted cells of a text that has marks inside of cells, too."""
        mark, separators = re.escape(quote), re.escape(self._separators)
        pattern = (
            b"(?:^|(?<=[" + separators + b"]))" + mark + b"(?:[^" + mark + b"]|" + mark * 2 + b")*(" + mark + b")?"
        )
        spans = ((*found.span(), found[1]) for found in re.finditer(pattern, self._text))
        ends = [[start] if closed is None else [start, stop - 1] for start, stop, closed in spans]
        return np.array([*chain.from_iterable(ends)], np.int64)

    def _inside(self, positions: Array) -> Array:
        before = np.searchsorted(self._opened, positions) - 1
        return (
            (before >= 0) & (self._closed[before] > positions) if len(self._opened) else np.zeros(len(positions), bool)
        )

    def end_of_rows(self) -> int:
        """Give the number of bytes up to the end of the last whole row."""
        stop = len(self._text)
        while stop:
            # A carriage return at the very end may have its line feed in the next block.
            stop = max(self._text.rfind(b"\n", 0, stop), self._text.rfind(b"\r", 0, min(stop, len(self._text) - 1)))
            if stop < 0 or not self._inside(np.array([stop]))[0]:
                break
            stop = int(self._opened[np.searchsorted(self._opened, stop) - 1])
        return max(stop + 1, 0)

    def header(self, parsing: Any) -> list[str]:
        """Read the names of the columns from the first row."""
        stop = 0
        while (end := re.compile(b"[\r\n]").search(self._text, stop)) and self._inside(np.array([end.start()]))[0]:
            stop = int(self._closed[np.searchsorted(self._opened, end.start()) - 1])
        header = self._text[: end.end() if end else None]
        reading = pyarrow.csv.ReadOptions(block_size=len(header) + 1)
        return list(pyarrow.csv.read_csv(pa.BufferReader(header), reading, parsing).column_names)

    def hidden(self, stop: int) -> bytes:
        """Give the text up to some byte, with other bytes instead of the separators inside of quotes."""
        if not len(self._opened):
            return self._text[:stop]
        signs = np.frombuffer(self._text, np.uint8, stop).copy()
        for separator, other in zip(self._separators, STANDING_IN, strict=True):
            positions = np.flatnonzero(signs == separator)
            signs[positions[self._inside(positions)]] = other[0]
        return signs.tobytes()

    def shown(self, column: Any) -> Any:
        """Give the cells of a column of the hidden text as they stand in the text."""
        for separator, other in zip(self._separators, STANDING_IN, strict=True):
            if len(self._opened):
                column = pc.replace_substring(column, other, bytes([separator]))
        return column.cast(pa.string())


@dataclass(frozen=True)
class Block:
    """Whole rows of a text file.

    Parameters
    ----------
    text : bytes
        In UTF-8; the first block begins with the header.
    names : list of str
    is_first : bool
    parsing : pyarrow.csv.ParseOptions
    quotes : Quotes
        Of the text, and maybe of more.
    """

    text: bytes
    names: list[str]
    is_first: bool
    parsing: Any
    quotes: Quotes

    def read(self, converting: Any, n_before: int = 0, *, as_they_stand: bool = False) -> Any:
        """Read the rows as a batch.

        Parameters
        ----------
        converting : pyarrow.csv.ConvertOptions
        n_before : int
            Rows of earlier blocks.
        as_they_stand : bool
            Whether the cells keep their quotation marks; they are bytes then.
        """
        text, parsing = self.text, self.parsing
        if as_they_stand:
            text = self.quotes.hidden(len(text))
            parsing = pyarrow.csv.ParseOptions(delimiter=parsing.delimiter, quote_char=False)
        reading = pyarrow.csv.ReadOptions(
            block_size=len(text) + 1, column_names=self.names, skip_rows_after_names=int(self.is_first)
        )
        before = 0 if self.is_first else n_before + 1
        while True:
            try:
                return pyarrow.csv.read_csv(pa.BufferReader(text), reading, parsing, converting).combine_chunks()
            except pa.ArrowInvalid as error:
                if "Expected" in str(error) and reading.use_threads:
                    # Only without threads does Arrow know the number of the row.
                    reading.use_threads = False
                    continue
                counted = re.sub(
                    r"Row #(\d+)", lambda found: f"the header being row 1, row {int(found[1]) + before}", str(error)
                )
                raise pa.ArrowInvalid(counted + (fitting_delimiter(self) if self.is_first else "")) from None


def blocks(file: "SourceFile", rules: TextRules) -> Iterator[Block]:
    """Read a text file in blocks of whole rows."""
    parsing = rules.parsing(file.suffix)
    names: list[str] = []
    left, size, n_lines, ended = b"", min(FIRST_BLOCK, BLOCK), 1, False
    with open_text(file) as stream:
        more = stream.read(size)
        decode = decoding(more, rules.encoding)
        while not ended:
            ended = not more
            text = left + (more if decode is None else decode(more, ended))
            if not names:
                text = text.lstrip(b"\r\n")
            if ended and text and not text.endswith(b"\n"):
                text += b"\n"
            quotes = Quotes(text, parsing)
            if ended and quotes.open_at is not None:
                line = n_lines + text.count(b"\n", 0, quotes.open_at)
                raise pa.ArrowInvalid(
                    f"the quotation mark {parsing.quote_char} that opens in line {line} is never closed. If it is no "
                    "quotation mark, give quote='' (--quote '')"
                )
            stop = len(text) if ended else quotes.end_of_rows()
            if not stop and len(text) >= BLOCK:
                raise pa.ArrowInvalid("straddling object")
            left = text[stop:]
            if stop:
                is_first = not names
                names = names or quotes.header(parsing)
                yield Block(text[:stop], names, is_first, parsing, quotes)
                n_lines += text.count(b"\n", 0, stop)
            more = b"" if ended else stream.read(size)
    if not names:
        raise pa.ArrowInvalid("Empty CSV file")


def read_columns(
    file: "SourceFile", rules: TextRules, types: Mapping[str, Any], copies: Mapping[str, str], *, as_they_stand: bool
) -> Iterator[Any]:
    """Read a file in batches.

    Parameters
    ----------
    file : SourceFile
    rules : TextRules
    types : mapping of str to pyarrow.DataType
        Type of each column whose values are wanted.
    copies : mapping of str to str
        Columns whose cells are wanted as text, and the names that the texts get.
    as_they_stand : bool
        Whether these texts have the quotation marks of the file; otherwise a cell without any character is null.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in types:
        groups.setdefault(rules.words_of(name), []).append(name)
    converting = [conversion(words, {name: types[name] for name in names}, names) for words, names in groups.items()]
    kind = pa.binary() if as_they_stand else pa.string()
    copying = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(copies, kind),
        include_columns=[*copies],
        strings_can_be_null=not as_they_stand,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    n_before = 0
    for block in blocks(file, rules):
        columns: dict[str, Any] = {}
        for options in converting:
            table = block.read(options, n_before)
            columns |= zip(table.column_names, table.columns, strict=True)
        if copies:
            table = block.read(copying, n_before, as_they_stand=as_they_stand)
            for name, column in zip(table.column_names, table.columns, strict=True):
                columns[copies[name]] = block.quotes.shown(column) if as_they_stand else column
        batch = pa.table(columns)
        n_before += batch.num_rows
        yield from batch.to_batches()


@dataclass(frozen=True)
class Scan:
    """What the blocks of one file hold.

    Parameters
    ----------
    names : list of str
    kinds : list of set of pyarrow.DataType
        The types of each column in the blocks.
    most : list of float
        Most bytes of a row in each column.
    greatest : list of float
        The number of each column that is farthest from 0, without its sign.
    n_rows : int
    """

    names: list[str]
    kinds: list[set[Any]]
    most: list[float]
    greatest: list[float]
    n_rows: int


def scan(file: "SourceFile", rules: TextRules) -> Scan:
    """Read one file to find the types of its columns, block by block."""
    names: list[str] = []
    kinds: list[set[Any]] = []
    words = replace(rules, text=(), known={}).words_of("")
    most, greatest, n_rows = [0.0], [0.0], 0
    for block in blocks(file, rules):
        if not names:
            names, kinds = block.names, [set() for _ in block.names]
            most, greatest = [0.0] * len(names), [0.0] * len(names)
            check_delimiter(block, rules)
        table = block.read(conversion(words, {}), n_rows)
        n_rows += table.num_rows
        for number, column in enumerate(table.columns):
            kinds[number].add(kind_in(block, number, column, words))
            most[number] = max(most[number], column.nbytes / max(table.num_rows, 1))
            if column.type in (pa.int64(), pa.float64()) and column.null_count < len(column):
                greatest[number] = max(greatest[number], *map(abs, pc.min_max(column).as_py().values()))
    return Scan(names, kinds, most, greatest, n_rows)


def kind_in(block: Block, number: int, column: Any, words: Sequence[str]) -> Any:
    """Give the type of a column of one block, from its values in the type that Arrow chose."""
    if column.type == pa.int64() and (b"0x" in block.text or b"0X" in block.text):
        # Arrow reads 0x1F as a number.
        is_hexadecimal = pc.match_substring_regex(texts_in(block, number, words), r"^\s*[+-]?0[xX]")
        return pa.string() if pc.any(is_hexadecimal).as_py() else column.type
    if column.type == pa.float64() and column.null_count < len(column):
        return kind_of_floats(block, number, column, words)
    return column.type


def kind_of_floats(block: Block, number: int, column: Any, words: Sequence[str]) -> Any:
    """Give the type of a column that Arrow read as floats, as it reads large whole numbers and the word NAN."""
    if pc.any(pc.is_nan(column)).as_py():
        return pa.string()
    least, greatest = pc.min_max(column).as_py().values()
    if max(-least, greatest) < 2.0**63:
        return column.type
    texts = texts_in(block, number, words)
    if not pc.all(pc.match_substring_regex(texts, r"^\s*-?[0-9]+\s*$")).as_py():
        return column.type
    # Arrow's cast of more digits than a decimal has gives another number.
    is_short = pc.all(pc.match_substring_regex(texts, r"^\s*-?0*[0-9]{1,38}\s*$")).as_py()
    for larger in LARGE_NUMBERS if is_short else ():
        with contextlib.suppress(pa.ArrowInvalid):
            pc.utf8_trim_whitespace(texts).cast(larger)
            return larger
    return pa.string()


def texts_in(block: Block, number: int, words: Sequence[str]) -> Any:
    """Read a column of a block as text, with null for missing values."""
    name = block.names[number]
    return block.read(conversion(words, {name: pa.string()}, [name])).column(0)


def join_types(kinds: set[Any], fits: Callable[[Any], bool]) -> Any:
    """Give the first type of the ladder that fits all blocks of a column, from the type of each block."""
    steps = {LADDER.index(kind) for kind in kinds} - {0}
    if len(steps) <= 1:
        return LADDER[max(steps, default=0)]
    for kind in LADDER[max(steps) :]:
        # Whole numbers can be read as floats, and all values as text.
        are_floats = kind == pa.float64() and {LADDER[step] for step in steps} <= {*WHOLE_NUMBERS, kind}
        if kind in (pa.string(), pa.binary()) or are_floats or fits(kind):
            break
    return kind


def type_for_encoder(kind: Any, known: Any, greatest: float, fits: Callable[[Any], bool]) -> Any:
    """Give the type in which a column of new numbers is read, from the type that fits it and the encoder's type.

    Parameters
    ----------
    kind, known : pyarrow.DataType
    greatest : float
        The number that is farthest from 0, without its sign.
    fits : callable
        Tells whether all values can be read in a type.
    """
    if kind in WHOLE_NUMBERS and pa.types.is_floating(known):
        return pa.float64()
    are_exact = pa.types.is_decimal(known) or (known in (pa.int64(), pa.uint64()) and greatest >= MOST_IN_FLOATS)
    if kind != pa.float64() or not are_exact:
        return kind
    if greatest < MOST_WITH_FRACTIONS and fits(WITH_FRACTIONS):
        return WITH_FRACTIONS
    raise pa.ArrowInvalid(
        f"the encoder knows numbers of the type {known} in this column, and some of its cells, with fractions, are "
        "numbers that only floats hold, such as 1e30 or 1e-30: floats could make other categories of them. "
        "Write such cells with fewer digits, or as missing values"
    )


def fits(file: "SourceFile", name: str, kind: Any, rules: TextRules) -> bool:
    """Whether all values of a column can be read in this type."""
    try:
        for _ in read_columns(file, rules, {name: kind}, {}, as_they_stand=False):
            pass
    except pa.ArrowInvalid:
        return False
    return True


def check_delimiter(block: Block, rules: TextRules) -> None:
    """Refuse a file of one column whose rows would have as many cells each with another delimiter."""
    if rules.delimiter is None and len(block.names) == 1 and (advice := fitting_delimiter(block)):
        raise pa.ArrowInvalid(f"its rows have one cell each if {block.parsing.delimiter!r} separates them{advice}")


def fitting_delimiter(block: Block) -> str:
    """Say which delimiter gives every one of the first rows the same number of cells, at least two."""
    lines = block.text[: 1 << 16].decode(errors="replace").splitlines()[:100]
    if len(lines) > 1 and len(block.text) > 1 << 16:
        lines.pop()
    for sign in DELIMITERS:
        quote = block.parsing.quote_char or None
        rows = csv.reader(
            lines, delimiter=sign, quotechar=quote, quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
        )
        widths = {len(row) for row in rows if row}
        if sign != block.parsing.delimiter and len(widths) == 1 and (width := widths.pop()) > 1:
            return f". With {sign!r}, every row has {width} cells: give delimiter={sign!r} (--delimiter {sign!r})"
    return ""


def find_bad_line(file: "SourceFile", encoding: str) -> int:
    """Give the number of the first line with bytes that are not of this encoding."""
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    with open_text(file) as stream:
        while text := stream.read(BLOCK):
            try:
                decoder.decode(text)
            except UnicodeDecodeError as error:
                return line + error.object[: error.start].count(b"\n")
            line += text.count(b"\n")
    return line


class TextWriter:
    r"""Writes tables as text; texts are in quotes, but copied cells only where they were or have to be.

    Parameters
    ----------
    stream : file
    schema : pyarrow.Schema
        Metadata of copied columns say how their cells are written.
    delimiter : str

    Examples
    --------
    >>> schema = pa.schema([("city", pa.string()), pa.field("zip", pa.string(), metadata=WHERE_NEEDED)])
    >>> with TextWriter(stream := pa.BufferOutputStream(), schema, ";") as writer:
    ...     writer.write_table(pa.table([["Bonn", None], ["053;1", "007"]], schema=schema))
    >>> stream.getvalue().to_pybytes()
    b'"city";"zip"\n"Bonn";"053;1"\n;007\n'
    """

    def __init__(self, stream: Any, schema: Any, delimiter: str) -> None:
        self._stream, self._schema, self._delimiter = stream, schema, delimiter
        self._write([pa.array([name]) for name in schema.names], [field.remove_metadata() for field in schema])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the stream open, which belongs to the caller."""

    def write_table(self, table: Any) -> None:
        """Write the next rows."""
        for batch in table.to_batches(max_chunksize=1 << 14):
            self._write(batch.columns, self._schema)

    def _write(self, columns: Sequence[Any], fields: Iterable[Any]) -> None:
        cells = [self._cells(*pair) for pair in zip(columns, fields, strict=True)]
        rows = pc.binary_join_element_wise(*cells, self._delimiter) if len(cells) > 1 else cells[0]
        lines = pc.binary_join_element_wise(rows, "", "\n")
        offsets = np.frombuffer(lines.buffers()[1], np.int32)[[lines.offset, lines.offset + len(lines)]]
        self._stream.write(lines.buffers()[2].slice(int(offsets[0]), int(offsets[1] - offsets[0])))

    def _cells(self, column: Any, field: Any) -> Any:
        """Give the texts that are written for the values of a column."""
        kind, style = column.type, field.metadata
        if pa.types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        is_text = not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind))
        try:
            cells = column.cast(pa.string())
        except pa.ArrowInvalid as error:
            raise _no_text(field.name, kind, error) from None
        if pa.types.is_timestamp(kind) and pc.any(wrong := pc.starts_with(cells, "<")).as_py():
            raise _no_text(field.name, kind, cells.filter(wrong)[0])
        if is_text and style != AS_IT_STANDS:
            quoted = pc.binary_join_element_wise('"', pc.replace_substring(cells, '"', '""'), '"', "")
            if style == WHERE_NEEDED:
                # In a column without values a cell of no characters differs from a missing one by its quotes.
                needed = f'^$|["\r\n{re.escape(self._delimiter)}]'
                quoted = pc.if_else(pc.match_substring_regex(cells, needed), quoted, cells)
            cells = quoted
        return pc.fill_null(cells, "")


def _no_text(column: str, kind: Any, reason: object) -> ValueError:
    """Give the error for values that have no text, such as bytes that are not UTF-8."""
    return messages.type_unknown_to(column, f"{kind} ({reason})", "CSV", "write Parquet or Arrow, or leave it out")
