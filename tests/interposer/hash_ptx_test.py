"""Runs the kernel that hashes GPU memory (src/interposer/swap/hash.ptx) without a GPU, in a small
interpreter of the kernel's instructions, with one generator for each thread. Every byte must be
read exactly once, and the sums must be those of hash.h. Two sums are the same numbers that
hash_test.cpp expects of the host's implementation.

usage: hash_ptx_test.py HASH.PTX
"""
import random
import re
import struct
import sys

MASK = (1 << 64) - 1
MASK32 = (1 << 32) - 1
PIECE = 256 << 10
STEP = 0xB4DD7F0B4614BEB3
MIXES = (0xF93137493673750F, 0xFD48B8A148CBC153, 0x8DDAAD4654525573, 0x86622BB7620C1EE3,
         0xBFA2379E952EFA45)
SEED = 0x0123456789ABCDEF
# The sums of two pieces of the pattern below, as in hash_test.cpp.
EXPECTED = {0: (0xd1608707011716ef, 0x85a491e8ce40df16),
            2: (0x75bc33cc2e9e4485, 0x308231728a683cd5)}


def hash_words(words, first, seed):
    a = b = 0
    for index, word in enumerate(words, first):
        x = word ^ (seed + index * STEP) & MASK
        for number, factor in enumerate(MIXES):
            x = x * factor & MASK
            x ^= x >> 32
            if number == 2:
                a += x
        b += x
    return a & MASK, b & MASK


def name(operand):
    operand = operand.strip()
    if operand.startswith("%"):
        return "r_" + operand[1:].replace(".", "_")
    if operand == "tree":
        return "0"
    return str(int(operand, 0))


def address(operand):
    base, _, offset = operand.strip("[] ").partition("+")
    return f"{name(base)} + {offset or 0}"


def pair(operand):
    return [name(part) for part in operand.strip("{} ").split(",")]


def statement(op, arguments):
    """One instruction as a line of Python; none for an instruction that has no effect here."""
    o = [a if a[0] in "[{" else name(a) for a in arguments]
    width = MASK if op.endswith("64") else MASK32
    if op.startswith("ld.param"):
        return f"{o[0]} = params['{arguments[1].strip('[]')}']"
    if op.startswith(("mov", "cvta")):
        return f"{o[0]} = {o[1]}"
    if op == "mul.wide.u32":
        return f"{o[0]} = {o[1]} * {o[2]}"
    if op == "mad.lo.u64":
        return f"{o[0]} = ({o[1]} * {o[2]} + {o[3]}) & {MASK}"
    symbol = {"add": "+", "sub": "-", "mul.lo": "*", "xor": "^", "shr": ">>",
              "shl": "<<"}.get(op.rsplit(".", 1)[0])
    if symbol:
        return f"{o[0]} = ({o[1]} {symbol} {o[2]}) & {width}"
    compared = {"setp.ne": "!=", "setp.ge": ">="}.get(op.rsplit(".", 1)[0])
    if compared:
        return f"{o[0]} = {o[1]} {compared} {o[2]}"
    if op == "ld.global.v2.u64":
        return f"{', '.join(pair(arguments[0]))} = load({address(arguments[1])})"
    if op == "st.global.v2.u64":
        return f"store({address(arguments[0])}, {', '.join(pair(arguments[1]))})"
    if op == "ld.shared.v2.u64":
        return f"{', '.join(pair(arguments[0]))} = shared[{address(arguments[1])}]"
    if op == "st.shared.v2.u64":
        return f"shared[{address(arguments[0])}] = ({', '.join(pair(arguments[1]))})"
    raise SystemExit(f"an instruction that this test does not know: {op}")


def translate(text):
    """The kernel as the source of a generator that yields at each barrier."""
    body = re.search(r"\.entry gpurota_hash.*?\{(.*?)^\}", re.sub(r"//.*", "", text),
                     re.S | re.M).group(1)
    blocks, labels = [[]], {}
    for line in re.split(r";|(?<=:)\n", body):
        line = line.strip()
        if not line or line.startswith((".reg", ".shared")):
            continue
        if line.endswith(":"):
            blocks.append([])
            labels[line[:-1]] = len(blocks) - 1
            continue
        guarded = re.fullmatch(r"@(%\w+)\s+bra\s+(\w+)", line)
        if guarded:
            blocks[-1].append(("branch", name(guarded.group(1)), guarded.group(2)))
            blocks.append([])
        elif line == "ret":
            blocks[-1].append(("return",))
        elif line.startswith("bar.sync"):
            blocks[-1].append(("barrier",))
        else:
            op, rest = line.split(None, 1)
            blocks[-1].append(("do",
                               statement(op, [a.strip() for a in re.split(r",(?![^{]*\})", rest)])))
    source = ["def thread(group, tid, params, load, store, shared):",
              "  r_ctaid_x, r_tid_x, at = group, tid, 0", "  while True:"]
    for number, block in enumerate(blocks):
        source.append(f"    if at == {number}:")
        for what, *how in block:
            if what == "do":
                source.append(f"      {how[0]}")
            elif what == "barrier":
                source.append("      yield")
            elif what == "return":
                source.append("      return")
            else:
                source.append(
                    f"      if {how[0]}:\n        at = {labels[how[1]]}\n        continue")
        source.append(f"      at = {number + 1}")
    return "\n".join(source)


def run_group(thread, group, memory, seed):
    """The sum of one group, and how many times the group read each byte."""
    read = bytearray(len(memory))
    sums = {}

    def load(at):
        for i in range(at, at + 16):
            read[i] += 1
        return struct.unpack_from("<QQ", memory, at)

    def store(at, a, b):
        sums[at] = (a, b)

    params = {"p_data": 0, "p_sums": 1 << 20, "p_seed": seed}
    shared = {}
    threads = [thread(group, tid, params, load, store, shared) for tid in range(256)]
    alive = set(range(256))
    while alive:
        for tid in sorted(alive):
            if next(threads[tid], "ended") == "ended":
                alive.discard(tid)
    assert list(sums) == [(1 << 20) + group * 16], sums
    begin = group * PIECE
    assert read[begin:begin + PIECE] == b"\1" * PIECE, "a byte is not read once"
    assert not any(read[:begin]) and not any(read[begin + PIECE:]), "read outside"
    return sums[(1 << 20) + group * 16]


def main():
    scope = {}
    exec(translate(open(sys.argv[1], encoding="ascii").read()), scope)
    words = [(i * i * 0x9E3779B97F4A7C15 + i & MASK) >> 3 for i in range(3 * PIECE // 8)]
    memory = struct.pack(f"<{len(words)}Q", *words)
    per_piece = PIECE // 8
    for group, expected in EXPECTED.items():
        first = group * per_piece
        by_rule = hash_words(words[first:first + per_piece], first, SEED)
        by_kernel = run_group(scope["thread"], group, memory, SEED)
        print(f"piece {group}: {by_kernel[0]:#018x} {by_kernel[1]:#018x}")
        assert by_kernel == by_rule, f"by the rule: {by_rule[0]:#018x} {by_rule[1]:#018x}"
        assert by_kernel == expected, "not what hash_test.cpp expects"
    # One more group, with random bytes and another seed.
    noise = random.Random(1).randbytes(PIECE)
    assert run_group(scope["thread"], 0, noise,
                     MASK) == hash_words(struct.unpack(f"<{per_piece}Q", noise), 0, MASK)


main()
