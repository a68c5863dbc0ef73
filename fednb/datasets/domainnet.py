"""DomainNet: ten of its 345 kinds of objects, in six ways of picturing them."""

from pathlib import Path

from fednb.datasets._fedbn import Lists
from fednb.datasets._listed import lacking
from fednb.federation import Federation

NEEDS = (
    "DomainNet (Peng et al. 2019), ten of its 345 classes. Layout: DomainNet/<domain>/<class>/<file>, domains clipart, "
    "infograph, painting, quickdraw, real, sketch (2629, 3283, 3091, 5000, 6081, 2767 images), classes bird, feather, "
    "headphones, ice_cream, teapot, tiger, whale, windmill, wine_glass, zebra; and FedBN's lists as "
    "splits/domainnet_<domain>_<train|test>.csv (columns path,label), converted from its pickles by docs/data.md. From "
    "ai.bu.edu/M3SDA, six archives of 17.5 GB; the lists are linked by github.com/med-air/FedBN and lie in "
    "github.com/tfzhou/FedFA (data/domainnet). Licence: for research under fair use."
)
# FedBN's numbering, which is alphabetical.
CLASSES = tuple("bird feather headphones ice_cream teapot tiger whale windmill wine_glass zebra".split())
FEDBN = 105  # int(0.05 * 2103) of FedBN's fed_domainnet.py; 2103 is the length of the shortest list, clipart's.
# Percent of a train list for training, from its start, and for validation, from its end.
PERCENT = {"fedbn_95": (95, 5), "fedfa": (32, 20), "fedfa_released": (48, 20)}


def _sizes(domain: str, split: str, length: int) -> tuple[int, int]:
    train, validation = (length * percent // 100 for percent in PERCENT.get(split, (0, 0)))
    return (FEDBN, FEDBN) if split == "fedbn" else (train, validation)


DOMAINS = {
    **{"clipart": (2103, 526), "infograph": (2626, 657), "painting": (2472, 619)},
    **{"quickdraw": (4000, 1000), "real": (4864, 1217), "sketch": (2213, 554)},
}
LISTS = Lists("domainnet", "DomainNet", DOMAINS, CLASSES, ("fedbn", *PERCENT, "stratified"), _sizes)
missing = lacking(LISTS.rows)


def load(
    root: Path, *, split: str = "fedbn", size: int = 256, drop_duplicates: bool = False, site: str | None = None
) -> Federation:
    """Six sites clipart, infograph, painting, quickdraw, real, sketch; ten classes in FedBN's numbering.

    Args:
        split: which images of FedBN's train lists, in their order, are for training (the first) and validation (the
            last). All but the last test on FedBN's 526 / 657 / 619 / 1000 / 1217 / 554 test images.
            ``"fedbn"``: 105 and 105 at every site, 5 % of the shortest list, as FedBN's code has it; FedRDN's Sec. 4.3
            agrees. ``"fedbn_95"``: 95 % and 5 % of each list, which FedBN's authors may have meant (their issue 6).
            ``"fedfa"``: 32 % and 20 %, FedFA's Table 12, or four tenths of a list's first 80 %.
            ``"fedfa_released"``: 48 % and 20 %; FedFA's code has six tenths of that 80 %.
            ``"stratified"``: without lists, the sizes of Table 12, drawn with all classes in proportion, always the
            same. Its test images are not FedBN's.
        drop_duplicates: as of ``office_caltech10``."""
    return LISTS.federation(root, split, size, drop_duplicates, site)
