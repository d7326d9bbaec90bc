"""PTX as C: registers of 32 lanes are arrays, segments are cases of a switch, memory is that of the process."""

import re
from pathlib import Path

from tests.cuda.instructions_ptx import (
    BYTES,
    END,
    LEAVING,
    OF_A_WARP,
    REGISTER,
    Instruction,
    Kernel,
    Module,
    Segment,
    targets_of,
)

HEADER = Path(__file__).with_name("instructions.h")
NAMES = {"b": "uint{}_t", "u": "uint{}_t", "s": "int{}_t"}
TYPES = {f"{kind}{bits}": name.format(bits) for kind, name in NAMES.items() for bits in (8, 16, 32, 64)}
TYPES |= {"f32": "float", "f64": "double", "pred": "uint8_t"}
WORDS = {"f32": "b32", "f64": "b64"}
SPECIAL = {
    "%tid.x": "TID(w, l)",
    "%ntid.x": "launch.threads",
    "%ctaid.x": "launch.block",
    "%nctaid.x": "launch.blocks",
    "%laneid": "l",
    "%warpid": "w->number",
    "%lanemask_lt": "((1u << l) - 1)",
    "%lanemask_le": "(~0u >> (31 - l))",
    "%lanemask_gt": "(~1u << l)",
    "%lanemask_ge": "(~0u << l)",
    "%lanemask_eq": "(1u << l)",
    "WARP_SZ": "32",
    "%dynamic_smem_size": "(uint32_t)launch.shared_bytes",
    **{
        f"%{name}.{axis}": number
        for axis in "yz"
        for name, number in {"tid": "0", "ctaid": "0", "ntid": "1", "nctaid": "1"}.items()
    },
}
SIGNS = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
ROUNDINGS = {"rzi": "trunc", "rni": "nearbyint", "rmi": "floor", "rpi": "ceil"}
JOINED = {
    "add": "q[0]+{v}",
    "min": "q[0]<{v}?q[0]:{v}",
    "max": "q[0]>{v}?q[0]:{v}",
    "exch": "{v}",
    "and": "q[0]&{v}",
    "or": "q[0]|{v}",
    "xor": "q[0]^{v}",
    "cas": "q[0]=={v}?{swap}:q[0]",
}
# Without effect on what one thread computes.
SILENT = ("membar", "fence", "nanosleep", "pragma", "prefetch", "prefetchu", "discard", "applypriority")


def c_name(name: str) -> str:
    """Give a name of PTX as one of C."""
    return re.sub(r"\W", "_", name.replace("%", "R_"))


def type_of(each: Instruction, which: int = 0) -> str:
    """Give the first type in an instruction's name, or the last one (-1)."""
    found = [part for part in each.parts if part in TYPES]
    return found[which] if found else ""


