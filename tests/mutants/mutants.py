#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants errors one at a time and demands that a test fails: `make mutants ONLY='tape*'`.

The lists are the text files beside this one; README.md says how they are written. All errors of the list are compiled
into one test program, in a copy of the tracked files under build/mutants; an environment variable turns one on.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'build' / 'mutants'
TREE = FOLDER / 'tree'
HEADER = '#include "tests/mutants/mutant.h"\n'
FIELDS = ('name', 'in', '-', '+', 'tests', 'equivalent', 'why')


class Mistake(Exception):
    """Tells what is wrong with a list; all of them are printed at once."""


class Mutant:
    def __init__(self, file, fields, where):
        self.file, self.where = file, where
        self.name = fields.get('name', '')
        self.old, self.new = fields.get('-', '').strip(), fields.get('+', '').strip()
        self.context = fields.get('in', '').strip()
        self.why, self.equivalent = fields.get('why', ''), fields.get('equivalent', '')
        self.tests = tuple(t.strip() for t in fields.get('tests', '').split('|') if t.strip())
        if not self.tests:
            self.tests = (tests_of_folder(file),)
        # The number is a hash of the name. A new entry therefore changes no other number, and compiled files stay as
        # they are.
        self.number = zlib.crc32(self.name.encode()) or 1

    @property
    def statement(self):
        return self.old.endswith(';') or (self.old.endswith('}') and re.match(r'(if|for|while|do)\b', self.old) is not None)

    @property
    def choice(self):
        return f'mutant({self.number}u)'


def tests_of_folder(file):
    parts = file.split('/')
    return f'tests/{parts[1] if parts[0] == "engine" else parts[0]}/'


# ---- the lists ------------------------------------------------------------------------------------------------------
def read_list(path):
    """Yields the errors of one list: blocks of `key: text` lines, parted by empty lines; `file:` holds until the next."""
    file, fields, start = '', {}, 0
    for number, line in enumerate(path.read_text().splitlines() + [''], 1):
        where = f'{path.relative_to(ROOT)}:{number}'
        if not line.strip():
            if fields:
                yield Mutant(file, fields, f'{path.relative_to(ROOT)}:{start}')
            fields = {}
            continue
        if line.startswith('#'):
            continue
        key, text = (line[0], line[1:].strip()) if line[0] in '-+' else map(str.strip, (line + ':').split(':', 1))
        text = text[:-1] if line[0] not in '-+' else text
        if key == 'file':
            file = text
        elif key not in FIELDS or (key in fields and key not in '-+'):
            raise Mistake(f'{where}: "{line}" is no line of an entry; there are {", ".join(("file",) + FIELDS)}')
        else:
            start = start if fields else number
            fields[key] = (fields[key] + '\n' + text) if key in fields else text


def whole_expression(text):
    if re.match(r'\{|(if|for|while|do|return|const|auto)\b', text):
        return False
    depth = unanswered = 0
    text = re.sub(r'<[\w\s:,*<>]*>', '', text)  # removes template arguments
    for sign in re.sub(r"'(\\.|.)'|\"(\\.|[^\"])*\"", '0', text).replace('::', ''):
        depth += (sign in '([{') - (sign in ')]}')
        if depth == 0:
            unanswered += (sign == '?') - (sign == ':')
        if depth < 0 or unanswered < 0 or (sign == ',' and depth == 0):
            return False
    return depth == unanswered == 0 and re.search(r'[-+*/%&|<=?:,]$', text) is None


def read_lists():
    mutants = [m for path in sorted(pathlib.Path(__file__).parent.glob('*.txt')) for m in read_list(path)]
    mistakes, names, numbers = [], {}, {}
    for m in mutants:
        for key, value in (('name', m.name), ('file', m.file), ('- (the old text)', m.old), ('why', m.why)):
            if not value:
                mistakes.append(f'{m.where}: {m.name} has no line {key}')
        if m.name in names:
            mistakes.append(f'{m.where}: the name {m.name} is taken by {names[m.name]}')
        elif m.number in numbers:
            mistakes.append(f'{m.where}: {m.name} and {numbers[m.number]} have one number: rename one')
        names[m.name], numbers[m.number] = m.where, m.name
        if not m.new and not m.statement:
            mistakes.append(f'{m.where}: {m.name} has no new text, and only a statement can be left out')
        if m.statement and re.match(r'(const|auto|bool|int|float|double|std::\w+) [^(]*=', m.old):
            mistakes.append(f'{m.where}: {m.name}: a declaration cannot be replaced: take what stands behind its =')
        for text in () if m.statement else (m.old, m.new):
            if not whole_expression(text):
                mistakes.append(f'{m.where}: {m.name}: no whole expression, by its first word, brackets, ?: or a comma: {text}')
    if mistakes:
        raise Mistake('\n'.join(mistakes))
    return mutants


