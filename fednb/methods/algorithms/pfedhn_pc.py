"""pFedHN-pc: pFedHN whose clients have heads of their own."""

from dataclasses import dataclass

from fednb.methods.algorithms.pfedhn import PFedHN


@dataclass(frozen=True)
class PFedHNPC(PFedHN):
    """pFedHN with ``personal_head=True``: the server makes and sends the body alone, and each client keeps its head.

    Args:
        rate: 0.05 as released for this variant. The others are those of pFedHN.

    Reference: Shamsian et al., *Personalized federated learning using hypernetworks*, ICML 2021, the variant with
    personal classifiers.
    """

    printed = "pFedHN-pc"

    personal_head: bool = True
    rate: float = 0.05
