"""Work on many items, side by side in processes that share the cores of this machine.

It takes ``work``, ``items`` and ``tell`` and gives ``{item: None or what went wrong}``: ``work(item, tell)`` does one
item and calls ``tell(what)`` whenever there is something to tell; ``tell(item, what)`` is called in this process, in
the order in which the item told it. Work, item (no two alike) and what can be pickled. An item that fails, or is lost
with its process, stops no other: ``concurrent.futures``, loky, mpire and ``multiprocessing.Pool`` lose all, or hang,
when a process is killed.
"""

import multiprocessing
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import cast

from fednb.errors import RunError, reason
from fednb.files import environment

UNGUARDED = 86  # the exit code of a process that would have started others while it read the main script


class UnguardedError(RunError):
    """A new process reads the main script first, which has no guard, and would do all of it again."""


def in_processes(work, items: list, tell, jobs: int) -> dict:
    """Items side by side, in at most ``jobs`` processes, no more than cores, each handed one item after the other over
    its pipe. One that dies costs the item that it was at; they end within a second of this one. Raises UnguardedError
    before any item is begun.
    """
    jobs = min(jobs, len(items), os.cpu_count() or 1)
    waiting, working, ended = list(items), {}, {}

    def hand_next(process, pipe) -> None:
        working[pipe] = process, waiting.pop(0)
        with suppress(BrokenPipeError):  # it has died since; its pipe will say so
            pipe.send(working[pipe][1])

    try:
        while waiting or working:
            while waiting and len(working) < jobs:
                hand_next(*_start(work, jobs))
            for pipe in cast("list[Connection]", wait(list(working))):
                process, item = working[pipe]
                try:
                    event, value = pipe.recv()
                except (EOFError, ConnectionResetError):
                    process.join()
                    event, value = "died", _cause(process.exitcode)
                if event == "told":
                    tell(item, value)
                    continue
                ended[item] = value
                del working[pipe]
                if waiting and event == "ended":
                    hand_next(process, pipe)
                else:
                    pipe.close()
    finally:
        for process, _ in working.values():
            process.kill()  # asked to end, one that executes a notebook would first wait for its cell
    return {item: ended[item] for item in items}


def _start(work, jobs: int):
    """A new process, and our end of its pipe."""
    context = multiprocessing.get_context("spawn")
    threads = max(1, (os.cpu_count() or 1) // jobs)
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(work, threads, theirs), daemon=True)
    try:
        with _apart():
            process.start()
    except RuntimeError:
        if "__mp_main__" in sys.modules:  # this process is a new one itself, still at the main script
            sys.exit(UNGUARDED)
        raise
    theirs.close()
    return process, ours


@contextmanager
def _apart():
    """A process that starts inside imports nothing from the working directory (python -c has it first on its path),
    looks for no file of a script on standard input, and never hears Ctrl-C, which is heard here afterwards.
    """
    path, main = list(sys.path), vars(sys.modules["__main__"])
    hidden = {name: main.pop(name) for name in ("__file__",) if not os.path.exists(main.get(name) or os.curdir)}
    sys.path[:] = [place for place in path if place]  # multiprocessing hands it on; a notebook's kernel has "" on it
    with environment(PYTHONSAFEPATH="1"):
        try:
            if os.name == "posix":
                resource_tracker.ensure_running()  # its own start would let Ctrl-C through
                before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            yield
        finally:
            if os.name == "posix":
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            sys.path[:] = path
            main |= hidden


def _cause(exitcode: int) -> str:
    if exitcode == UNGUARDED:
        script = sys.modules["__main__"].__file__
        raise UnguardedError(f'{script} has no line `if __name__ == "__main__":` above its work')
    hint = ", as it does when memory runs out" if exitcode == -9 else ""
    return f"its process ended with code {exitcode}{hint}."


def _serve(work, threads: int, pipe) -> None:
    os.environ.pop("PYTHONSAFEPATH", None)  # a notebook's kernel imports what lies next to the notebook
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is answered by who started this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import torch

    torch.set_num_threads(threads)
    with suppress(EOFError, ConnectionError):  # nobody is there any more
        while True:
            item = pipe.recv()
            try:
                error = work(item, lambda what: pipe.send(("told", what)))
            except Exception as failure:  # out of memory and the like: the other items go on
                error = reason(failure)
            pipe.send(("ended", error))


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
