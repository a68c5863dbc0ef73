"""What a project of your own can take without the loop: FedFA's layer, FedRDN's transform, DisTrans' index."""

from fednb.standalone.class_shares import class_shares
from fednb.standalone.feature_augmentation import FeatureAugmentation
from fednb.standalone.heterogeneity import class_fractions, distributional_heterogeneity
from fednb.standalone.transforms import RandomDataNormalise, statistics

__all__ = [
    "FeatureAugmentation",
    "RandomDataNormalise",
    "class_fractions",
    "class_shares",
    "distributional_heterogeneity",
    "statistics",
]
