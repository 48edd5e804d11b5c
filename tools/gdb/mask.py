# SPDX-License-Identifier: MIT
# Reads a SegmentGraph (engine/ops/segments.h) of a stopped program, and draws the mask of a document. gdb cannot let the
# program draw it: gdb 13 calls no function of a process on a processor with AMX. tests/gdb_masks.py compares the result
# with the program's own pictures, for all masks.
from types import SimpleNamespace

PAGE, LABEL = 80, 11    # columns of a picture, and columns of the label at the start of each line
KEYS = "klmn"           # letters of the key tensors 0 to 3


def items_of(vector):
    """Returns the elements of a std::vector."""
    start, finish = vector["_M_impl"]["_M_start"], vector["_M_impl"]["_M_finish"]
    return [start[i] for i in range(int(finish - start))]


def numbers_of(struct):
    """Returns the fields of a struct of numbers, with those that it inherits."""
    numbers = {}
    for field in struct.type.strip_typedefs().fields():
        numbers |= vars(numbers_of(struct[field])) if field.is_base_class else {field.name: int(struct[field])}
    return SimpleNamespace(**numbers)


class Graph:
    """A copy of a SegmentGraph. visible() is engine/ops/visible.h, line by line."""

    def __init__(self, graph):
        self.keys, self.queries = ([numbers_of(s) for s in items_of(graph[name])] for name in ("keys", "queries"))
        self.sees, self.query_rank, self.key_rank, self.bits = (
            [int(n) for n in items_of(graph[name])] for name in ("sees", "query_rank", "key_rank", "bits"))
        rules = graph["queries"].type.strip_typedefs().template_argument(0).fields()
        kinds = next(field.type for field in rules if field.name == "rule")
        self.rules = {int(field.enumval): field.name.split("::")[-1] for field in kinds.fields()}

    def pattern_allows(self, q, row, segment, j):
        key, own = self.keys[segment], self.keys[q.self].place if q.self >= 0 else 0
        i = q.offset + row - q.begin
        if q.along:
            query, place, middle = own + i, key.place + j, own + i
        else:
            query, place, middle = i, key.before + j, i + own - (key.place - key.before)
        apart = abs(middle - place)
        if query < q.globals or place < q.globals:
            return True
        if q.window >= 0 and apart <= q.window * q.dilation and apart % q.dilation == 0:
            return True
        if q.window >= 0 and q.stride > 0 and apart % q.stride == 0:
            return True
        if q.block <= 0:
            return False
        back = middle // q.block - place // q.block
        return 0 <= back <= q.block_before or place % q.block >= q.block - q.block_last

    def visible(self, q, row, segment, key_row):
        key, own = self.keys[segment], segment == q.self
        i, j, rule = q.offset + row - q.begin, key_row - key.begin, self.rules[q.rule]
        if (q.window >= 0 or q.block > 0) and (own or q.window_all or q.along):
            if not self.pattern_allows(q, row, segment, j):
                return False
        if not own:
            return True
        if rule == "rank":
            return self.key_rank[key_row] <= self.query_rank[row]
        if rule == "strict_rank":
            return self.key_rank[key_row] < self.query_rank[row]
        if rule == "bits":
            bit = q.bits_begin + (row - q.begin) * (key.end - key.begin) + j
            return bool(self.bits[bit // 32] >> bit % 32 & 1)
        return {"none": False, "causal": j <= i, "strict_causal": j < i, "anticausal": j >= i}.get(rule, True)

    def seen(self, document):
        """Returns the rows of a document; for each row, the set of the (key tensor, row) that it sees; and all keys."""
        rows, keys = {}, set()
        for q in self.queries:
            for row in range(q.begin, q.end) if q.document == document else ():
                mine = rows.setdefault(row, set())
                for segment in self.sees[q.sees_begin:q.sees_end]:
                    key = self.keys[segment]
                    for key_row in range(key.begin, key.end):
                        keys.add((key.source, key_row))
                        if self.visible(q, row, segment, key_row):
                            mine.add((key.source, key_row))
        return rows, sorted(keys)


def picture(graph, document):
    """Draws the mask of a document: rows are queries (q7 is row 7), columns keys (k, l, m and n are tensors 0 to 3)."""
    rows, keys = Graph(graph).seen(document)
    width = min(3, (PAGE - LABEL) // max(1, len(keys)))
    if width < 1:
        return "a picture of %d keys does not fit %d columns; at most %d" % (len(keys), PAGE, PAGE - LABEL)
    lines = [" " * LABEL + "".join(KEYS[source].ljust(width) for source, _ in keys),
             " " * LABEL + "".join(str(row)[-min(2, width):].ljust(width) for _, row in keys)]
    for row, seen in rows.items():
        marks = (("█" * min(width, 2) if key in seen else "·").ljust(width) for key in keys)
        lines.append(("q%d" % row).ljust(LABEL) + "".join(marks))
    return "\n".join(line.rstrip() for line in lines)
