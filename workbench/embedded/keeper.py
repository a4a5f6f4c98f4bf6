"""Keeps one embedded server alive while anybody uses it. A program of its own, standard library only.

Started detached by `shared.SharedServer` with a JSON description as its argument; it is the server's parent, so the
server outlives the command that happened to start it. It polls an exclusive lock on the users' file: the kernel drops
the lock of a killed user, so nothing is left behind whatever happened to them.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

CLONE_NEWUSER = 0x10000000  # linux/sched.h
PR_SET_PDEATHSIG = 1  # linux/prctl.h
POLL_SECONDS = 0.5
# After a hard kill PostgreSQL refuses to start while its old children still hold the shared memory.
START_SECONDS = 15
STOP_SECONDS = 30
SETTLE_SECONDS = 5
# A server that lived longer than this had started properly.
QUICK_END_SECONDS = 5


def leave_root() -> bool:
    """Enter a user namespace in which this process, root outside, is `nobody`; False where that is forbidden."""
    libc = ctypes.CDLL(None, use_errno=True)
    outside = (os.getuid(), os.getgid())
    nobody = pwd.getpwnam("nobody")
    if libc.unshare(CLONE_NEWUSER) != 0:
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{nobody.pw_uid} {outside[0]} 1")
    Path("/proc/self/gid_map").write_text(f"{nobody.pw_gid} {outside[1]} 1")
    return True


def end_with_parent(stop_signal: int) -> None:
    """Ask the kernel to send `stop_signal` to this process when its parent dies (Linux; elsewhere do nothing)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, stop_signal)


class Keeper:
    """Prepares, starts, watches and stops one server."""

    def __init__(self, spec: dict[str, Any], log: IO[bytes]) -> None:
        self.spec = spec
        self.log = log
        self.stopping = False
        self.alarm = wake_on_signals()
        self.identity: dict[str, Any] = {}
        if spec["refuses_root"] and os.getuid() == 0 and (spec["forbid_namespace"] or not leave_root()):
            self.become_nobody()

    def become_nobody(self) -> None:
        """Run the children as `nobody`, who then owns the server's folders."""
        nobody = pwd.getpwnam("nobody")
        self.identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        for name in self.spec["owned"]:
            for path in (Path(name), *Path(name).rglob("*")):
                os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)

    def prepare(self) -> bool:
        """Fill the data folder once; a half-filled one is never taken for a whole one."""
        if not self.spec["prepare"]:
            return True
        data = Path(self.spec["data"])
        if data.exists():
            return True
        draft = Path(self.spec["draft"])
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if self.identity:
            os.chown(draft, self.identity["user"], self.identity["group"])
        if subprocess.call(self.spec["prepare"], **self.streams()) != 0:
            return False
        draft.rename(data)
        return True

    def streams(self) -> dict[str, Any]:
        """Popen's arguments for a child: who it runs as, and everything it says into the log."""
        return {"stdin": subprocess.DEVNULL, "stdout": self.log, "stderr": self.log, **self.identity}

    def start(self) -> "subprocess.Popen[bytes]":
        """Start the server, which ends with this program."""
        return subprocess.Popen(
            self.spec["command"],
            # The keeper has one thread, so code between fork and exec is safe.
            preexec_fn=lambda: end_with_parent(self.spec["stop_signal"]),  # noqa: PLW1509
            **self.streams(),
        )

    def run(self, users: int) -> int:
        """Keep the server up while anybody holds the file `users`; return the exit code.

        A server that ends by itself is started again; one that never lives long is given up.
        """
        started = failing_since = time.monotonic()
        server = self.start()
        while True:
            code = server.poll()
            if code is None and not self.stopping and not nobody_is_left(users):
                self.sleep()
                continue
            if code is None:
                return self.stop(server)
            now = time.monotonic()
            if now - started > QUICK_END_SECONDS:
                failing_since = now
            if self.stopping or now - failing_since > START_SECONDS:
                return code
            self.log.write(f"keeper: the server ended with code {code}; starting it again\n".encode())
            self.sleep()
            started = time.monotonic()
            server = self.start()

    def sleep(self) -> None:
        """Pause; the end of the server and a request to stop cut it short."""
        select.select([self.alarm], [], [], POLL_SECONDS)
        with contextlib.suppress(BlockingIOError):
            os.read(self.alarm, 64)

    def stop(self, server: "subprocess.Popen[bytes]") -> int:
        """End the server: by its own signal, or after a long wait by force."""
        server.send_signal(self.spec["stop_signal"])
        try:
            return server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            return server.wait()


def settle_old_locks(locks: list[Path], data: Path) -> None:
    """Wait for what a hard kill left behind, then remove the locks that name another program or a dead one unreaped.

    The server would respect those for ever. A lock whose number nobody has stays: from it PostgreSQL learns whether
    old children still hold its memory. They work in the data folder, so one of them is a reason to keep every lock.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while any(lock.exists() for lock in locks):
        if not any(works_in(process, data) for process in Path("/proc").glob("[0-9]*")):
            for lock in locks:
                drop_foreign_lock(lock, data)
            return
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


def drop_foreign_lock(lock: Path, data: Path) -> None:
    """Remove the lock if the process that it names exists and is not this server."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        owner = Path("/proc", str(int(lock.read_text().split()[0])), "cmdline")
        if os.fsencode(data) not in owner.read_bytes():
            lock.unlink()


def works_in(process: Path, folder: Path) -> bool:
    """Whether the process has its working directory in `folder`; False when we may not know."""
    try:
        return (process / "cwd").samefile(folder)
    except OSError:
        return False


def wake_on_signals() -> int:
    """Return a descriptor that becomes readable when a signal with a handler arrives."""
    alarm, wakeup = os.pipe()
    for descriptor in (alarm, wakeup):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return alarm


def nobody_is_left(users: int) -> bool:
    """Take the users' file for ourselves if nobody holds it; newcomers then wait until this program has ended."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def main() -> int:
    """Keep the server that the first argument describes."""
    spec = json.loads(sys.argv[1])
    # Closed in reverse: whoever gets in through the users' file finds no keeper any more.
    with Path(spec["users_lock"]).open("rb") as users, Path(spec["keeper_lock"]).open("r+b") as own:
        try:
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        own.truncate()
        own.write(str(os.getpid()).encode())
        own.flush()
        # Before leaving root: a process in a namespace may not look at those outside.
        settle_old_locks([Path(lock) for lock in spec["locks"]], Path(spec["data"]))
        with Path(spec["log"]).open("ab", buffering=0) as log:
            keeper = Keeper(spec, log)
            signal.signal(signal.SIGTERM, lambda *_: setattr(keeper, "stopping", True))
            code = keeper.run(users.fileno()) if keeper.prepare() else 1
        own.truncate(0)
        return code


if __name__ == "__main__":
    sys.exit(main())
