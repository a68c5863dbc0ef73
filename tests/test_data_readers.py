"""Tables that come beside images: damaged ones are named."""

import pytest

from fednb.datasets import _files as files
from fednb.errors import DataError


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