class Writer:
    """Writes a kernel as a C function."""

    def __init__(self, kernel: Kernel, module: Module, first: int) -> None:
        self.kernel, self.module, self.first = kernel, module, first
        self.local = self.registers_of_one_segment()
        self.offsets = {}
        room = 0
        for name, size in kernel.shared.items():
            self.offsets[name] = room
            room += -(-size // 16) * 16
        self.static_bytes = room
        self.offsets |= dict.fromkeys(module.dynamic, room)
        self.touched: list[tuple[str, int]] = []

    def registers_of_one_segment(self) -> dict[int, list[str]]:
        """Registers that a segment writes before it reads them and that no other has: variables of the C compiler's."""
        where: dict[str, set[int]] = {}
        written_first = set()
        for number, segment in enumerate(self.kernel.segments):
            for each in segment.instructions:
                written = each.written
                read = [
                    name for text in (each.guard, *each.operands[bool(written) :]) for name in REGISTER.findall(text)
                ]
                for name in read:
                    where.setdefault(name, set()).add(number)
                for name in written:
                    if name not in where and not each.guard and name not in read and each.base not in OF_A_WARP:
                        written_first.add(name)
                    where.setdefault(name, set()).add(number)
        own: dict[int, list[str]] = {}
        for name in written_first & self.kernel.registers.keys():
            if len(where[name]) == 1:
                own.setdefault(*where[name], []).append(name)
        return own

    def write(self) -> str:
        """Write the function."""
        self.own = {name for names in self.local.values() for name in names}
        shared = [name for name in self.kernel.registers if name not in self.own]
        room = "".join(f"{TYPES[self.kernel.registers[name]]} {c_name(name)}[32];" for name in shared)
        room += "".join(
            f"char {c_name(name)}[32][{-(-max(size, 8) // 16) * 16}] __attribute__((aligned(16)));"
            for name, size in self.kernel.local.items()
        )
        cases = "\n".join(self.write_case(number, segment) for number, segment in enumerate(self.kernel.segments))
        begin = "0" if self.kernel.rooms is None else "begin_function(w, lanes)"
        return f"""{head_of(self.kernel)} {{
struct {{ {room} int none; }} r; memset(&r, 0, sizeof r);
int base = {begin};
while (w->top >= base && !launch.wrong) {{
struct parted *top = &w->parted[w->top];
if (!top->lanes || top->at == top->meeting) {{ w->top--; continue; }}
uint32_t active = top->lanes;
switch (top->at) {{
{cases}
default: stop("lanes ran off the end"); }} }} }}"""

    def write_case(self, number: int, segment: Segment) -> str:
        """Write what the active lanes do, and where they go on."""
        self.touched = []
        head, after = (
            f"case {number}: cnt[{self.first + number}]++;",
            number + 1 if number + 1 < len(self.kernel.segments) else END,
        )
        if segment.instructions and segment.instructions[0].base in OF_A_WARP:
            return f"{head} {self.of_a_warp(segment.instructions[0])} top->at = {after}; continue;"
        variables = "".join(
            f"{TYPES[self.kernel.registers[name]]} {c_name(name)};" for name in self.local.get(number, ())
        )
        lines = [self.write_line(each) for each in segment.instructions]
        rooms = "".join(f"uint64_t a{k}[32]; uint32_t g{k} = 0;" for k in range(len(self.touched)))
        noted = "".join(f"touch(w, {kind}, a{k}, g{k}, {size});" for k, (kind, size) in enumerate(self.touched))
        loop = (
            f"for (uint32_t m = active; m; m &= m - 1) {{ int l = __builtin_ctz(m); {variables}\n"
            + "\n".join(lines)
            + "\n}"
        )
        end = self.write_end(segment, after)
        return f"{head} {{ uint32_t taken = 0; {rooms} {loop if lines else ''} {noted} {end} continue; }}"

    def write_end(self, segment: Segment, after: int) -> str:
        """Write how a segment ends."""
        last = segment.instructions[-1] if segment.instructions else None
        if last is None or last.base not in ("bra", "brx", *LEAVING):
            return f"top->at = {after};"
        if last.base in LEAVING:
            return f"leave(w, taken, base); top->at = {after};"
        if last.base == "brx":
            raise NotImplementedError("a branch by a table: write a chain of comparisons")
        return f"part(w, taken, {targets_of(self.kernel, last)[0]}, {after}, {segment.meeting});"

    def write_line(self, each: Instruction) -> str:
        """Write an instruction for lane `l`."""
        guard = f"if ({self.value(each.guard, 'pred')}) " if each.guard else ""
        if each.base in ("bra", *LEAVING):
            return f"{guard}taken |= 1u << l;"
        return f"{guard}{{ {self.instruction(each)} }}"

    # Operands.

    def register(self, name: str) -> str:
        """Give the C expression of a register."""
        return c_name(name) if name in self.own else f"r.{c_name(name)}[l]"

    def value(self, text: str, kind: str) -> str:
        """Give an operand as a type."""
        negative, name = text.startswith("!"), text.removeprefix("!")
        if name in self.kernel.registers:
            found, held = self.register(name), self.kernel.registers[name]
        elif number := re.fullmatch(r"0([dDfF])([0-9a-fA-F]+)", name):
            wide = number[1] in "dD"
            found, held = f"0x{number[2]}{'ull' if wide else 'u'}", "b64" if wide else "b32"
        else:
            found, held = self.constant(name), "s64"
        if kind == "pred":
            return f"({'!' if negative else ''}{found})"
        if kind in WORDS and held not in WORDS:
            return f"u2{'d' if kind == 'f64' else 'f'}({found})"
        if kind not in WORDS and held in WORDS:
            found = f"{'d' if held == 'f64' else 'f'}2u({found})"
        return f"(({TYPES[kind]})({found}))"

    def constant(self, name: str) -> str:
        """Give a number, a special register or the address of a symbol."""
        if name in SPECIAL:
            return SPECIAL[name]
        if name in self.offsets:
            return f"{self.offsets[name]}ull"
        if name in self.kernel.local:
            return f"(uint64_t)(uintptr_t)r.{c_name(name)}[l]"
        if name in self.module.constants:
            return f"(uint64_t)(uintptr_t){c_name(name)}"
        if name in ("true", "false"):
            return str(int(name == "true"))
        number = int(name.rstrip("uU"), 0)
        return f"({number % 2**64}ull)" if number < 0 or number >= 2**63 else f"{number}ll"

    def put(self, name: str, kind: str, expression: str) -> str:
        """Write to a register what an expression of a type gives."""
        if name == "_":
            return f"(void)({expression});"
        held = self.kernel.registers[name]
        if kind in WORDS and held not in WORDS:
            expression = f"{'d' if kind == 'f64' else 'f'}2u({expression})"
        elif held in WORDS and kind not in WORDS:
            expression = f"u2{'d' if held == 'f64' else 'f'}({expression})"
        elif kind not in WORDS and kind != "pred":
            expression = f"({TYPES[kind]})({expression})"
        return f"{self.register(name)} = {expression};"

    def address(self, each: Instruction, text: str) -> str:
        """Give the address of an operand; of shared memory it is an offset."""
        found = re.fullmatch(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\w+))?\s*\]", text)
        assert found is not None, text
        name, offset = found[1], int(found[2] or "0", 0)
        if "param" in each.parts and name in self.kernel.local:
            return f"(r.{c_name(name)}[l] + {offset})"
        if "param" in each.parts and self.kernel.rooms is not None:
            k = self.kernel.rooms.index(name)
            return f"(p{k} + l * s{k} + {offset})"
        if "param" in each.parts:
            return f"(arguments[{list(self.kernel.parameters).index(name)}] + {offset})"
        base = self.value(name, "u64") if name in self.kernel.registers else self.constant(name)
        shared = "w->shared + " if "shared" in each.parts else ""
        return (
            f"((char *)(uintptr_t)({shared}({base})) + ({offset}))"
            if not shared
            else f"(w->shared + (uint32_t)({base}) + ({offset}))"
        )

    def note(self, each: Instruction, kind: str, bytes_: int) -> str:
        """Note the address `q` of an access that may be one of an array."""
        if {"shared", "param", "local", "const"} & set(each.parts):
            return "launch.shared_atomics++;" if kind == "ATOMIC" else ""
        self.touched.append((kind, bytes_))
        k = len(self.touched) - 1
        return f"a{k}[l] = (uint64_t)(uintptr_t)q; g{k} |= 1u << l;"

    # Instructions.

    def instruction(self, each: Instruction) -> str:
        """Write an instruction without its guard."""
        if each.base in SILENT:
            return ""
        write = getattr(self, f"write_{each.base}", None)
        if write is None:
            raise NotImplementedError(
                f"{'.'.join(each.parts)} {', '.join(each.operands)}: tests/cuda/instructions_c.py does not know it"
            )
        return str(write(each))

    def write_ld(self, each: Instruction) -> str:
        """Load one register or several."""
        kind, names = type_of(each), [name.strip() for name in each.operands[0].strip("{}").split(",")]
        bytes_ = BYTES[kind] * len(names)
        loads = "".join(
            self.put(name, kind, f"(({TYPES[kind]} *)q)[{k}]") for k, name in enumerate(names) if name != "_"
        )
        return f"char *q = {self.address(each, each.operands[1])}; {self.note(each, 'LOAD', bytes_)} {loads}"

    write_ldu = write_ld

    def write_st(self, each: Instruction) -> str:
        """Store one register or several."""
        kind, names = type_of(each), [name.strip() for name in each.operands[1].strip("{}").split(",")]
        stores = "".join(f"(({TYPES[kind]} *)q)[{k}] = {self.value(name, kind)};" for k, name in enumerate(names))
        note = self.note(each, "STORE", BYTES[kind] * len(names))
        return f"char *q = {self.address(each, each.operands[0])}; {note} {stores}"

    def write_atom(self, each: Instruction) -> str:
        """Read and change one word."""
        given = each.operands if each.base == "atom" else ("_", *each.operands)
        kind = type_of(each)
        verb = next(part for part in each.parts if part in JOINED)
        swap = self.value(given[3], kind) if verb == "cas" else ""
        made = JOINED[verb].format(v="v", swap=swap)
        note = self.note(each, "ATOMIC", BYTES[kind])
        kept = "" if given[0] == "_" else self.put(given[0], kind, "old")
        c = TYPES[kind]
        found = (
            f"{c} *q = ({c} *){self.address(each, given[1])}; {note} {c} v = {self.value(given[2], kind)}, old = q[0];"
        )
        return f"{found} q[0] = {made}; {kept}"

    write_red = write_atom

    def write_mov(self, each: Instruction) -> str:
        """Move, or take a word apart, or join two."""
        target, source = each.operands
        kind = type_of(each)
        half = f"b{BYTES[kind] * 4}"
        if target.startswith("{"):
            names = [name.strip() for name in target.strip("{}").split(",")]
            bits = BYTES[kind] * 8 // len(names)
            parts = (self.put(name, f"b{bits}", f"v >> {bits * k}") for k, name in enumerate(names) if name != "_")
            return f"uint64_t v = {self.value(source, WORDS.get(kind, kind))}; " + "".join(parts)
        if source.startswith("{"):
            low, high = (self.value(name.strip(), half) for name in source.strip("{}").split(","))
            return self.put(target, WORDS.get(kind, kind), f"((uint64_t){high} << {BYTES[kind] * 4}) | {low}")
        return self.put(target, kind, self.value(source, kind))

    def write_cvta(self, each: Instruction) -> str:
        """Change between addresses of shared memory, which are offsets here, and of all."""
        sign = ("-" if "to" in each.parts else "+") + "(uint64_t)(uintptr_t)w->shared" if "shared" in each.parts else ""
        return self.put(each.operands[0], "u64", f"{self.value(each.operands[1], 'u64')} {sign}")

    def write_cvt(self, each: Instruction) -> str:
        """Convert."""
        to, given = type_of(each), type_of(each, -1)
        value = self.value(each.operands[1], given)
        how = next((ROUNDINGS[part] for part in each.parts if part in ROUNDINGS), "")
        if "ftz" in each.parts and given == "f32":
            value = f"ftz({value})"
        if how and given in WORDS:
            value = f"{how}({value})"
        if given in WORDS and to not in WORDS:
            value = f"to_{TYPES[to]}({value})" if BYTES[to] > 1 else value
        value = f"({TYPES[to]})({value})"
        return self.put(each.operands[0], to, f"ftz({value})" if "ftz" in each.parts and to == "f32" else value)

    def write_selp(self, each: Instruction) -> str:
        """Choose."""
        kind, (target, yes, no, which) = type_of(each), each.operands
        return self.put(target, kind, f"{self.value(which, 'pred')} ? {self.value(yes, kind)} : {self.value(no, kind)}")

    def write_setp(self, each: Instruction) -> str:
        """Compare."""
        kind, how = type_of(each), each.parts[1]
        left, right = (self.value(name, kind) for name in each.operands[1:3])
        strange = f"(isnan({left}) || isnan({right}))"
        if how in ("num", "nan"):
            said = strange if how == "nan" else f"!{strange}"
        elif kind in WORDS and how.endswith("u") and how not in SIGNS:
            said = f"({strange} || {left} {SIGNS[how[:-1]]} {right})"
        else:
            said = f"({left} {SIGNS[how]} {right})" + (f" && !{strange}" if kind in WORDS and how == "ne" else "")
        if joined := {"and": "&&", "or": "||", "xor": "^"}.get(
            next((p for p in each.parts[2:] if p in ("and", "or", "xor")), "")
        ):
            said = f"(({said}) {joined} {self.value(each.operands[3], 'pred')})"
        names = each.operands[0].split("|")
        opposite = f" {self.register(names[1])} = !c;" if len(names) > 1 and names[1] != "_" else ""
        first = f"{self.register(names[0])} = c;" if names[0] != "_" else ""
        return f"uint8_t c = {said}; {first}{opposite}"

    def simple(self, each: Instruction, expression: str, kind: str = "") -> str:
        """Write a function of its operands, {0} to {2}."""
        kind = kind or type_of(each)
        given = [self.value(name, kind) for name in each.operands[1:]]
        if "ftz" in each.parts and kind == "f32":
            return self.put(each.operands[0], kind, f"ftz({expression.format(*[f'ftz({each})' for each in given])})")
        return self.put(each.operands[0], kind, expression.format(*given))

    def arithmetic(self, each: Instruction, sign: str) -> str:
        """Write a sum or a difference; whole numbers wrap around."""
        kind = type_of(each)
        if "cc" in each.parts or each.base in ("addc", "subc"):
            raise NotImplementedError("carries between instructions of PTX")
        return self.simple(each, f"{{0}} {sign} {{1}}", kind if kind in WORDS else "u" + kind[1:])

    def write_add(self, each: Instruction) -> str:
        """Add."""
        return self.arithmetic(each, "+")

    def write_sub(self, each: Instruction) -> str:
        """Subtract."""
        return self.arithmetic(each, "-")

    def write_mul(self, each: Instruction) -> str:
        """Multiply, and add a third number where there is one."""
        kind, third = type_of(each), each.base == "mad"
        bits = 8 * BYTES[kind]
        if kind in WORDS:
            return self.write_fma(each) if third else self.simple(each, "{0} * {1}")
        first, second = (self.value(name, kind) for name in each.operands[1:3])
        if "wide" in each.parts:
            kind = f"{kind[0]}{2 * bits}"
            product = f"({TYPES[kind]}){first} * ({TYPES[kind]}){second}"
        elif "hi" in each.parts:
            wide = "uint64_t" if kind[0] == "u" else "int64_t"
            product = f"high_{kind}({first}, {second})" if bits == 64 else f"(({wide}){first} * {second}) >> {bits}"
        else:
            product = f"(uint64_t){first} * (uint64_t){second}"
        third_one = f" + (uint64_t){self.value(each.operands[3], kind)}" if third else ""
        return self.put(each.operands[0], kind, f"({TYPES[kind]})({product}){third_one}")

    write_mad = write_mul

    def write_fma(self, each: Instruction) -> str:
        """Multiply and add, rounded once."""
        return self.simple(each, "fma({0}, {1}, {2})" if type_of(each) == "f64" else "fmaf({0}, {1}, {2})")

    def write_div(self, each: Instruction) -> str:
        """Divide."""
        return self.simple(each, "{0} / {1}" if type_of(each) in WORDS else "{1} ? {0} / {1} : 0")

    def write_rem(self, each: Instruction) -> str:
        """Give the rest of a division."""
        return self.simple(each, "{1} ? {0} % {1} : 0")

    def write_rcp(self, each: Instruction) -> str:
        """Give one over a number."""
        return self.simple(each, "1 / {0}")

    def write_sqrt(self, each: Instruction) -> str:
        """Give a root."""
        return self.simple(each, "sqrt({0})" if type_of(each) == "f64" else "sqrtf({0})")

    def logic(self, each: Instruction, sign: str) -> str:
        """Write an operation on bits, or on truth."""
        if type_of(each) != "pred":
            return self.simple(each, f"{{0}} {sign} {{1}}")
        first, second = (f"!!{self.value(name, 'pred')}" for name in each.operands[1:])
        return self.put(each.operands[0], "pred", f"{first} {sign} {second}")

    def write_and(self, each: Instruction) -> str:
        """And."""
        return self.logic(each, "&")

    def write_or(self, each: Instruction) -> str:
        """Or."""
        return self.logic(each, "|")

    def write_xor(self, each: Instruction) -> str:
        """Exclusive or."""
        return self.logic(each, "^")

    def write_not(self, each: Instruction) -> str:
        """Not."""
        return self.simple(each, "!{0}" if type_of(each) == "pred" else "~{0}")

    def write_shl(self, each: Instruction) -> str:
        """Shift to the left; all bits out are zero."""
        kind, (target, value, places) = type_of(each), each.operands
        count = self.value(places, "u32")
        return self.put(target, kind, f"{count} >= {8 * BYTES[kind]} ? 0 : {self.value(value, kind)} << {count}")

    def write_shr(self, each: Instruction) -> str:
        """Shift to the right; numbers with a sign keep it."""
        kind, (target, value, places) = type_of(each), each.operands
        count, most = self.value(places, "u32"), 8 * BYTES[kind] - 1
        beyond = f"{self.value(value, kind)} >> {most}" if kind[0] == "s" else "0"
        return self.put(target, kind, f"{count} > {most} ? {beyond} : {self.value(value, kind)} >> {count}")

    def write_neg(self, each: Instruction) -> str:
        """Change the sign."""
        return self.simple(each, "-{0}")

    def write_abs(self, each: Instruction) -> str:
        """Take the sign off."""
        return self.simple(each, "fabs({0})" if type_of(each) in WORDS else "{0} < 0 ? -{0} : {0}")

    def write_copysign(self, each: Instruction) -> str:
        """Give the second number the first one's sign."""
        return self.simple(each, "copysign({1}, {0})")

    def extreme(self, each: Instruction, sign: str) -> str:
        """Write the smaller or the larger number."""
        return self.simple(
            each, f"f{each.base}({{0}}, {{1}})" if type_of(each) in WORDS else f"{{0}} {sign} {{1}} ? {{0}} : {{1}}"
        )

    def write_min(self, each: Instruction) -> str:
        """Give the smaller number."""
        return self.extreme(each, "<")

    def write_max(self, each: Instruction) -> str:
        """Give the larger number."""
        return self.extreme(each, ">")

    def of_bits(self, each: Instruction, expression: str) -> str:
        """Write a function of bits that gives 32 of them."""
        kind = f"u{8 * BYTES[type_of(each)]}"
        return self.put(
            each.operands[0], "u32", expression.format(self.value(each.operands[1], kind), bits=int(kind[1:]))
        )

    def write_clz(self, each: Instruction) -> str:
        """Count zeros from the left."""
        return self.of_bits(each, "{0} ? __builtin_clzll({0}) - (64 - {bits}) : {bits}")

    def write_popc(self, each: Instruction) -> str:
        """Count ones."""
        return self.of_bits(each, "__builtin_popcountll({0})")

    def write_bfind(self, each: Instruction) -> str:
        """Find the highest one."""
        if type_of(each)[0] == "s":
            raise NotImplementedError("bfind of numbers with a sign")
        shift = "__builtin_clzll({0}) - (64 - {bits})" if "shiftamt" in each.parts else "63 - __builtin_clzll({0})"
        return self.of_bits(each, f"{{0}} ? {shift} : -1")

    def write_brev(self, each: Instruction) -> str:
        """Turn the bits around."""
        kind, (target, value) = type_of(each), each.operands
        return self.put(target, kind, f"turn_bits({self.value(value, kind)}, {8 * BYTES[kind]})")

    def write_bfe(self, each: Instruction) -> str:
        """Take bits out."""
        kind = type_of(each)
        if kind[0] == "s":
            raise NotImplementedError("bfe of numbers with a sign")
        value, first, count = self.value(each.operands[1], kind), *self.words(each, 2)
        return self.put(each.operands[0], kind, f"(uint64_t){value} >> {first} & ones({count})")

    def write_bfi(self, each: Instruction) -> str:
        """Put bits in."""
        kind = type_of(each)
        part, whole = (self.value(name, kind) for name in each.operands[1:3])
        first, count = self.words(each, 3)
        return self.put(each.operands[0], kind, f"put_bits({part}, {whole}, {first}, {count})")

    def write_shf(self, each: Instruction) -> str:
        """Shift two words."""
        low, high, places = self.words(each)
        count = f"({places} > 32 ? 32 : {places})" if "clamp" in each.parts else f"({places} & 31)"
        both = f"two_words({low}, {high})"
        return self.put(
            each.operands[0], "u32", f"{both} >> {count}" if "r" in each.parts else f"{both} << {count} >> 32"
        )

    def write_prmt(self, each: Instruction) -> str:
        """Choose bytes of two words."""
        return self.put(each.operands[0], "u32", f"choose_bytes({', '.join(self.words(each))})")

    def write_lop3(self, each: Instruction) -> str:
        """Join three words by a table."""
        return self.put(each.operands[0], "u32", f"join_by_table({', '.join(self.words(each))})")

    def words(self, each: Instruction, first: int = 1) -> list[str]:
        """Give operands as words of 32 bits."""
        return [self.value(name, "u32") for name in each.operands[first:]]

    def write_testp(self, each: Instruction) -> str:
        """Ask what kind of number it is."""
        how = {"infinite": "isinf", "finite": "isfinite", "notanumber": "isnan", "number": "!isnan"}[each.parts[1]]
        return self.put(each.operands[0], "pred", f"{how}({self.value(each.operands[1], type_of(each))})")

    def write_trap(self, each: Instruction) -> str:
        """Stop."""
        return 'stop("the kernel stopped itself");'

    # What a warp does together.

    def of_a_warp(self, each: Instruction) -> str:
        """Write an operation of all active lanes."""
        if each.base in ("bar", "barrier"):
            if each.parts[1] == "warp":
                return ""
            if "red" in each.parts:
                raise NotImplementedError("barriers that count")
            return "wait_for_block(w, active); top = &w->parted[w->top];"
        if each.base == "call":
            return self.write_call(each)
        each_lane = "for (uint32_t m = active; m; m &= m - 1) { int l = __builtin_ctz(m);"
        if each.base == "activemask":
            return f"{each_lane} {self.put(each.operands[0], 'b32', 'active')} }}"
        asked = self.value(each.operands[-1], "u32")
        check = f"{{ int l = __builtin_ctz(active); check_together(w, active, {asked}); }}"
        return f"{check} {getattr(self, f'together_{each.base}')(each, each_lane)}"

    def write_call(self, each: Instruction) -> str:
        """Call a function for the active lanes."""
        given = [name.strip() for text in each.operands if text.startswith("(") for name in text.strip("()").split(",")]
        called = next(text for text in each.operands if not text.startswith("("))
        if called not in self.module.functions or each.guard:
            raise NotImplementedError(f"a call of {called}")
        rooms = "".join(f", r.{c_name(name)}[0], sizeof r.{c_name(name)}[0]" for name in given if name)
        return f"{c_name(called)}(w, active{rooms}); top = &w->parted[w->top];"

    def together_vote(self, each: Instruction, each_lane: str) -> str:
        """Ask all lanes."""
        how = next(part for part in each.parts if part in ("ballot", "any", "all", "uni"))
        said = {"ballot": "yes", "any": "yes != 0", "all": "yes == active", "uni": "!yes || yes == active"}[how]
        put = self.put(each.operands[0], "b32" if how == "ballot" else "pred", said)
        ask = f"if ({self.value(each.operands[1], 'pred')}) yes |= 1u << l;"
        return f"{{ uint32_t yes = 0; {each_lane} {ask} }} {each_lane} {put} }} }}"

    def together_match(self, each: Instruction, each_lane: str) -> str:
        """Find the lanes with the same number."""
        if "any" not in each.parts:
            raise NotImplementedError("match.all")
        same = "uint32_t alike = 0; for (int k = 0; k < 32; k++) if (active >> k & 1 && v[k] == v[l]) alike |= 1u << k;"
        given = f"uint64_t v[32]; {each_lane} v[l] = {self.value(each.operands[1], type_of(each))}; }}"
        return f"{{ {given} {each_lane} {same} {self.put(each.operands[0], 'b32', 'alike')} }} }}"

    def together_shfl(self, each: Instruction, each_lane: str) -> str:
        """Take another lane's number; a lane that has none keeps its own."""
        given, places, clamp = self.words(each)[:3]
        lane = f"(int)({places} & 31)"
        moves = {"up": f"l - {lane}", "down": f"l + {lane}", "bfly": f"l ^ {lane}"}
        moves["idx"] = f"(l & ({clamp} >> 8 & 31)) | ({lane} & ~({clamp} >> 8))"
        how = next(part for part in each.parts if part in moves)
        find = f"uint8_t within; int from = lane_from(l, {moves[how]}, {clamp}, {int(how == 'up')}, &within);"
        names = each.operands[0].split("|")
        second = f"{self.register(names[1])} = within;" if len(names) > 1 else ""
        source = f"uint32_t v[32]; for (int l = 0; l < 32; l++) v[l] = {given};"
        return f"{{ {source} {each_lane} {find} {self.put(names[0], 'b32', 'v[from & 31]')} {second} }} }}"

    def together_redux(self, each: Instruction, each_lane: str) -> str:
        """Join the numbers of all lanes."""
        kind = type_of(each)
        verb = next(part for part in each.parts if part in JOINED)
        joined = JOINED[verb].replace("q[0]", "all").format(v="v", swap="")
        value = f"{TYPES[kind]} v = {self.value(each.operands[1], kind)};"
        first = f"{TYPES[kind]} all = 0; int begun = 0; {each_lane} {value} all = begun ? ({joined}) : v; begun = 1; }}"
        return f"{{ {first} {each_lane} {self.put(each.operands[0], kind, 'all')} }} }}"


