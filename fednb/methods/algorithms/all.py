"""All: one network is trained on the images of every site in one place. This is no federation."""

from fednb.errors import RecipeError
from fednb.methods import EVERY_TASK, Method, Recipe, overrides

EXCHANGING = ("keeps", "load", "prepare_offer", "prepare_share", "prepare_receive", "send", "reply", "collect", "adapt")


class All(Method):
    r"""Training on all sites' images put together: what a federation could do if its images could leave their sites.

    .. math:: w \leftarrow \text{local training of } w \text{ on } \textstyle\bigcup_k D_k

    An oracle, **no federation**: one client, under the name of the site that comes first in the alphabet, has the
    training images of all; the one network is tested at every site. Sends and keeps nothing, and no bytes are counted.
    A round is an epoch over all images, in more steps from one start than any of FedAvg's clients takes. On one site it
    is FedAvg. What has no meaning without clients, such as ``unseen`` sites, is refused by RecipeError.

    Reference: FRAug, Sec. 4.1.2 ("training a single model at the central server using data aggregated from all
    clients ... an oracle baseline"; Table 2), which prints no settings for it.

    As released (FRAug's ``ray_baselines.py``): up to 40 epochs, stopped early by validation. Ours: the recipe's rounds.
    """

    printed = "All (no federation)"
    tasks = EVERY_TASK
    pools = True

    def refuse(self, recipe: Recipe, methods: list[Method]) -> None:
        exchanging = [m.name for m in methods if any(overrides(m, hook) for hook in EXCHANGING)]
        for found, what in (
            (recipe.unseen, f"unseen sites ({', '.join(recipe.unseen)})"),
            (recipe.participation < 1, f"participation {recipe.participation}"),
            (recipe.buffers == "local", 'buffers "local"'),
            ("cross_site" in recipe.evaluation, "the evaluation cross_site, which compares clients"),
            (exchanging, f"{' and '.join(exchanging)}, by which clients exchange or keep something"),
        ):
            if found:
                why = "it has one client, with the images of every site. Leave it out, or take another algorithm"
                raise RecipeError(f"all cannot be combined with {what}: {why}.")
