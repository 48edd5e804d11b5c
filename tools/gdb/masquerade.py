# SPDX-License-Identifier: MIT
# Printers and commands for gdb. tools/gdb/gdbinit loads them, and docs/debugging.md shows how to use them.
#   print X            a Tensor, View, Grad, Shape, Ints, Record or SegmentGraph in one line, a bfloat16 as a number;
#                      print/r X shows the fields
#   tensor EXPR|PATH   path, shape, type, first numbers, min, max, mean, count of numbers that are not finite
#   gradstep [PATTERN] run to the next backward of an op, or to the next one whose path matches PATTERN
#   runto TEXT         run to the next line of the current file that contains TEXT
#   program            the records of the tape; an arrow marks the running one
#   mask GRAPH [N]     draws the mask of document N (default: 0) of a SegmentGraph
import array
import fnmatch
import math
import os
import re
import struct
import sys

import gdb
from gdb.FrameDecorator import FrameDecorator

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mask
from mask import items_of

# For each DType: its name, the type code for array, and the number of array elements per number
TYPES = (("f32", "f", 1), ("bf16", "H", 1), ("f64", "d", 1), ("c128", "d", 2))
FIRST = 4


def text_of(string):
    """Returns the text of a std::string or a const char*."""
    if string.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
        return string.string() if int(string) else ""
    return string["_M_dataplus"]["_M_p"].string(length=int(string["_M_string_length"]))


def sizes_of(shape):
    return [int(shape["size"][i]) for i in range(int(shape["rank"]))]


def shape_text(shape):
    return "(" + ",".join(map(str, sizes_of(shape))) + ")"


def read_numbers(value, data, most=None):
    """Returns the numbers at `data`, or the first `most` of them. `value` has their type and shape. Complex numbers are
    returned as their real parts. If the numbers cannot be read, returns a string that says why."""
    if not int(data):
        return "absent"
    if int(value["device"]) != 0:
        return "on the GPU"
    count, code, wide = math.prod(sizes_of(value["shape"])), *TYPES[int(value["dtype"])][1:]
    count = wide * (count if most is None else min(count, most))
    numbers = array.array(code)
    try:
        if count > 0:
            numbers.frombytes(gdb.selected_inferior().read_memory(int(data), count * numbers.itemsize).tobytes())
    except gdb.MemoryError:
        return "unreadable"
    if code == "H":  # the upper half of a float
        return array.array("f", array.array("I", (n << 16 for n in numbers)).tobytes())
    return numbers[::wide]


def first_of(value, data):
    """Returns the first few numbers as text, for a printer that shows one line."""
    numbers = read_numbers(value, data, FIRST)
    if isinstance(numbers, str):
        return numbers
    shown = " ".join("%.4g" % x for x in numbers)
    return "[" + shown + (" ...]" if math.prod(sizes_of(value["shape"])) > FIRST else "]")


