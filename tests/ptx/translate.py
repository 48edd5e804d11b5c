#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""translate.py KERNELS.ptx KERNELS.cpp: writes C++ that computes what the PTX does, for the fibers of tests/emulator.

Every kernel becomes a function that each thread of a launch calls once. Every instruction becomes one statement, whose
number in the PTX is the line that a fault names. What an instruction computes is a template of tests/ptx/ptx.h that has
the instruction's name: `mad.lo.s32 %r1, %r2, %r3, 4` becomes `set(r1, mad_lo<s32>(as<s32>(r2), as<s32>(r3), s32(4)))`.
An instruction without such a template is an error of the compiler that shows its name. Registers have no type but a
size, as in PTX: as<T>() and set() reinterpret their bits.

At every branch target and after every branch, the translated code counts the instructions that follow, their accesses
to memory and the bytes of these.
"""
import re
import sys
from collections import OrderedDict

SIZES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "bf16": 2, "f16": 2, "b32": 4, "u32": 4, "s32": 4,
         "f32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8, "pred": 1}
# Types in C++: bits without a type (b8 to b64) are unsigned numbers, and a predicate is a bool.
TYPES = {name: "bool" if name == "pred" else "u" + name[1:] if name[0] == "b" and name != "bf16" else name
         for name in SIZES}
TYPES["bf16"] = TYPES["f16"] = "u16"
WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
SPECIAL = {"%laneid": "u32(emulator::running->lane)"}
for word, name in (("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim")):
    for axis in "xyz":
        SPECIAL[f"%{word}.{axis}"] = f"{name}.{axis}"
SPACES = ("global", "shared", "local", "param")
# Words of an opcode that do not change what the translated instruction computes.
SILENT = {"rn", "uni", "sync", "aligned", "nc", "volatile", "relaxed", "gpu", "cta", "row", "col"}


def split(text):
    """Splits at the commas that are in no bracket."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "[{(") - (c in "]})")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part.strip()]


def braced(text):
    """The parts of {a, b}, or the one that stands there without braces."""
    return split(text[1:-1]) if text.startswith("{") else [text]