# ---- places in a file -----------------------------------------------------------------------------------------------
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|\w+|\S')


def spans(needle, text):
    """Every place of the tokens of `needle` in `text`. Spaces and line ends between two tokens do not count."""
    tokens = TOKEN.findall(needle)
    pattern = re.escape(tokens[0])
    for before, after in zip(tokens, tokens[1:]):
        pattern += (r'\s+' if re.match(r'\w', before[-1]) and re.match(r'\w', after[0]) else r'\s*') + re.escape(after)
    # If the text begins or ends with a word, it matches only whole words there.
    pattern = (r'\b' if re.match(r'\w', needle) else '') + pattern + (r'\b' if re.match(r'\w', needle[-1]) else '')
    pattern = re.compile(pattern)
    found, at = [], 0
    while (match := pattern.search(text, at)) is not None:
        found.append(match.span())
        at = match.start() + 1
    return found


def place(mutant, text):
    begin, end = 0, len(text)
    if mutant.context:
        found = spans(mutant.context, text)
        if len(found) != 1:
            raise Mistake(f'{mutant.where}: {mutant.name}: {len(found)} times in {mutant.file}: {mutant.context}')
        begin, end = found[0]
    found = spans(mutant.old, text[begin:end])
    if len(found) != 1:
        inside = 'the text after `in:`' if mutant.context else mutant.file
        raise Mistake(f'{mutant.where}: {mutant.name}: {len(found)} times in {inside}, not once: {mutant.old}')
    begin, end = begin + found[0][0], begin + found[0][1]
    before = re.sub(r'//[^\n]*(?=\n|$)', '', text[:begin][-2000:]).rstrip()
    if mutant.statement and not re.search(r'([;{}):]|\belse|\bdo)$', before):
        raise Mistake(f'{mutant.where}: {mutant.name}: no statement begins there in {mutant.file}: {mutant.old}')
    return begin, end


def known_files(*patterns):
    """The names of the files that git knows or would add, all or those of the patterns."""
    listed = subprocess.run(['git', 'ls-files', '-z', '-co', '--exclude-standard', *patterns], cwd=ROOT, check=True,
                            stdout=subprocess.PIPE).stdout.decode().split('\0')
    return {f for f in listed if f and (ROOT / f).is_file()}


def sources():
    """The text of every source file, by name."""
    return {f: (ROOT / f).read_text() for f in known_files('*.h', '*.cpp', '*.cu', '*.cuh') if not f.startswith('tests/')}


def find(mutant, texts):
    """The file and the place of an error: its file if that holds the text, else the one file that does."""
    sought, file = mutant.context or mutant.old, mutant.file
    if not spans(sought, texts.get(file, '')):
        holding = [name for name, text in texts.items() if spans(sought, text)]
        if len(holding) != 1:
            raise Mistake(f'{mutant.where}: {mutant.name}: not in {file}, and in {len(holding)} other files: {sought}')
        file = holding[0]
    return file, place(mutant, texts[file])


def place_all(mutants):
    """The places of each file: {file: [(begin, end, [mutants of that very place])]}, or Mistake with all that is wrong."""
    files, mistakes, texts = {}, [], sources()
    for m in mutants:
        try:
            m.file, span = find(m, texts)
            files.setdefault(m.file, {}).setdefault(span, []).append(m)
        except Mistake as mistake:
            mistakes.append(str(mistake))
    for places in files.values():
        order = sorted(places, key=lambda span: (span[0], -span[1]))
        for i, (begin, end) in enumerate(order):
            for other in order[i + 1:]:
                if other[0] < end < other[1]:
                    one, two = places[begin, end][0], places[other][0]
                    mistakes.append(f'{two.where}: {two.name} and {one.name} overlap; one must hold the other')
    if mistakes:
        raise Mistake('\n'.join(mistakes))
    return {file: sorted((b, e, list_) for (b, e), list_ in places.items()) for file, places in files.items()}


