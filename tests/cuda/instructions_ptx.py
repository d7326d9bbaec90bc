"""PTX as segments: the code between branches, barriers and warp operations, and the points where lanes join again."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# Number of the end of a function: above all numbers of segments.
END = -1
# Operations that all lanes of a warp do together: they exchange numbers, or wait for one another.
OF_A_WARP = ("bar", "barrier", "vote", "match", "shfl", "activemask", "redux", "call")
LEAVING = ("ret", "exit")
DECLARATION = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.DOTALL)
ROOM = re.compile(r"\.(local|shared|param)\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+([\w$%]+)(?:\[(\d*)\])?$")
ENTRY = re.compile(r"^\s*(?:\.visible\s+)?\.entry\s+([\w$]+)\s*\(([^)]*)\)\s*[^{;]*\{", re.MULTILINE)
FUNCTION = re.compile(
    r"^\s*(?:\.visible\s+|\.weak\s+)?\.func\s*(?:\(([^)]*)\))?\s*([\w$]+)\s*\(([^)]*)\)\s*[^{;]*\{", re.MULTILINE
)
CONSTANT = re.compile(
    r"^\s*(?:\.visible |\.weak )?\.(?:global|const)\s+(?:\.align\s+\d+\s+)?"
    r"\.(\w+)\s+([\w$]+)\[(\d*)\]\s*=\s*(\{[^}]*\});",
    re.MULTILINE,
)
SHARED = re.compile(r"^\s*\.extern\s+\.shared\s+(?:\.align\s+\d+\s+)?\.\w+\s+([\w$]+)\[\];", re.MULTILINE)
REGISTER = re.compile(r"%[A-Za-z_][\w$]*")
BYTES = {"pred": 1, **{f"{kind}{bits}": bits // 8 for kind in "busf" for bits in (8, 16, 32, 64)}}


@dataclass(frozen=True)
class Instruction:
    """An instruction: its guard ("" if none, "!%p1"), its parts ("ld", "global", "u32"), its operands."""

    guard: str
    parts: tuple[str, ...]
    operands: tuple[str, ...]

    @property
    def base(self) -> str:
        """Name of the operation."""
        return self.parts[0]

    @property
    def written(self) -> list[str]:
        """Registers that the instruction writes, whether or not its guard lets it."""
        if self.base in ("st", "red", "bra", "brx", "bar", "barrier", *LEAVING) or not self.operands:
            return []
        return REGISTER.findall(self.operands[0])


@dataclass
class Segment:
    """A run of instructions without a branch, and the segments that may follow it."""

    instructions: list[Instruction] = field(default_factory=list)
    following: list[int] = field(default_factory=list)
    # The segment where all lanes that left this one on different ways meet again.
    meeting: int = END


@dataclass
class Kernel:
    """A kernel, or a function that kernels call.

    It holds the types of its parameters and registers by name, and the bytes of its local and shared arrays.  For a
    function, `rooms` names its result and its arguments, in this order.
    """

    name: str
    parameters: dict[str, str]
    rooms: tuple[str, ...] | None = None
    registers: dict[str, str] = field(default_factory=dict)
    local: dict[str, int] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)


def without_comments(text: str) -> str:
    """Remove comments from a text."""
    return re.sub(r"/\*.*?\*/", "", re.sub(r"//[^\n]*", "", text.replace("\0", "")), flags=re.DOTALL)


def body_from(text: str, start: int) -> str:
    """Return the text between the brace before `start` and its closing brace."""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[start : brace.start()]
    raise ValueError("a body without an end")


def statements_of(body: str) -> Iterator[str]:
    """Yield labels and instructions, one by one, without the braces around some of them."""
    for part in re.split(r"(?<=;)|(?<=:)(?=\s*\n)", body):
        text = " ".join(part.split()).rstrip(";").lstrip("{} ")
        while found := re.match(r"([$\w]+):(?!:)\s*", text):
            yield f"{found[1]}:"
            text = text[found.end() :].lstrip("{} ")
        if text:
            yield text


def split_operands(text: str) -> tuple[str, ...]:
    """Split at commas outside of brackets."""
    return tuple(each.strip() for each in re.split(r",(?![^{\[(]*[}\])])", text) if each.strip())


def read_instruction(text: str) -> Instruction:
    """Read ``@!%p1 ld.global.u32 %r1, [%rd2+4]``."""
    found = re.match(r"(?:@(!?%\w+)\s+)?([\w.:]+)\s*(.*)", text, re.DOTALL)
    assert found is not None, text
    return Instruction(found[1] or "", tuple(found[2].replace("::", ":").split(".")), split_operands(found[3]))


def declare(kernel: Kernel, text: str) -> bool:
    """Record the registers or the array that a line declares; return whether the line is a declaration."""
    if found := DECLARATION.match(text):
        for name in found[2].split(","):
            several = re.match(r"\s*(%[\w$]+)<(\d+)>", name)
            names = [f"{several[1]}{i}" for i in range(int(several[2]))] if several else [name.strip()]
            kernel.registers |= dict.fromkeys(names, found[1])
    elif found := ROOM.match(text):
        where = kernel.shared if found[1] == "shared" else kernel.local
        where[found[3]] = BYTES[found[2]] * int(found[4] or 1)
    return text.startswith(".")


def split_segments(kernel: Kernel, body: str) -> None:
    """Cut a body where lanes may branch apart, wait or exchange numbers."""
    kernel.segments.append(Segment())
    table = ""
    for text in statements_of(body):
        if text.endswith(":"):
            table = text[:-1]
            if kernel.segments[-1].instructions:
                kernel.segments.append(Segment())
            kernel.labels[table] = len(kernel.segments) - 1
        elif text.startswith(".branchtargets"):
            kernel.tables[table] = [each.strip() for each in text.split(None, 1)[1].split(",")]
        elif not declare(kernel, text):
            each = read_instruction(text)
            if each.base in OF_A_WARP and kernel.segments[-1].instructions:
                kernel.segments.append(Segment())
            kernel.segments[-1].instructions.append(each)
            if each.base in ("bra", "brx", *OF_A_WARP, *LEAVING):
                kernel.segments.append(Segment())


def follow(kernel: Kernel) -> None:
    """Find which segments may follow each one, and where lanes meet: at the first segment on all ways."""
    segments, behind = kernel.segments, len(kernel.segments)
    for number, segment in enumerate(segments):
        last, next_one = segment.instructions[-1:], number + 1
        segment.following = [next_one if next_one < behind else END]
        if last and last[0].base in ("bra", "brx", *LEAVING):
            goes_on = segment.following if last[0].guard else []
            targets = [END] if last[0].base in LEAVING else targets_of(kernel, last[0])
            segment.following = list(dict.fromkeys([*targets, *goes_on]))
    # One bit for each segment that lies on all ways from a segment to the end; the highest bit stands for the end.
    end = 1 << behind
    through = [2 * end - 1] * behind
    changed = True
    while changed:
        changed = False
        for number in reversed(range(behind)):
            common = 2 * end - 1
            for each in segments[number].following:
                common &= end if each == END else through[each]
            if common | 1 << number != through[number]:
                through[number], changed = common | 1 << number, True
    at = {ways: number for number, ways in enumerate(through)}
    for number, segment in enumerate(segments):
        segment.meeting = at.get(through[number] ^ 1 << number, END)


def targets_of(kernel: Kernel, branch: Instruction) -> list[int]:
    """Return the targets of a branch."""
    names = kernel.tables[branch.operands[1]] if branch.base == "brx" else [branch.operands[0]]
    return [kernel.labels[name] for name in names]


@dataclass
class Module:
    """PTX: kernels, functions that they call, and constant tables as (type, length, values).

    `dynamic` names the shared memory whose size the launch sets.
    """

    kernels: dict[str, Kernel]
    functions: dict[str, Kernel]
    constants: dict[str, tuple[str, str, str]]
    dynamic: list[str]


def parameters_of(text: str) -> dict[str, str]:
    """Read ``.param .u64 .ptr .align 1 name``, and others after commas: types by name."""
    parameters = [re.findall(r"[\w$]+", each) for each in text.split(",") if each.strip()]
    return {words[-1]: words[1] for words in parameters}


def read_kernel(kernel: Kernel, body: str) -> Kernel:
    """Read the body of a kernel or function."""
    split_segments(kernel, body)
    follow(kernel)
    return kernel


def read(ptx: str) -> Module:
    """Read PTX."""
    text, kernels, functions = without_comments(ptx), {}, {}
    for found in ENTRY.finditer(text):
        kernels[found[1]] = read_kernel(Kernel(found[1], parameters_of(found[2])), body_from(text, found.end()))
    for found in FUNCTION.finditer(text):
        rooms = (*parameters_of(found[1] or ""), *parameters_of(found[3]))
        functions[found[2]] = read_kernel(Kernel(found[2], {}, rooms), body_from(text, found.end()))
    constants = {name: (kind, length, values) for kind, name, length, values in CONSTANT.findall(text)}
    return Module(kernels, functions, constants, SHARED.findall(text))
