"""Where a run's numbers come from: the version of the code and its source, of torch, the device."""

import os
import platform
import re
import subprocess
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import torch

from fednb import __version__, files


def maker(model) -> dict:
    """What made a run: code, torch, device, threads, and the hash of what a pretrained network begins with."""
    device = next(model.parameters()).device
    weights = next(filter(None, (getattr(module, "weights_hash", "") for module in model.modules())), "")
    return ({"weights": weights} if weights else {}) | {
        "code": code_version(),
        "torch": str(torch.__version__),  # plain text, as a checkpoint holds it too
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
    }


def origin(model, seconds: float) -> dict:
    """What a record says of where it comes from: its maker, the processor, parameters, seconds."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return maker(model) | processor() | {"parameters": parameters, "seconds": round(seconds, 1)}


@lru_cache
def processor() -> dict[str, str]:
    """The processor's name, and the ``instructions`` that torch takes (AVX512, AVX2, DEFAULT, ...): others add up in
    another order."""
    listed = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").is_file() else ""
    named = re.search(r"model name\s*: (.+)", listed)
    name = named[1] if named else platform.processor() or platform.machine()
    return {"processor": name, "instructions": torch.backends.cpu.get_cpu_capability()}


@lru_cache
def code_version() -> str:
    """What ``FEDNB_COMMIT`` says, else the last commit that changed the package, with ``-dirty`` where it differs from
    that, else the installed version."""
    if commit := os.environ.get("FEDNB_COMMIT"):
        return commit
    checkout = Path(__file__).parents[2]
    if (checkout / ".git").exists():  # else git would speak of whatever checkout lies around an installed package
        with suppress(OSError, subprocess.CalledProcessError):
            package = ("--", "fednb", "pyproject.toml")
            if commit := _git(checkout, "log", "-1", "--format=%H", *package)[:12]:
                return commit + "-dirty" * bool(_git(checkout, "status", "--porcelain", *package))
    return __version__


@lru_cache
def source_hash() -> str:
    """12 hex digits of the package's own source: it differs where two copies without git, or two changed ones, do."""
    return files.source_hash(Path(__file__).parents[1])


def _git(checkout: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=checkout, capture_output=True, text=True, check=True).stdout.strip()
