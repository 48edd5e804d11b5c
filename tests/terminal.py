# SPDX-License-Identifier: MIT
# terminal.py COLUMNS WHEN,ACTION,... COMMAND...: runs a command on a terminal with so many columns. Prints all that the
# command wrote there, then a line with its status. Each WHEN is a text. Once the command has written this text, the
# ACTION after it in the list happens, and the next WHEN must come later in the output. Actions: "press N" (Ctrl-C N
# times, 50 ms apart), or "columns N".
import fcntl, os, pty, signal, struct, sys, termios, time

columns, steps, command = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
steps = list(zip(steps[::2], steps[1::2]))
pid, master = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(command[0], command)


def resize(n):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, n, 0, 0))


resize(columns)
written, begin = b"", 0
while True:
    try:
        some = os.read(master, 4096)
    except OSError:  # the other end is closed
        break
    if not some:
        break
    written += some
    while steps and written.find(steps[0][0].encode(), begin) >= 0:
        when, action = steps.pop(0)
        begin = written.find(when.encode(), begin) + len(when)
        word, n = action.split()
        if word == "columns":
            resize(int(n))
            continue
        for i in range(int(n)):
            if i > 0:
                time.sleep(0.05)
            try:
                os.kill(pid, signal.SIGINT)
            except ProcessLookupError:
                pass
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(written)
print("\nstatus", 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
