"""Files that come beside images: damaged ones are named, and none reserves memory that it does not hold."""

import gzip
import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from fednb.datasets import _files as files
from fednb.errors import DataError


def limited(program: str, megabytes: int) -> str:
    """What a program says that may use so much memory beyond what the imports take."""
    beginning = (
        "import resource, sys, fednb.datasets, numpy, PIL.Image, torch, nibabel\n"
        "from pathlib import Path\n"
        "from fednb.datasets import _digit_files, _files, _images as images, emnist, prostate_mri\n"
        "PIL.Image.init()\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))\n"
    )
    end = (
        "\nused = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024\n"
        f"assert used < {megabytes}, f'{{used}} MB'\n"
    )
    done = subprocess.run([sys.executable, "-c", beginning + program + end], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def npy(shape: tuple[int, ...], content: bytes = b"") -> bytes:
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return made.getvalue() + content


def npz(path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x_train.npy", content)


def nifti(shape: tuple[int, ...]) -> bytes:
    import nibabel

    header = nibabel.Nifti1Header()
    header.set_data_dtype(np.float64)
    header.set_data_shape(shape)
    return gzip.compress(header.binaryblock + bytes(4))


SMALL = {  # files of a kilobyte that claim gigabytes: what reads them, and what they hold
    "claims.npz": ("_files.npz", npy((10**11,))),
    "bomb.npz": ("_files.npz", npy((2**26,), bytes(2**26))),
    "idx3.gz": ("_digit_files._idx", gzip.compress(b"\0\0\x08\3" + b"\x7f\xff\xff\xff" * 3)),
    "bomb-idx3.gz": ("_digit_files._idx", gzip.compress(b"\0\0\x08\3" + bytes(2**26))),
    "index.npy": ("lambda file: _files.npy(file.read_bytes())", npy((10**11,))),
}


def test_a_small_file_that_claims_much_is_named_before_memory_is_reserved(tmp_path):
    program = "_files.npz.__defaults__ = _files.unpacked.__defaults__ = _files.refuse_more.__defaults__ = (10**7,)\n"
    program += "def ask(name, how):\n    try: _files.reading(Path(name), how)\n"
    program += "    except fednb.datasets.DataError as error: print(error)\n"
    for name, (how, content) in SMALL.items():
        path = tmp_path / name
        npz(path, content) if path.suffix == ".npz" else path.write_bytes(content)
        program += f"ask({str(path)!r}, {how})\n"
    said = limited(program, 40).splitlines()
    assert [line.split(" ")[0] for line in said] == [str(tmp_path / name) for name in SMALL]
    assert all("cannot be read (" in line or "unpacks to more than 10000000 bytes" in line for line in said)


def test_a_volume_that_claims_much_is_named_before_memory_is_reserved(tmp_path):
    (tmp_path / "deep.nii.gz").write_bytes(nifti((400, 400, 400)))
    (tmp_path / "bomb.nii.gz").write_bytes(gzip.compress(bytes(2**26)))
    for name, most in {"bomb.nii.gz": 10**6, "deep.nii.gz": 2**26}.items():
        program = f"prostate_mri.MOST_VOXELS = {most}\n"
        program += f"try: prostate_mri._voxels(Path({str(tmp_path / name)!r}))\n"
        program += "except fednb.datasets.DataError as error: print(error)"
        assert f"{name} " in limited(program, 40)


def test_what_runs_out_of_memory_names_the_file(tmp_path):
    def reader(path):
        raise MemoryError

    with pytest.raises(DataError, match=r"big\.json cannot be read \(MemoryError\)"):
        files.reading(tmp_path / "big.json", reader)


@pytest.mark.parametrize(
    "content, said",
    [
        (b"file,class\na,b\n", "'path'"),
        (b"path,label\n\xff\xfe,\xff\n", "utf-8"),
        (b"path,label\na,b\nc\n", "row 2 is too short"),
        (b'path,label\n"' + b"a" * 200_000, "field larger"),
    ],
)
def test_a_damaged_table_is_named(tmp_path, content, said):
    (tmp_path / "list.csv").write_bytes(content)
    with pytest.raises(DataError, match=rf"list\.csv cannot be read \(.*{said}"):
        files.table(tmp_path / "list.csv", "path", "label")
