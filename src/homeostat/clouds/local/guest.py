"""Init of every detached process of the local cloud: `python -I -S guest.py DIRECTORY [PROGRAM]`.

Runs outside of the package and imports little, to start in 15 ms. Detaches from its parent, holds a record lock on
DIRECTORY/alive for its lifetime (byte 0: alive, byte 1: booted), and prints its process id to standard output. Then
becomes PROGRAM. Without a program it is a server: runs DIRECTORY/user-data, or the scripts in DIRECTORY/scripts, as its
child, and stays.
"""

import fcntl
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
DENIED = "HOMEOSTAT_DENIED"
"""Environment variable with the paths of the service that user data must not reach."""
SIGNALS = {signal.SIGTERM, signal.SIGCHLD}


def main(directory: str, program: str = "") -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir(directory)
    lock = os.open("alive", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    except OSError:
        os._exit(1)  # an earlier process still lives here; there must be only one
    report = os.dup(1)
    console = os.open("console.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(console, 1)
    os.dup2(console, 2)
    os.close(console)
    if not program:
        serve()
    fcntl.lockf(lock, fcntl.LOCK_EX, 1, 1)
    os.write(report, b"%d" % os.getpid())
    os.close(report)
    if program:
        become(program, directory)
    else:
        stay()


def become(program: str, directory: str) -> None:
    import runpy

    sys.argv = [program, directory]
    runpy.run_path(program, run_name="__main__")


def serve() -> None:
    """Start the user's script, if there is one to start."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    log(f"booting, address {os.environ.get('HOMEOSTAT_ADDRESS') or 'none'}")
    if os.path.exists("left"):
        with open("left") as lines:
            for line in lines:
                log(line.strip())
    if os.path.isdir("scripts"):
        scripts = [f"scripts/{name}" for name in sorted(os.listdir("scripts"))]
    else:
        scripts = ["user-data"] if os.path.exists("user-data") else []
    runnable = [os.path.abspath(script) for script in scripts if is_script(script)]
    if runnable:
        start(runnable)


def first_line(script: str) -> bytes:
    with open(script, "rb") as file:
        return file.readline()


def is_script(path: str) -> bool:
    first = first_line(path)
    if not first.startswith(b"#!"):
        log(f"user data is not a script and is not run (it begins with {first.strip()[:40]!r})")
    return first.startswith(b"#!")


def start(scripts: list[str]) -> None:
    """Run the scripts in a child process, one after another; the process becomes the last script (exec)."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    # Daemons of the script become children of this process, not of the machine's init, so it can reap and await them.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    guest = os.getpid()
    pid = os.fork()
    if pid:
        log(f"user data runs as process {pid}")
        return
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != guest:
            os._exit(1)  # the guest died before its death could be noticed
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        confine()
        os.chdir("root")
        for script in scripts[:-1]:
            arguments = command(script)
            code = os.spawnv(os.P_WAIT, arguments[0], arguments)
            log(f"user data script {os.path.basename(script)} ended with {code}")
        arguments = command(scripts[-1])
        os.execv(arguments[0], arguments)
    except (OSError, IndexError) as error:
        log(f"user data cannot be run: {error}")
    finally:
        os._exit(127)


def confine() -> None:
    """Keep the user's scripts away from the files of the service.

    Raises:
        OSError: Landlock refuses.
    """
    denied = os.environ.pop(DENIED, "")
    if not denied:
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    landlock = __import__("landlock")  # by path, since this file runs outside of the package

    if not landlock.version():
        log("this machine has no Landlock: nothing keeps user data from the files of the service")
        return
    here = os.getcwd()
    volumes = os.path.join(os.path.dirname(os.path.dirname(here)), "volumes")
    landlock.confine(denied.split(os.pathsep), here, [f"{here}/root", f"{here}/dev", f"{here}/console.log", volumes])


def command(script: str) -> list[bytes]:
    """Return the command that the kernel would run; it works even if the file system forbids execution."""
    interpreter = first_line(script)[2:].split(None, 1)
    return [*(part.strip() for part in interpreter), script.encode()]


def stay() -> None:
    """Reap ended children until SIGTERM; then exit after the last child."""
    stopping = False
    while True:
        children = collect()
        if stopping and not children:
            log("stopped")
            return
        stopping |= signal.sigwait(SIGNALS) == signal.SIGTERM


def collect() -> bool:
    """Reap ended children, and return whether any children are left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True
        log(f"process {pid} ended with {os.waitstatus_to_exitcode(status)}")


def log(text: str) -> None:
    os.write(2, f"[homeostat] {text}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
