"""Runs a program, and waits for all the processes that it leaves behind.

In the folder of the argument, `command` has its words, a line each: a driver that finds its name among the arguments of
another process takes that for a race. `core_s` has the core time of all the processes afterwards, in seconds.
"""
import ctypes
import os
import resource
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36
SECONDS_MAX = 900


def end_all(*_):
    """Children of what is killed become ours: the next signal kills them."""
    signal.alarm(1)
    with open(f"/proc/self/task/{os.getpid()}/children") as children:
        for pid in children.read().split():
            os.kill(int(pid), signal.SIGKILL)


folder = sys.argv[1]
with open(f"{folder}/command") as command:
    program = command.read().splitlines()
# The drivers' actors outlive whoever started them: they become children of this process, so that it sees their times.
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
signal.signal(signal.SIGALRM, end_all)
signal.alarm(SECONDS_MAX)
status = subprocess.call(program)
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(f"{folder}/core_s", "w") as file:
    file.write(str(used.ru_utime + used.ru_stime))
sys.exit(status)
