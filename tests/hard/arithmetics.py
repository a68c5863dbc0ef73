"""The tests under the arithmetic of other processors: which of them hang on last digits?

    python tests/hard/arithmetics.py --only noise1,avx2 -- tests/test_conformance.py -k falls

The exit status is 1 if a test fails under one of them. What stands for another processor: older instructions for torch,
oneDNN, MKL, OpenBLAS and numpy; two threads, which add up in another order; noise, every weight that a run starts from
times 1 + 1e-6 x a standard normal number, 1e-13 in float64 (in the own process of pytest), ten to a thousand times what
a last digit is, so that what chaos makes of one shows.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ARITHMETICS = {
    "own": {},
    "no_amx": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_CBWR": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    },
    "oldest": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_CBWR": "COMPATIBLE",
        "OPENBLAS_CORETYPE": "Nehalem",
    },
    "threads": {"FEDNB_TEST_THREADS": "2"},
    **{f"noise{seed}": {"FEDNB_TEST_NOISE": str(seed)} for seed in (1, 2, 3)},
}
WITHOUT_NOISE = (  # what a run with noise is held against there has none: another process, a network as drawn
    "tests/test_bench.py::test_the_bare_loop_does_what_a_federated_round_of_one_site_does",
    "tests/test_training.py::test_a_run_killed_in_the_middle_ends_as_an_undisturbed_one_and_is_trained_once",
    "tests/test_training.py::test_side_by_side_gives_the_same_numbers_and_a_process_that_dies_is_reported",
    "tests/test_worlds.py::test_an_unseen_client_of_fedbn_has_statistics_of_its_own_images",
)


def pytest_sessionstart(session):
    """This file is pytest's plugin, too: what no library reads from the environment is done here."""
    import torch

    if threads := os.environ.get("FEDNB_TEST_THREADS"):
        torch.set_num_threads(int(threads))
        os.environ["OMP_NUM_THREADS"] = threads
    if seed := os.environ.get("FEDNB_TEST_NOISE"):
        from methods import perturbed

        from fednb.loop import loop
        from fednb.loop.flower import client

        loop.build = client.build = perturbed(loop.build, int(seed), {torch.float32: 1e-6, torch.float64: 1e-13})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(ARITHMETICS), help="names of arithmetics, with commas")
    parser.add_argument("pytest", nargs="*", default=["tests", "-n", "2"], help="pytest's words, after --")
    options = parser.parse_args()
    wrong = []
    for name in options.only.split(","):
        print(f"--- {name}: {ARITHMETICS[name]}", flush=True)
        paths = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(ROOT)])}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "arithmetics", "-p", "no:cacheprovider", *options.pytest]
        if name.startswith("noise"):
            command += [f"--deselect={test}" for test in WITHOUT_NOISE]
        if subprocess.run(command, cwd=ROOT, env=os.environ | ARITHMETICS[name] | paths).returncode:
            wrong.append(name)
    print(f"tests fail under {', '.join(wrong) or 'none'} of {options.only}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