def summary_of(value, data):
    """Returns a summary of all numbers: the first ones, and the minimum, maximum and mean of the finite ones."""
    numbers = read_numbers(value, data)
    if isinstance(numbers, str):
        return numbers
    finite = [x for x in numbers if math.isfinite(x)]
    line = first_of(value, data)
    if finite:
        line += "  min %.4g  max %.4g  mean %.4g" % (min(finite), max(finite), math.fsum(finite) / len(finite))
    if len(finite) == len(numbers):
        return line + "  all finite"
    at = next(i for i, x in enumerate(numbers) if not math.isfinite(x))
    columns = (sizes_of(value["shape"]) or [1])[-1]
    return line + "  %d of %d NOT FINITE, first [%d,%d] = %g" % (
        len(numbers) - len(finite), len(numbers), at // columns, at % columns, numbers[at])


def head_of(value):
    """Returns path, shape and type: "path (70,16) f32"."""
    path = text_of(value["path"])
    return "%s%s %s" % (path + " " if path else "", shape_text(value["shape"]), TYPES[int(value["dtype"])][0])


def tensor_line(value):
    return head_of(value) + " " + first_of(value, value["value"])


def view_line(value):
    return head_of(value) + " " + first_of(value, value["data"]) if int(value["data"]) else "absent"


def grad_line(value):
    if not int(value["view"]["data"]):
        return "not wanted"
    if not value["add"]:  # the gradient is not written yet, so its memory contains other numbers
        return "store " + head_of(value["view"])
    return "add to " + view_line(value["view"])


def ints_line(value):
    count = int(value["count"])
    shown = " ".join(str(int(value["data"][i])) for i in range(min(count, 2 * FIRST)))
    return "%d ints [%s%s]" % (count, shown, " ..." if count > 2 * FIRST else "")


def record_line(record):
    names = [text_of(t["path"]) if int(t) else "-" for t in items_of(record["in"])]
    out = items_of(record["out"])
    shape = " " + shape_text(out[0]["shape"]) if out else ""
    return "%s %s -> %s%s" % (text_of(record["op"]), " ".join(names), text_of(record["path"]), shape)


def graph_line(graph):
    queries, keys = items_of(graph["queries"]), items_of(graph["keys"])
    return "mask of %d documents: %d segments of queries, %d of keys" % (int(graph["documents"]), len(queries), len(keys))


def bfloat16_line(value):
    return "%.9g" % struct.unpack("f", struct.pack("I", int(value["bits"]) << 16))


LINES = {
    "masquerade::bfloat16": bfloat16_line,
    "masquerade::Tensor": tensor_line,
    "masquerade::View": view_line,
    "masquerade::Grad": grad_line,
    "masquerade::Shape": shape_text,
    "masquerade::Ints": ints_line,
    "masquerade::Record": record_line,
    "masquerade::SegmentGraph": graph_line,
}


def type_name(value):
    return str(value.type.strip_typedefs().unqualified())


class OneLine:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        name = type_name(self.value)
        # In a backtrace, only path and shape are shown. gdb 13 and later set "summary" while they print a backtrace.
        short = getattr(gdb, "print_options", dict)().get("summary", False)
        if short and name in ("masquerade::Tensor", "masquerade::View"):
            return head_of(self.value)
        return LINES[name](self.value)


def masquerade(value):
    return OneLine(value) if type_name(value) in LINES else None


gdb.pretty_printers.insert(0, masquerade)


def object_of(value):
    """Follows pointers and references, and returns the object."""
    while value.type.strip_typedefs().code in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        value = value.referenced_value()
    return value


def frames():
    """Iterates over the selected frame and its callers, each with its name."""
    frame = gdb.selected_frame()
    while frame is not None:
        yield frame, frame.name() or ""
        frame = frame.older()


def tape():
    """Returns the Tape that runs in the selected frame or in one of its callers."""
    for frame, name in frames():
        if name.startswith("masquerade::Tape::"):
            return object_of(frame.read_var("this"))
    raise gdb.GdbError("no tape on the stack; stop inside a forward or backward of an op (gradstep)")


def running_record():
    """Returns the record that runs in the selected frame or in one of its callers. (Tape::records() contains it only
    after its forward.)"""
    for frame, name in frames():
        for place, variable in ((r"record_(forward|backward)\b", "r"), ("^masquerade::Tape::", "record")):
            if re.search(place, name):
                try:
                    return object_of(frame.read_var(variable))
                except ValueError:  # this frame has no such variable
                    pass
    return None


def find_tensor(path):
    running = running_record()
    for record in items_of(tape()["records_"]) + ([] if running is None else [running]):
        for pointer in items_of(record["out"]) + items_of(record["in"]):
            if int(pointer) and text_of(pointer["path"]) == path:
                return pointer.dereference()
    raise gdb.GdbError("no tensor %s on the tape; `program` lists what there is" % path)


class TensorCommand(gdb.Command):
    """tensor EXPRESSION or tensor PATH: shape, type and numbers of a Tensor, View or Grad.
The expression is one of the selected frame: tensor dy, tensor *x, tensor r.out[0].
A path names a tensor of the tape on the stack: tensor decoder.layer.0.norm1"""

    def __init__(self):
        super().__init__("tensor", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        argument = argument.strip()
        if not argument:
            raise gdb.GdbError("tensor EXPRESSION or tensor PATH")
        try:
            value = object_of(gdb.parse_and_eval(argument))
        except gdb.error as problem:
            if not re.fullmatch(r"[\w.]+", argument):
                raise gdb.GdbError(str(problem))
            value = find_tensor(argument)
        name = type_name(value)
        if name == "masquerade::Grad":
            print("add to" if value["add"] else "store into")
            value, name = value["view"], "masquerade::View"
        if name == "masquerade::View":
            print("%s\n  %s" % (head_of(value), summary_of(value, value["data"])))
        elif name == "masquerade::Tensor":
            print(head_of(value))
            print("  value     " + summary_of(value, value["value"]))
            print("  gradient  " + summary_of(value, value["grad"]))
        else:
            raise gdb.GdbError("%s is a %s; expected a Tensor, View or Grad" % (argument, name))


def tensor_of_backward(frame):
    """Returns the first View argument of a cpu::*_backward, which is the gradient of the op's output; None if there is
    none."""
    block = frame.block()
    while block is not None and block.function is None:
        block = block.superblock
    arguments = [frame.read_var(symbol) for symbol in block or () if symbol.is_argument]
    return next((value for value in arguments if type_name(value) == "masquerade::View"), None)


class BackwardStop(gdb.Breakpoint):
    """A breakpoint on the backward of one op on the CPU. Enabled only while gradstep runs."""
    wanted = "*"

    def __init__(self, function):
        super().__init__(function, internal=True, qualified=True)
        self.silent = True
        self.enabled = False

    def stop(self):
        view = tensor_of_backward(gdb.newest_frame())
        return view is None or fnmatch.fnmatch(text_of(view["path"]), BackwardStop.wanted)


class GradStep(gdb.Command):
    """gradstep [PATTERN]: run to the next backward of an op, in masquerade::cpu.
With a pattern (decoder.layer.3.*, * any run of characters) to the next one whose output has such a path."""

    def __init__(self):
        super().__init__("gradstep", gdb.COMMAND_RUNNING)
        self.stops = []

    def invoke(self, argument, from_tty):
        if not self.stops:
            found = gdb.execute("info functions -q ^masquerade::cpu::[a-z_]*_backward", to_string=True)
            names = sorted(set(re.findall(r"masquerade::cpu::\w+_backward(?=\()", found)))
            if not names:
                raise gdb.GdbError("no masquerade::cpu::*_backward here; build the program with make debug")
            self.stops = [BackwardStop(name) for name in names]
        BackwardStop.wanted = argument.strip() or "*"
        for stop in self.stops:
            stop.enabled = True
        try:
            report = gdb.execute("continue" if gdb.selected_inferior().pid else "run", to_string=True)
        finally:
            for stop in self.stops:
                if stop.is_valid():
                    stop.enabled = False
        if not gdb.selected_inferior().pid:
            print("the program ended" + (" before a backward of " + BackwardStop.wanted if argument else ""))
            return
        frame = gdb.newest_frame()
        if not re.fullmatch(r"masquerade::cpu::\w+_backward", frame.name() or ""):
            print(report.strip())  # the program stopped for another reason: a breakpoint, a signal, an exception
            return
        view = tensor_of_backward(frame)
        where = frame.find_sal()
        place = "%s:%d" % (where.symtab.filename, where.line) if where.symtab else ""
        op = frame.name().split("::")[-1]
        name = "(optimised: no arguments; make debug has them)"
        if view is not None:
            name = text_of(view["path"]) + " " + shape_text(view["shape"])
        print("%s  %s    %s" % (op, name, place))


class RunTo(gdb.Command):
    """runto TEXT: run to the next line of this file that holds TEXT, as `runto ds =`; behind the current line if there is one."""

    def __init__(self):
        super().__init__("runto", gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        here = gdb.selected_frame().find_sal()
        if not argument.strip() or here.symtab is None:
            raise gdb.GdbError("runto TEXT: needs a text, and a frame whose source is known")
        with open(here.symtab.fullname(), encoding="utf-8") as source:
            found = [n for n, line in enumerate(source, 1) if argument.strip() in line]
        if not found:
            raise gdb.GdbError("no line of %s holds `%s`" % (here.symtab.filename, argument.strip()))
        behind = [n for n in found if n > here.line]
        gdb.execute("tbreak %s:%d" % (here.symtab.filename, (behind or found)[0]), to_string=True)
        gdb.execute("continue")


class ProgramCommand(gdb.Command):
    """program: the records of the tape on the stack, one line each; an arrow marks the one that runs."""

    def __init__(self):
        super().__init__("program", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        record = running_record()
        running = "" if record is None else text_of(record["path"])
        for number, record in enumerate(items_of(tape()["records_"])):
            mark = "->" if text_of(record["path"]) == running else "  "
            print("%s #%03d %s" % (mark, number, record_line(record)))


class MaskCommand(gdb.Command):
    """mask GRAPH [DOCUMENT]: draws what the rows of a document (0) of a SegmentGraph see:
mask graph in attention_backward. Rows are queries, columns keys."""

    def __init__(self):
        super().__init__("mask", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        words = argument.split()
        if not words:
            raise gdb.GdbError("mask GRAPH [DOCUMENT]")
        graph = object_of(gdb.parse_and_eval(words[0]))
        if type_name(graph) != "masquerade::SegmentGraph":
            raise gdb.GdbError("%s is a %s; expected a SegmentGraph" % (words[0], type_name(graph)))
        print(mask.picture(graph, int((words + ["0"])[1])))


class Named(FrameDecorator):
    """Shows a frame under its name without template arguments."""

    def function(self):
        name, before = (self.inferior_frame().name() or "?").replace("(anonymous namespace)::", ""), None
        while name != before:
            name, before = re.sub(r"<[^<>]*>", "", name), name
        return name


class WithoutDispatch:
    """Hides the frames that choose device, type and thread from backtraces; `backtrace -no-filters` shows them."""
    name, enabled, priority = "masquerade", True, 100
    dispatch = ("engine/ops/table.h", "engine/ops/launch.h", "engine/ops/calls.h", "engine/ops/cpu/parallel.h",
                "engine/ops/cpu/parallel.cpp")

    def __init__(self):
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        for frame in frames:
            place = frame.inferior_frame().find_sal().symtab
            if place is None or not place.filename.endswith(self.dispatch):
                yield Named(frame)


# `step` skips small helper functions, so that it goes from one line of a formula to the next.
PASSED_OVER = ["*engine/math/lanes.h", "*engine/math/scalar.h", "*engine/ops/check.h", "*engine/tensor/*.h",
               "*engine/base/error.h", "/usr/include/c++/*", "/usr/include/c++/*/bits/*"]

for files in PASSED_OVER:
    gdb.execute("skip -gfi " + files, to_string=True)
TensorCommand()
GradStep()
RunTo()
ProgramCommand()
MaskCommand()
WithoutDispatch()
