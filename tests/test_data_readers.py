"""Files that come beside images: damaged ones, and small ones that claim much, are named."""

import gzip
import io
import zipfile

import nibabel
import numpy as np
import pytest

from fednb.datasets import _digit_files as digit_files
from fednb.datasets import _files as files
from fednb.datasets import prostate_mri
from fednb.errors import DataError


def npy(shape: tuple[int, ...], content: bytes = b"") -> bytes:
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return made.getvalue() + content


def npz(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x_train.npy", content)
    return made.getvalue()


def nifti(*shape: int) -> bytes:
    header = nibabel.Nifti1Header()
    header.set_data_dtype(np.float64)
    header.set_data_shape(shape)
    return gzip.compress(header.binaryblock + bytes(4))


@pytest.mark.parametrize(
    "name, reader, content, said",
    [
        ("claims.npz", files.npz, npz(npy((10**11,))), "cannot be read"),
        ("bomb.npz", files.npz, npz(npy((2**22,), bytes(2**22))), "unpacks to more than 1000000 bytes"),
        ("idx3.gz", digit_files._idx, gzip.compress(b"\0\0\x08\3" + b"\x7f\xff\xff\xff" * 3), "cannot be read"),
        ("bomb-idx3.gz", digit_files._idx, gzip.compress(bytes(2**22)), "unpacks to more than 1000000 bytes"),
        ("index.npy", lambda file: files.npy(file.read_bytes()), npy((10**11,)), "cannot be read"),
        ("deep.nii.gz", prostate_mri._voxels, nifti(400, 400, 400), ""),
        ("bomb.nii.gz", prostate_mri._voxels, gzip.compress(bytes(2**22)), "unpacks to more than"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",  # what is packed has the time of its packing
)
def test_a_small_file_that_claims_much_is_named(tmp_path, monkeypatch, name, reader, content, said):
    """tests/hard/hostile_files.py measures that no memory is reserved for the claim."""
    monkeypatch.setattr(prostate_mri, "MOST_VOXELS", 2**18)
    for function in (files.npz, files.unpacked, files.refuse_more):
        monkeypatch.setattr(function, "__defaults__", (10**6,))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name} .*{said}"):
        files.reading(tmp_path / name, reader)


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