def rewrite(text, places):
    """`text` with a choice at each place. A place within another is rewritten inside the right code of the outer one."""
    def within(begin, end, rest):
        out, at = '', begin
        while rest:
            (b, e, mutants), rest = rest[0], rest[1:]
            inner = [p for p in rest if p[0] >= b and p[1] <= e]
            rest = [p for p in rest if p not in inner]
            out += text[at:b] + choose(mutants, within(b, e, inner))
            at = e
        return out + text[at:end]
    return HEADER + within(0, len(text), sorted(places, key=lambda p: (p[0], -p[1])))


def choose(mutants, old):
    if mutants[0].statement:
        return '{ ' + ''.join(f'if ({m.choice}) {{ {m.new} }} else ' for m in mutants) + f'{{ {old} }} }}'
    return '(' + ''.join(f'{m.choice} ? ({m.new}) : ' for m in mutants) + f'({old}))'


# ---- the copy and its test program ----------------------------------------------------------------------------------
def put(path, data, like=None):
    """Writes a file only where its contents differ, so that nothing is compiled twice."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    if like is not None:
        shutil.copystat(like, path)


def copy_tree(places):
    files = known_files()
    fresh = not TREE.exists()
    TREE.mkdir(parents=True, exist_ok=True)
    for file in files:
        data = (ROOT / file).read_bytes()
        if file in places:
            put(TREE / file, rewrite(data.decode(), places[file]).encode())
        else:
            # A file that once held an error must look new, so that it is compiled again. Only the first copy keeps the
            # times of files.
            put(TREE / file, data, ROOT / file if fresh else None)
            if fresh or os.access(ROOT / file, os.X_OK):
                shutil.copymode(ROOT / file, TREE / file)
    for path in [p for p in TREE.rglob('*') if p.is_file()]:
        name = str(path.relative_to(TREE))
        if name not in files and not name.startswith('build/'):
            path.unlink()
    if fresh and (ROOT / 'build/release/obj').is_dir():  # takes what is compiled already
        print('mutants: starts from the objects in build/release', flush=True)
        skip = lambda folder, names: [n for n in names if folder.endswith('release') and n not in
                                      ('obj', 'fibers', 'flags', 'library.list', 'tests.list') and '_cuda.' not in n]
        shutil.copytree(ROOT / 'build/release', TREE / 'build/release', symlinks=True, ignore=skip)
        if (ROOT / 'build/units').is_dir():  # with their times: a unit that looks new is compiled again
            shutil.copytree(ROOT / 'build/units', TREE / 'build/units')
        for name in ('library_folder', 'compilers', 'config.mk'):
            shutil.copy2(ROOT / 'build' / name, TREE / 'build' / name)


def build(arguments):
    variables = {k: v for k, v in os.environ.items() if k not in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL', 'MAKEOVERRIDES')}
    command = ['make', '-C', str(TREE), '-k', f'-j{arguments.jobs}', 'NVCC=none', *arguments.make, 'test-program',
               'all']  # the programs, which some tests run
    if subprocess.run(command, env=variables).returncode != 0:
        sys.exit('mutants: the test program with the planted errors does not compile')


# ---- running --------------------------------------------------------------------------------------------------------
class Outcome:
    def __init__(self, status, output, seconds):
        self.status, self.output, self.seconds = status, output, seconds

    @property
    def reason(self):
        if self.status is None:
            return 'hangs'
        found = re.search(r'TEST CASE:\s*(.*)', self.output)
        return found.group(1).strip() if found else f'ends with status {self.status}'


def filters(tests):
    """The options of doctest: the cases of folders and files, and those with the names; each is a run of its own."""
    hide = lambda text: re.sub(r'[,\\"]', '?', text)  # characters with a meaning for doctest
    paths = [t for t in tests if t.startswith('tests/')]
    names = [t for t in tests if not t.startswith('tests/')]
    return (['--test-case=' + ','.join(map(hide, names))] if names else []) + \
           (['--source-file=' + ','.join(f'*{p}*' for p in paths)] if paths else [])


def run(tests, number, limit, folder):
    start = time.monotonic()
    temporary = FOLDER / 'tmp' / folder
    temporary.mkdir(parents=True, exist_ok=True)
    variables = dict(os.environ, MASQUERADE_MUTANT=str(number), TMPDIR=str(temporary))
    status, output = 0, ''
    for option in filters(tests):
        process = subprocess.Popen([str(TREE / 'build/release/tests'), option, '--abort-after=1', '--no-colors=1'],
                                   cwd=TREE, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            told, _ = process.communicate(timeout=max(1.0, limit - (time.monotonic() - start)))
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            told, _ = process.communicate()
            status = None
        output += told.decode(errors='replace')
        if status != 0:
            break
    shutil.rmtree(temporary, ignore_errors=True)
    return Outcome(status, output, time.monotonic() - start)


def in_parallel(jobs, work, items):
    """Yields (item, result) as they end."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(work, item): item for item in items}
        try:
            for done in concurrent.futures.as_completed(waiting):
                yield waiting[done], done.result()
        except BaseException:
            for left in waiting:
                left.cancel()
            raise


