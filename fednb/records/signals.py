"""Ctrl-C and SIGTERM while runs train: a run ends after its round, with a checkpoint; Ctrl-C again ends it at once."""

import signal
import sys
import threading
from contextlib import contextmanager
from multiprocessing import active_children, parent_process

_heard = 0  # the signal, or 0
_before = None  # the handlers outside, by signal, and the processes that ran then; None where nobody watches
_at_once = False


@contextmanager
def watched(at_once: bool = False):
    """Inside, a signal is kept: who trains asks for it by ``requested`` and ends by ``end``. At the latest it takes its
    effect where the outermost of these ends. Processes that were started inside are told and waited for.

    at_once: where nothing is trained in this process, the first signal takes its effect at once: whoever waits for
    other machines tells them.

    Signals come to a process's main thread; in another one this does nothing.
    """
    global _heard, _before, _at_once
    if _before is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: old for number, old in handlers.items() if old not in (None, signal.SIG_IGN)}
    _heard, _before, _at_once = 0, (handlers, set(active_children())), at_once
    try:
        for number in handlers:
            signal.signal(number, _hear)
        yield
        if _heard:
            end()
    finally:
        for number, old in handlers.items():
            signal.signal(number, old)
        _heard, _before, _at_once = 0, None, False


def requested() -> bool:
    """Whether a signal has been heard."""
    return bool(_heard)


def end_if_requested() -> None:
    """Ends, as ``end`` does, where a signal has been heard."""
    if _heard:
        end()


def end() -> None:
    """Raises what the signal would have raised at once, or what ends a process quietly."""
    raise KeyboardInterrupt if _heard == signal.SIGINT else SystemExit(128 + _heard)


def pass_on() -> None:
    """Where a signal has been heard: tells the processes that train, waits for them, and ends."""
    started = set(active_children()) - _before[1] if _heard else ()
    for process in started:
        process.terminate()
    for process in started:
        process.join()
    if started:
        end()


def _hear(number: int, _) -> None:
    global _heard
    if _heard and number == signal.SIGINT:
        raise KeyboardInterrupt
    if not _heard:
        _heard = number
        if parent_process() is None:
            print(
                "stopping after this round, with a checkpoint; Ctrl-C again stops at once", file=sys.stderr, flush=True
            )
        if _at_once:
            end()
    pass_on()
