# SPDX-License-Identifier: MIT
# launch.py [FILE]: starts every configuration of .vscode/launch.json (or of FILE) as the C++ extension of VS Code does:
# first the preLaunchTask; then gdb in MI mode, in the folder of the program; then the setupCommands, still in that
# folder; then cwd, program, arguments and breakpoints. The program must stop in the backward of a norm, and gdb must
# show the tensors there with names and numbers. If WALKS is set, make says only that the preLaunchTask would make the
# program, and the program of the same name in this folder (of `make walks`) is started instead.
import json
import os
import re
import subprocess
import sys

STOPS = ["masquerade::cpu::layernorm_backward", "masquerade::cpu::residual_norm_backward"]
WALKS = os.path.abspath(os.environ["WALKS"]) if os.environ.get("WALKS") else None
SHOWN = r"[\w.]+ \([\d,]+\) (f32|bf16|f64) \[-?\d.*"


class Gdb:
    def __init__(self, folder):
        self.process = subprocess.Popen(["gdb", "--interpreter=mi", "--tty=/dev/null"], cwd=folder, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def until(self, start):
        for line in self.process.stdout:
            if line.startswith(start):
                return line.strip().replace('\\"', '"')
        sys.exit("gdb ended")

    def type(self, command):
        print(command, file=self.process.stdin, flush=True)
        answer = self.until("^")
        assert not answer.startswith("^error"), "gdb refuses `%s`: %s" % (command, answer)
        return answer


def replay(name, program, cwd, args=(), setupCommands=(), preLaunchTask=None, **others):
    tasks = [t["command"] for t in json.load(open(".vscode/tasks.json"))["tasks"] if t["label"] == preLaunchTask]
    assert tasks or not preLaunchTask, "tasks.json has no task `%s`" % preLaunchTask
    for task in tasks:
        if WALKS:
            said = subprocess.run(task + " -n", shell=True, stdout=subprocess.PIPE, text=True).stdout
            assert os.path.relpath(program) in said, "its task does not make the program: " + task
        else:
            assert subprocess.call(task, shell=True, stdout=subprocess.DEVNULL) == 0, "its task fails: " + task
    if WALKS:
        program = os.path.join(WALKS, os.path.basename(program))
    assert os.access(program, os.X_OK), "no program " + program
    gdb = Gdb(os.path.dirname(program))
    gdb.type("-gdb-set mi-async on")
    for text in [setup["text"] for setup in setupCommands]:
        gdb.type(text if text.startswith("-") else '-interpreter-exec console "%s"' % text.replace('"', '\\"'))
    for command in ['-environment-cd "%s"' % cwd, '-file-exec-and-symbols "%s"' % program, "-exec-arguments " + " ".join(args)]:
        gdb.type(command)
    for command in ["-break-insert -f " + stop for stop in STOPS] + ["-exec-run"]:
        gdb.type(command)
    stopped = gdb.until("*stopped")
    at = re.search(r'func="([\w:]+)".*fullname="([^"]+)",line="(\d+)"', stopped)
    assert at and at[1] in STOPS and os.path.exists(at[2]), "stops elsewhere, or in a file that is not here: " + stopped
    names = re.findall(r'name="(\w+)"', gdb.type("-stack-list-variables --simple-values"))
    shown = {name: re.search(r'value="(.*)",type="(.*?)"', gdb.type("-var-create - * " + name)) for name in names}
    views = [name for name in names if shown[name][2] == "masquerade::View"]
    for name in views:
        assert re.fullmatch(SHOWN, shown[name][1]), "the tensor %s is shown as %s" % (name, shown[name][1])
    assert "dy" in views, "no tensor dy among " + " ".join(names)
    gdb.type("-gdb-exit")
    return "%s:%s  dy = %s" % (os.path.relpath(at[2]), at[3], shown["dy"][1])


text, faults = open(sys.argv[1] if len(sys.argv) > 1 else ".vscode/launch.json").read(), 0
for configuration in json.loads(text.replace("${workspaceFolder}", os.getcwd()))["configurations"]:
    try:
        print("launch.json: `%s`: %s" % (configuration["name"], replay(**configuration)))
    except Exception as fault:
        print(".vscode/launch.json: `%s`: %s" % (configuration.get("name"), fault or repr(fault)))
        faults += 1
sys.exit(faults > 0)