def run_unmutated(mutants, jobs):
    """Seconds of every selection without an error; each must pass, and each of its patterns must name a case."""
    wrong = []
    for test in sorted({t for m in mutants for t in m.tests}):
        listed = subprocess.run([str(TREE / 'build/release/tests'), *filters((test,)), '--list-test-cases'], cwd=TREE,
                                stdout=subprocess.PIPE).stdout.decode().splitlines()
        if not any(line and not line.startswith(('[doctest]', '===')) for line in listed):
            wrong += [f'{m.where}: {m.name}: no test case is named {test}' for m in mutants if test in m.tests]
    if wrong:
        sys.exit('\n'.join(wrong))
    seconds = {}
    selections = sorted({m.tests for m in mutants})
    for tests, outcome in in_parallel(jobs, lambda t: run(t, 0, 600, f'plain{selections.index(t)}'), selections):
        seconds[tests] = outcome.seconds
        if outcome.status != 0:
            wrong.append(f'mutants: fails without a planted error: {" | ".join(tests)}\n{outcome.output}')
    if wrong:
        sys.exit('\n'.join(wrong))
    return seconds


def run_mutants(mutants, places, jobs):
    start = time.monotonic()
    seconds = run_unmutated(mutants, jobs)
    print(f'mutants: {len(seconds)} selections pass without an error, {time.monotonic() - start:.0f} s', flush=True)
    lines = {m.name: (ROOT / file).read_text().count('\n', 0, begin) + 1
             for file, list_ in places.items() for begin, _, at in list_ for m in at}
    killed, survived, equivalent, wrong = 0, [], 0, []
    work = lambda m: run(m.tests, m.number, 20 + 10 * seconds[m.tests], m.name)
    for m, outcome in in_parallel(jobs, work, mutants):
        place_text = f'{m.file}:{lines[m.name]} {m.name}'
        if outcome.status != 0:
            killed += 1
            print(f'killed      {place_text}  <- {outcome.reason}', flush=True)
            if m.equivalent:
                wrong.append(m)
        elif m.equivalent:
            equivalent += 1
            print(f'equivalent  {place_text}: {m.equivalent}', flush=True)
        else:
            survived.append(m)
            print(f'SURVIVED    {place_text}: {m.why}', flush=True)
    for m in wrong:
        print(f'{m.where}: {m.name} is named equivalent, and a test catches it')
    if survived:
        print('survivors:\n' + '\n'.join(f'  {m.where}: {m.name}, tests: {" | ".join(m.tests)}' for m in survived))
    print(f'{killed} killed, {len(survived)} survived, {equivalent} equivalent, {time.monotonic() - start:.0f} s')
    return 1 if survived or wrong else 0


def main():
    parser = argparse.ArgumentParser(description='plants errors and demands that a test fails')
    parser.add_argument('--only', default='', help='patterns of names and files, parted by spaces')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--check', action='store_true', help='only reads the lists and looks for every old text')
    parser.add_argument('--show', action='store_true', help='prints the rewritten files that the pattern names')
    parser.add_argument('make', nargs='*', help='variables for make')
    arguments = parser.parse_args()
    try:
        mutants = read_lists()
        places = place_all(mutants)
    except Mistake as mistake:
        sys.exit(f'{mistake}\nmutants: the list and the sources do not agree')
    if arguments.check:
        return 0
    wanted = arguments.only.split() or ['*']
    chosen = [m for m in mutants if any(fnmatch.fnmatch(t, w) for t in (m.name, m.file) for w in wanted)]
    if not chosen:
        sys.exit(f'mutants: no name and no file fits {arguments.only}')
    if arguments.show:
        for file in sorted({m.file for m in chosen}):
            print(f'==== {file}\n{rewrite((ROOT / file).read_text(), places[file])}')
        return 0
    copy_tree(places)
    build(arguments)
    return run_mutants(chosen, places, arguments.jobs)


if __name__ == '__main__':
    sys.exit(main())
