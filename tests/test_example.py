"""The example folder is what the loader of one's own data expects."""

import fednb
from fednb.analyses.example_folders import example_folders


def test_the_example_loads_as_four_sites_of_ten_classes(tmp_path):
    folder = example_folders(tmp_path / "example", per_class=4)
    federation = fednb.load("folders", root=folder, size=32)
    assert [site.name for site in federation.sites] == ["blurred", "photos", "plain", "tinted"]
    assert federation.classes == tuple(f"digit_{digit}" for digit in range(10))
    assert federation.counts().to_numpy().sum() == 4 * 10 * 4
