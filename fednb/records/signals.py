"""Ctrl-C and SIGTERM while runs train: a run ends after its round, with a checkpoint; Ctrl-C again ends it at once."""

import signal
import sys
import threading
from contextlib import contextmanager
from multiprocessing import active_children, parent_process

_heard = 0  # the signal, or 0
_before = None  # the processes that ran before anybody watched; None where nobody watches


@contextmanager
def watched():
    """Inside, a signal is kept until who trains asks for it, or the outermost of these ends. In another thread than the
    main one this does nothing."""
    global _heard, _before
    if _before is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: old for number, old in handlers.items() if old not in (None, signal.SIG_IGN)}
    _heard, _before = 0, set(active_children())
    try:
        for number in handlers:
            signal.signal(number, _hear)
        yield
        end_if_requested()
    finally:
        for number, old in handlers.items():
            signal.signal(number, old)
        _heard, _before = 0, None


def requested() -> bool:
    return bool(_heard)


def end_if_requested() -> None:
    """Raises what a signal that was heard would have raised at once, or what ends a process quietly."""
    if _heard:
        raise KeyboardInterrupt if _heard == signal.SIGINT else SystemExit(128 + _heard)


def pass_on() -> None:
    """Where a signal has been heard: tells the processes that train, waits for them, and ends."""
    started = set(active_children()) - _before if _heard else ()
    for process in started:
        process.terminate()
    for process in started:
        process.join()
    if started:
        end_if_requested()


def _hear(number: int, _) -> None:
    global _heard
    if _heard and number == signal.SIGINT:
        raise KeyboardInterrupt
    if not _heard:
        _heard = number
        if parent_process() is None:
            words = "stopping after this round, with a checkpoint; Ctrl-C again stops at once"
            print(words, file=sys.stderr, flush=True)
    pass_on()
