"""Kernels without their imports: one process imports what notebooks import, and is forked for each kernel.

``warm_kernel.py serve DESCRIPTOR`` forks a kernel for each caller and ends with its standard input; as
``warm_kernel.py ADDRESS -f CONNECTION`` Jupyter starts its "python3", which asks for one and lives as long as it.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

IMPORTED = (
    *("IPython.display", "fednb.report.plots", "fednb.records.training", "filelock", "ipykernel.kernelapp"),
    *("pandas.io.formats.style", "platformdirs", "scipy.ndimage", "scipy.optimize", "seaborn", "sklearn.datasets"),
    *("sklearn.manifold", "torchvision"),
)


@contextmanager
def jupyter_path():
    """A folder for JUPYTER_PATH, by which "python3" is a fork; nothing is imported before the first one."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address := f"{folder}/socket")
        listener.listen(64)
        command = [sys.executable, __file__, "serve", str(listener.fileno())]
        kept = {"pass_fds": [listener.fileno()], "start_new_session": True}  # Ctrl-C is answered by the tests
        server = subprocess.Popen(command, stdin=subprocess.PIPE, **kept)
        kernel = Path(folder, "kernels", "python3", "kernel.json")
        kernel.parent.mkdir(parents=True)
        argv = [sys.executable, "-I", "-S", __file__, address, "-f", "{connection_file}"]
        kernel.write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
        try:
            yield folder
        finally:
            server.communicate()


def ask(address: str, *arguments: str) -> None:
    """Has a kernel with these arguments forked; an interrupt is passed on, and its end or ours is the end of both."""
    parent, told = os.getppid(), json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
    with socket.socket(socket.AF_UNIX) as kernel:
        kernel.connect(address)
        signal.signal(signal.SIGINT, lambda *_: kernel.sendall(b"interrupt"))
        socket.send_fds(kernel, [len(told).to_bytes(8, "big")], [0, 1, 2])
        kernel.sendall(told)
        while os.getppid() == parent:
            if select.select([kernel], [], [], 1)[0]:
                return


def serve(descriptor: str) -> None:
    listener, imported = socket.socket(fileno=int(descriptor)), False
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no child is waited for
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        caller, _ = listener.accept()
        if not imported:
            imported = preload()
        if not os.fork():
            listener.close()
            become(caller)
        caller.close()


def preload() -> bool:
    import builtins
    import importlib
    from types import SimpleNamespace

    builtins.get_ipython = lambda: SimpleNamespace(kernel=True)  # pandas asks whether it writes to a terminal
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # as a kernel has it before its first import
    for name in IMPORTED:
        importlib.import_module(name)
    del builtins.get_ipython
    return True


def become(caller: socket.socket) -> None:
    """The kernel that the caller asks for, in this process."""
    import threading

    from ipykernel.kernelapp import IPKernelApp

    head, streams, _, _ = socket.recv_fds(caller, 8, 3)
    with caller.makefile("rb") as told:
        arguments, folder, environment = json.loads(told.read(int.from_bytes(head, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.setsid()
    os.chdir(folder)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sys.path[0] = ""

    def follow():
        while caller.recv(64):
            os.kill(os.getpid(), signal.SIGINT)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    try:
        IPKernelApp.launch_instance(argv=arguments)
    finally:
        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[2]) if sys.argv[1] == "serve" else ask(*sys.argv[1:])