def head_of(kernel: Kernel) -> str:
    """Write the head of a kernel's C function, or of one that kernels call: of its rooms each lane has one."""
    if kernel.rooms is None:
        return f"static void {c_name(kernel.name)}(struct warp *w, char **arguments)"
    rooms = "".join(f", char *p{k}, int s{k}" for k in range(len(kernel.rooms)))
    return f"static void {c_name(kernel.name)}(struct warp *w, uint32_t lanes{rooms})"


def write_module(module: Module) -> tuple[str, dict[str, int], dict[str, int]]:
    """Give the C of all kernels, the number of the first segment of each, and bytes of its own shared arrays."""
    parts, first, static, total = [], {}, {}, 0
    for name, kernel in (module.functions | module.kernels).items():
        writer = Writer(kernel, module, total)
        first[name], static[name] = total, writer.static_bytes
        total += len(kernel.segments)
        parts.append(writer.write())
    constants = [
        f"static {TYPES[kind]} {c_name(name)}[{length}] __attribute__((aligned(16))) = {values};"
        for name, (kind, length, values) in module.constants.items()
    ]
    entries = [
        f"const char *run_{c_name(name)}(uint32_t blocks, uint32_t threads, uint64_t shared, char **arguments,"
        " struct range *ranges, int n, uint64_t *atomics)"
        f" {{ return run_grid({c_name(name)}, blocks, threads, shared, arguments, ranges, n, atomics); }}"
        for name in module.kernels
    ]
    counters = f"uint64_t cnt[{max(total, 1)}];"
    heads = [f"{head_of(kernel)};" for kernel in module.functions.values()]
    return "\n".join([HEADER.read_text(), counters, *constants, *heads, *parts, *entries]), first, static
