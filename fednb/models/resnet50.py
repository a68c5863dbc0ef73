"""ResNet-50, a network of DisTrans' CIFAR-100."""

from fednb.models._torchvision import ResNet


class ResNet50(ResNet):
    """torchvision's ResNet-50; 23,508,032 parameters without the head. Options: ``ResNet``.

    DisTrans names the network and prints no weights; its code for it is not released.
    """

    name = "resnet50"
    weights = "ResNet50_Weights.IMAGENET1K_V1"
