"""ResNet-18, the network of FRAug's OfficeHome and PACS, and of DisTrans' CIFAR-100 and Bird-200."""

from fednb.models._torchvision import ResNet


class ResNet18(ResNet):
    """torchvision's ResNet-18 with a head of its own; 11,176,512 parameters without it (FRAug, Table 4: 11.18 M).

    Args:
        image_shape: (channels, height, width); height and width at least 32. At 32 x 32 the last stage's maps are
            single pixels, after which a layer that takes statistics over a map cannot stand.
        classes: number of classes.
        pretrained: with torchvision's first ImageNet weights (IMAGENET1K_V1), which need 3 channels. FRAug starts
            from ImageNet's weights, as DisTrans' released code does; FedFA prints nothing for CIFAR-10. torchvision
            trained them on normalised images: add the augmentation "normalise".

    Raises RunError where the weights are neither in ``weights/`` of the data folder nor in torch's cache nor can be
    fetched, and where they are damaged or of another network.

    Reference: He et al., *Deep residual learning for image recognition*, CVPR 2016.
    """

    name = "resnet18"
    weights = "ResNet18_Weights.IMAGENET1K_V1"