class Kernel:
    def __init__(self, name, parameters, module):
        self.name, self.parameters, self.module = name, parameters, module  # parameters: name -> (offset, bytes)
        self.registers = OrderedDict()  # name -> C++ type
        self.shared, self.local = OrderedDict(), OrderedDict()  # name -> (bytes, alignment)
        self.lines = []  # (number, label or None, guard, opcode, operands)

    # ---- operands -----------------------------------------------------------------------------------------------
    def read(self, operand, kind):
        """An operand as a value of the C++ type `kind`; predicates are always bools."""
        if operand.startswith("!"):
            return "!" + self.read(operand[1:], kind)
        if operand in SPECIAL:
            return f"{kind}({SPECIAL[operand]})"
        if operand in self.registers:
            name = variable(operand)
            return name if self.registers[operand] in (kind, "bool") else f"as<{kind}>({name})"
        if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", operand):
            return f"as<{kind}>(u32(0x{operand[2:]}u))"
        if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", operand):
            return f"as<{kind}>(u64(0x{operand[2:]}ull))"
        if re.fullmatch(r"-?\d+U?|0x[0-9a-fA-F]+U?", operand):
            return f"{kind}({operand.rstrip('U')}ll)"
        return f"{kind}({self.address_of(operand)})"

    def address_of(self, symbol):
        if symbol in self.local:
            return f"reinterpret_cast<u64>({variable(symbol)})"
        if symbol in self.parameters:
            return f"reinterpret_cast<u64>(parameters + {self.parameters[symbol][0]})"
        if symbol in self.module.dynamic:
            return f"u64({self.static_bytes()})"
        if symbol in self.offsets():
            return f"u64({self.offsets()[symbol]})"
        if symbol in self.module.constants:
            return f"reinterpret_cast<u64>({variable(symbol)})"
        raise SyntaxError(f"{self.name}: nothing is known of {symbol}")

    def offsets(self):
        """Where the kernel's static shared variables lie in the shared memory of a block."""
        found, end = {}, 0
        for name, (size, alignment) in self.shared.items():
            found[name] = -(-end // alignment) * alignment
            end = found[name] + size
        return found

    def static_bytes(self):
        """Dynamic shared memory begins here, behind the static variables."""
        end = max([self.offsets()[name] + size for name, (size, _) in self.shared.items()], default=0)
        return -(-end // 128) * 128

    def memory(self, opcode, operand, size):
        """The address of an access to `size` bytes, checked for its space."""
        base, offset = parts_of(operand)
        space = next((word for word in opcode.split(".") if word in SPACES), "generic")
        at = f"{self.read(base, 'u64')} + u64({offset}ll)"
        return f"{space}({at}, {size}{', true' if space == 'global' and opcode.startswith('st') else ''})"

    # ---- instructions -------------------------------------------------------------------------------------------
    def statement(self, number, opcode, a):
        words = opcode.split(".")
        kind = TYPES.get(words[-1])
        name = "_".join(word for word in words if word not in SILENT and word not in TYPES)
        name += "_" if name in ("and", "or", "xor", "not") else ""  # keywords of C++
        place = f'"{self.module.file}", {number}'
        if words[0] in ("ret", "exit"):
            return "return count.end(counts);"
        if words[0] == "bra":
            return f"goto {variable(a[0])};"
        if words[0] in ("ld", "st"):
            values = braced(a[0] if words[0] == "ld" else a[1])
            at = self.memory(opcode, a[1] if words[0] == "ld" else a[0], len(values) * SIZES[words[-1]])
            if words[0] == "ld":
                return f"load<{kind}>({at}, {', '.join(map(variable, values))});"
            return f"store<{kind}>({at}, {', '.join(self.read(v, kind) for v in values)});"
        if words[0] == "mov" and "{" in "".join(a):
            parts, whole = (a[0], a[1]) if a[0].startswith("{") else (a[1], a[0])
            names = ", ".join(map(variable, braced(parts)))
            if parts == a[0]:
                return f"unpack<{kind}>({self.read(whole, kind)}, {names});"
            return f"pack<{kind}>({variable(whole)}, {names});"
        if words[0] == "cvta":
            how = "cvta_to_shared" if words[1:3] == ["to", "shared"] else "cvta_shared" if "shared" in words else "mov"
            return f"set({variable(a[0])}, {how}<u64>({self.read(a[1], 'u64')}));"
        if words[0] == "cvt" and words[2] == "bf16x2":
            return f"set({variable(a[0])}, cvt_bf16x2({self.read(a[1], kind)}, {self.read(a[2], kind)}));"
        if words[0] == "cvt":
            rounding = "_".join(word for word in words[:-2] if word not in SILENT)
            return f"set({variable(a[0])}, {rounding}<{TYPES[words[-2]]}>({self.read(a[1], kind)}));"
        if words[0] == "setp":
            value = f"setp_{words[1]}<{kind}>({self.read(a[1], kind)}, {self.read(a[2], kind)})"
            if len(a) == 4:
                value += {"and": " & ", "or": " | ", "xor": " ^ "}[words[2]] + f"({self.read(a[3], 'bool')})"
            return f"{variable(a[0])} = {value};"
        if opcode in ("bar.sync", "barrier.sync.aligned", "barrier.sync"):
            if a != ["0"]:
                raise SyntaxError(f"{self.module.file}:{number}: {opcode} {', '.join(a)}: expected barrier 0")
            return f"__syncthreads({place});"
        if opcode == "bar.warp.sync":
            return f"__syncwarp({self.read(a[0], 'u32')}, {place});"
        if words[0] == "shfl":
            to = a[0].split("|")
            got = variable(to[1]) if len(to) > 1 else "ignored"
            rest = ", ".join(self.read(x, "u32") for x in a[1:])
            return f"set({variable(to[0])}, shfl_{words[2]}({rest}, {got}, {place}));"
        if words[0] == "vote":
            voted, mask = self.read(a[1], "bool"), self.read(a[2], "u32")
            return f"set({variable(a[0])}, __{words[2]}_sync({mask}, {voted}, {place}));"
        if words[0] == "mma":
            d, first, second, sums = map(braced, a)
            lists = [", ".join(self.read(x, t) for x in part) for part, t in ((first, "u32"), (second, "u32"), (sums, "f32"))]
            return f"{name}({{{lists[0]}}}, {{{lists[1]}}}, {{{lists[2]}}}, {place}, {', '.join(map(variable, d))});"
        if words[0] == "ldmatrix":
            four = ", ".join(map(variable, braced(a[0])))
            transposed = "true" if "trans" in words else "false"
            base, offset = parts_of(a[1])
            return f"ldmatrix_x4<{transposed}>({self.read(base, 'u32')} + {offset}u, {place}, {four});"
        if opcode == "cp.async.wait_all":
            return "cp_async_wait_all();"
        if words[:2] == ["cp", "async"]:
            to, source = self.memory(".shared", a[0], 16), self.read(a[1].strip("[]"), "u64")
            if a[2] != "16":
                raise SyntaxError(f"{self.module.file}:{number}: {opcode}: expected 16 bytes, found {a[2]}")
            return f"cp_async({to}, {source}, {self.read(a[3], 'u32') if len(a) > 3 else 16});"
        values = [self.read(x, kind) for x in a[1:]]
        if "wide" in words and len(values) == 3:
            values[2] = self.read(a[3], WIDE[kind])
        return f"set({variable(a[0])}, {name}<{kind}>({', '.join(values)}));"

    # ---- the function -------------------------------------------------------------------------------------------
    def counted(self, block):
        """The statement that counts the instructions of a basic block."""
        of = {"ld.global": [0, 0], "st.global": [0, 0], "shared": [0, 0], "mma": [0, 0]}
        for _, _, _, opcode, operands in block:
            words = opcode.split(".")
            if opcode.startswith("cp.async.cg"):
                of["ld.global"][0] += 1
                of["ld.global"][1] += 16
                continue
            space = "shared" if "shared" in words else f"{words[0]}.global" if "global" in words else words[0]
            if words[0] in ("ld", "st", "mma", "ldmatrix") and space in of:
                values = max(len(braced(x)) for x in operands)
                of[space][0] += 1
                of[space][1] += values * SIZES[words[-1]]
        loads, stores = of["ld.global"], of["st.global"]
        numbers = [len(block), *loads, *stores, of["shared"][0], of["mma"][0]]
        return f"    count.add({', '.join(map(str, numbers))});"

    def function(self, number):
        lines = [f"// {self.name}", f"void kernel_{number}(const char* parameters, Counts* counts) {{"]
        used = set(re.findall(r"%\w+", " ".join(f"{guard} {operands}" for _, _, guard, _, operands in self.lines)))
        lines += [f"    {kind} {variable(name)}{{}};" for name, kind in self.registers.items() if name in used]
        for name, (size, alignment) in self.local.items():
            lines.append(f"    alignas({max(alignment, 16)}) char {variable(name)}[{size}];")
        lines.append("    Count count;\n    bool ignored = false;\n    (void)parameters, (void)ignored;")
        block = []

        def end_block():
            if block:
                lines.append(self.counted(block))
                for line, _, guard, opcode, operands in block:
                    condition = f"if ({self.read(guard, 'bool')}) " if guard else ""
                    lines.append(f"    {condition}{self.statement(line, opcode, operands)}")
                block.clear()

        for line in self.lines:
            if line[1]:
                end_block()
                lines.append(f"{variable(line[1])}:;")
                continue
            block.append(line)
            if line[3].split(".")[0] in ("bra", "ret", "exit"):
                end_block()
        end_block()
        return "\n".join(lines + ["}", ""])


def parts_of(address):
    """The register or symbol of an address, and what is added to it."""
    base, offset = re.fullmatch(r"\[(.+?)(?:\+(-?\d+))?\]", address).groups()
    return base, offset or 0


def variable(name):
    """The C++ name of a register, a label or a variable."""
    return "ignored" if name == "_" else re.sub(r"\W", "_", name.replace("%", "v").replace("$", ""))


class Module:
    def __init__(self, path):
        self.file = path.split("/")[-1]
        self.dynamic, self.constants, self.kernels = set(), OrderedDict(), []
        text = re.sub(r"//[^\n]*", "", open(path).read())
        kernel, parameters, pending, depth = None, None, "", 0
        for number, line in enumerate(text.split("\n"), 1):
            line = line.strip()
            if not line or line.split()[0] in (".version", ".target", ".address_size", ".pragma", ".loc", ".file"):
                continue
            if parameters is not None and kernel is None and line[0] not in "{":
                if found := re.match(r"\.param (?:\.align (\d+) )?\.(\w+) (?:\.ptr .*? )?([\w$]+)(?:\[(\d+)\])?", line):
                    alignment, kind, called, count = found.groups()
                    size = SIZES[kind] * int(count or 1)
                    alignment = int(alignment or SIZES[kind])
                    end = sum(list(parameters.values())[-1]) if parameters else 0
                    parameters[called] = (-(-end // alignment) * alignment, size)
                continue  # skips ")", .maxntid and similar lines
            if kernel is None:
                pending = self.top(number, (pending + " " + line).strip())
                if pending.startswith(".entry "):
                    name, pending, parameters = pending.split()[1].rstrip("()"), "", OrderedDict()
                elif line == "{" and parameters is not None:
                    kernel, pending, depth = Kernel(name, parameters, self), "", 1
                continue
            if line in "{}":
                depth += 1 if line == "{" else -1
                if depth == 0:
                    self.kernels.append(kernel)
                    kernel = parameters = None
                continue
            if found := re.fullmatch(r"([\w$]+):", line):
                kernel.lines.append((number, found.group(1), None, "", []))
                continue
            pending = (pending + " " + line).strip()
            if pending.endswith(";"):
                self.inside(kernel, number, pending[:-1].strip())
                pending = ""

    def top(self, number, line):
        """Reads a line outside of kernels; returns what has to be read together with the next one."""
        if found := re.match(r"(?:\.visible |\.weak )*\.entry ([\w$]+)", line):
            return ".entry " + found.group(1)
        if line == "{":
            return ""
        if not line.endswith(";"):
            return line
        if found := re.match(r"\.extern \.shared .* ([\w$]+)\[\];", line):
            self.dynamic.add(found.group(1))
        elif found := re.match(r"(?:\.visible |\.weak )*\.(?:global|const) .*?\.(\w+) ([\w$]+)(?:\[(\d+)\])?"
                               r"(?:\s*=\s*(.*))?;", line):
            kind, name, count, first = found.groups()
            first = first if first and first.startswith("{") else f"{{{first or ''}}}"
            self.constants[name] = f"alignas(16) {TYPES[kind]} {variable(name)}[{count or 1}] = {first};"
        else:
            raise SyntaxError(f"{self.file}:{number}: {line}: has no translation")
        return ""

    def inside(self, kernel, number, line):
        if found := re.fullmatch(r"\.reg \.(\w+)\s+(.*)", line):
            kind = TYPES[found.group(1)]
            if kind in ("s16", "s32", "s64"):
                kind = "u" + kind[1:]
            for name in split(found.group(2)):
                several = re.fullmatch(r"(%[\w$]+)<(\d+)>", name)
                names = [f"{several.group(1)}{i}" for i in range(int(several.group(2)))] if several else [name]
                kernel.registers.update((n, kind) for n in names)
        elif found := re.fullmatch(r"\.(shared|local) \.align (\d+) \.b8\s+([\w$]+)\[(\d+)\]", line):
            space, alignment, name, size = found.groups()
            (kernel.shared if space == "shared" else kernel.local)[name] = (int(size), int(alignment))
        else:
            guard, opcode, operands = re.fullmatch(r"(?:@(!?%p\d+)\s+)?([\w.:]+)\s*(.*)", line).groups()
            kernel.lines.append((number, None, guard, opcode, split(operands)))

    def translated(self):
        name = re.sub(r"\W", "_", self.file[: -len(".ptx")])
        lines = ["// Made by tests/ptx/translate.py.", '#include "tests/ptx/ptx.h"', f"namespace masquerade::ptx::of_{name} {{"]
        lines += self.constants.values()
        lines += [kernel.function(i) for i, kernel in enumerate(self.kernels)]
        lines.append("const Registered here({")
        for i, kernel in enumerate(self.kernels):
            parameters = ", ".join(f"{{{offset}, {size}}}" for offset, size in kernel.parameters.values())
            lines.append(f'    {{"{kernel.name}", kernel_{i}, {kernel.static_bytes()}, {{{parameters}}}, {{}}}},')
        return "\n".join(lines + ["});", "}", ""])


if __name__ == "__main__":
    with open(sys.argv[2], "w") as to:
        to.write(Module(sys.argv[1]).translated())
