"""How long a full screen takes to appear, and what it costs while nothing happens.

    screen.py BINARY RUNS SECONDS SESSIONS

Prints the median nanoseconds from the start of `tongs-agents monitor` to its
first whole screen, the same from the start of `ls -l` on the same directory to its
last byte, both on a terminal and taking turns, and the nanoseconds of processor
time of an idle monitor in so many seconds. The store is that of the environment.
"""

import os
import pty
import statistics
import sys
import time

WHOLE = b"\x1b[?2026l"


def start(words):
    begin = time.monotonic_ns()
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.execvpe(words[0], words, {**os.environ, "TERM": "xterm"})
        finally:
            os._exit(127)
    return begin, pid, fd


def read(fd):
    try:
        return os.read(fd, 65536)
    except OSError:  # the other end is closed
        return b""


def end(pid, fd):
    os.close(fd)
    if os.waitpid(pid, 0)[1] not in (0, 1):  # SIGHUP where it was not asked to end
        raise SystemExit("screen.py: the program failed")


def screen(binary):
    begin, pid, fd = start([binary, "agents", "monitor"])
    seen = b""
    while WHOLE not in seen:
        got = read(fd)
        if not got:
            raise SystemExit("screen.py: the monitor ended: " + seen.decode(errors="replace"))
        seen += got
    took = time.monotonic_ns() - begin
    os.write(fd, b"q")
    while read(fd):
        pass
    end(pid, fd)
    return took


def listing(directory):
    begin, pid, fd = start(["ls", "-l", directory])
    while read(fd):
        pass
    took = time.monotonic_ns() - begin
    end(pid, fd)
    return took


def idle(binary, seconds):
    _, pid, fd = start([binary, "agents", "monitor"])
    seen = b""
    while WHOLE not in seen:
        seen += read(fd)

    def spent():
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0])

    before = spent()
    time.sleep(seconds)
    after = spent()
    os.write(fd, b"q")
    while read(fd):
        pass
    end(pid, fd)
    return after - before


def main():
    binary, runs, seconds, sessions = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    screens, listings = [], []
    for _ in range(runs):
        screens.append(screen(binary))
        listings.append(listing(sessions))
    print(int(statistics.median(screens)), int(statistics.median(listings)), idle(binary, seconds))


main()
