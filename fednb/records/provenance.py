"""Where a run's numbers come from: the version of the code and its source, of torch, the device."""

import os
import platform
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from fednb import files

INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16")  # each adds in another order


def maker(model) -> dict:
    """What made a run: code, torch, device, threads, and the hash of what a pretrained network begins with."""
    import torch

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
    """The processor's name, and the ``instructions`` on which the last digits of a sum depend: those that torch takes
    (AVX512, AVX2, DEFAULT, ...) and, where Linux lists them, those of ``INSTRUCTIONS`` that the processor has."""
    import torch

    taken = torch.backends.cpu.get_cpu_capability()
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    entries = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    has = [name for name in INSTRUCTIONS if name in entries.get("flags", "").split()]
    name = entries.get("model name") or platform.processor() or platform.machine()
    return {"processor": name, "instructions": f"{taken}: {' '.join(has)}" if has else taken}


@lru_cache
def code_version() -> str:
    """The last commit that changed the package, with ``-dirty`` where it differs from it; else the installed version.

    Where the files are a copy, without git or with that of another commit, ``FEDNB_COMMIT`` names the commit.
    """
    if commit := os.environ.get("FEDNB_COMMIT"):
        return commit
    checkout = Path(__file__).parents[2]
    if (checkout / ".git").exists():  # else git would speak of whatever checkout lies around an installed package
        try:
            package = ("--", "fednb", "pyproject.toml")
            if commit := _git(checkout, "log", "-1", "--format=%H", *package)[:12]:
                return commit + "-dirty" * bool(_git(checkout, "status", "--porcelain", *package))
        except (OSError, subprocess.CalledProcessError):
            pass
    try:
        return metadata.version("fednb")
    except metadata.PackageNotFoundError:
        return "unknown"


@lru_cache
def source_hash() -> str:
    """12 hex digits of the package's own source: it differs where two copies without git, or two changed ones, do."""
    return files.source_hash(Path(__file__).parents[1])


def _git(checkout: Path, *words: str) -> str:
    apart = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # of another checkout
    words = ("git", "-C", str(checkout), *words)
    return subprocess.run(words, env=apart, capture_output=True, text=True, check=True).stdout.strip()
