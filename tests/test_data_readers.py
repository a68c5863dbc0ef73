"""Files that come beside images: damaged ones are named, and none reserves memory that it does not hold."""

import bz2
import gzip
import io
import pickle
import struct
import subprocess
import sys
import zipfile
import zlib

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


def repeated(path, opener, content: bytes, times: int):
    with opener(path, "wb") as file:
        for _ in range(times):
            file.write(content)


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matlab(kind: int, shape: tuple[int, ...], numbers: bytes, packed: bool = False) -> bytes:
    """A MATLAB 5 file with one array X: 9 is an array of bytes, 1 one of cells."""
    head = element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack(f"<{len(shape)}i", *shape))
    array = element(14, head + element(1, b"X") + numbers)
    array = struct.pack("<II", 15, len(zlib.compress(array))) + zlib.compress(array) if packed else array
    return b" " * 124 + b"\0\1IM" + array


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
    "cells.mat": ("_digit_files._svhn, 10**9", matlab(1, (2**13, 2**13), b"")),
    "bytes.mat": ("_digit_files._svhn, 10**9", matlab(9, (2**13, 2**13, 2**4), element(2, bytes(8)))),
    "tag.mat": ("_digit_files._svhn, 10**9", matlab(9, (32, 32, 3, 1), struct.pack("<II", 2, 2**31))),
    "packed.mat": ("_digit_files._svhn, 10**7", matlab(9, (2**26,), element(2, bytes(2**26)), packed=True)),
    "claims.npz": ("_files.npz, 10**9", npy((10**11,))),
    "bomb.npz": ("_files.npz, 10**7", npy((2**26,), bytes(2**26))),
    "idx3.gz": ("_digit_files._idx, 10**9", gzip.compress(b"\0\0\x08\3" + b"\x7f\xff\xff\xff" * 3)),
    "bomb-idx3.gz": ("_digit_files._idx, 10**7", gzip.compress(b"\0\0\x08\3" + bytes(2**26))),
    "usps.bz2": ("_digit_files._libsvm, 10**7", bz2.compress(bytes(2**26))),
    "line.bz2": ("_digit_files._libsvm, 10**9", bz2.compress(b"1 " * 2**21)),
    "index.npy": ("lambda file: _files.npy(file.read_bytes())", npy((10**11,))),
}


def test_a_small_file_that_claims_much_is_named_before_memory_is_reserved(tmp_path):
    program = "def ask(name, *how):\n    try: _files.reading(Path(name), *how)\n"
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


@pytest.mark.parametrize("packed", [False, True])
def test_a_matlab_file_is_what_scipy_wrote(tmp_path, packed):
    scipy = pytest.importorskip("scipy.io")
    arrays = {"X": np.random.RandomState(0).randint(0, 256, (4, 5, 3, 7), np.uint8), "y": np.arange(7.0)[:, None]}
    others = {"text": "a", "cells": np.array([["a"]], object), "struct": {"a": 1}}
    scipy.savemat(tmp_path / "made.mat", arrays | others, do_compression=packed)
    found = files.mat(tmp_path / "made.mat", 10**6)
    assert found.keys() == arrays.keys() and all((found[name] == arrays[name]).all() for name in arrays)


def pickled(array: bytes, labels: bytes = b"(lI1\na") -> bytes:
    """A dictionary of an array and labels, by hand, in the letters of protocol 0."""
    return b"(dS'data'\n" + array + b"sS'labels'\n" + labels + b"s."


def array(shape: bytes, code: bytes = b"u1", raw: bytes = b"S'ab'\n") -> bytes:
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(" + shape + b"t"
    return made + b"cnumpy\ndtype\n(S'" + code + b"'\nI0\nI1\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\n" + raw + b"tb"


DEEP = b"(lp1\nI1\na" + b"".join(b"(lp%d\ng%d\nag%d\na" % (n + 1, n, n) for n in range(1, 40))


@pytest.mark.parametrize(
    "content, said",
    [
        (pickled(array(b"I2\n", raw=b"S'ab'\n")), None),
        (pickled(array(b"I99999999\n")), "2 bytes for an array of u1"),
        (pickled(array(b"I134217728\n", b"O8", b"(l")), "array of O8"),
        (pickled(array(b"I2\n", b"i1")), "array of i1"),
        (pickled(array(b"I2\n"), DEEP), "list"),
        (pickled(array(b"I2\n"), b"(lF0.5\na"), "float"),
        (b"\x80\x02Nr\xff\xff\xff\x1f.", "entry 536870911 of a memo in a file of 9 bytes"),
        (b"\x80\x02cnumpy\nndarray\nJ\xff\xff\xff\x7f\x85R.", "not callable"),
        (b"", "cannot be read"),
        (pickle.dumps({"data": 1, "labels": [1]}), "cannot be read"),
        (b"cbuiltins\neval\n.", r"asks for builtins\.eval; .*Nothing of it was executed"),
        (b"cnumpy\nload\n.", r"asks for numpy\.load"),
        (b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.", "the codec rot13"),
    ],
)
def test_a_batch_of_cifar_gives_bytes_and_numbers_or_is_named(tmp_path, content, said):
    (tmp_path / "batch").write_bytes(content)
    if said is None:
        found, labels = files.images_and_labels(tmp_path / "batch", "labels")
        assert found.tolist() == [97, 98] and labels.tolist() == [1] and labels.dtype == np.int64
        return
    with pytest.raises(DataError, match=f"batch .*{said}"):
        files.images_and_labels(tmp_path / "batch", "labels")


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
