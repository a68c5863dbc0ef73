"""ResNet-18, the network of FRAug's OfficeHome and PACS, and of DisTrans' CIFAR-100 and Bird-200."""

from fednb.models._torchvision import ResNet


class ResNet18(ResNet):
    """torchvision's ResNet-18; 11,176,512 parameters without the head (FRAug, Table 4: 11.18 M). Options: ``ResNet``.

    FRAug starts from ImageNet's weights, as DisTrans' released code does; FedFA prints nothing for CIFAR-10.
    """

    name = "resnet18"
    weights = "ResNet18_Weights.IMAGENET1K_V1"
