"""ResNet-50, a network of DisTrans' CIFAR-100."""

from fednb.models._torchvision import ResNet


class ResNet50(ResNet):
    """torchvision's ResNet-50 with a head of its own; 23,508,032 parameters without it.

    Args:
        image_shape: (channels, height, width); height and width at least 32. At 32 x 32 the last stage's maps are
            single pixels, after which a layer that takes statistics over a map cannot stand.
        classes: number of classes.
        pretrained: with torchvision's first ImageNet weights (IMAGENET1K_V1), which need 3 channels. DisTrans names
            the network and prints no weights; its code for it is not released. torchvision trained them on
            normalised images: add the augmentation "normalise".

    Raises RunError where the weights are neither in ``weights/`` of the data folder nor in torch's cache nor can be
    fetched, and where they are damaged or of another network.

    Reference: He et al., *Deep residual learning for image recognition*, CVPR 2016.
    """

    name = "resnet50"
    weights = "ResNet50_Weights.IMAGENET1K_V1"
