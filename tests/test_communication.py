"""Bytes are those of the messages that were really exchanged."""

from types import SimpleNamespace

from fednb import models
from fednb.analyses.communication import model_bytes, prepare_bytes, round_bytes
from fednb.methods.augmentations import _feature_statistics
from fednb.methods.augmentations.fedfa import FedFA


def test_statistics_are_two_numbers_a_channel_from_each_client_to_every_client():
    counted = prepare_bytes("fedrdn", clients=3, images=4, image_shape=(3, 8, 8))
    assert counted == {"up": 3 * 2 * 3 * 4, "down": 3 * 3 * 2 * 3 * 4}


def test_what_exchanges_nothing_beforehand_has_no_bytes():
    assert prepare_bytes("mixup", clients=2, images=4, image_shape=(3, 8, 8)) == {"up": 0, "down": 0}


def test_averaged_images_go_up_once_and_down_to_every_client():
    # 7 images in averages of 5 are two averages; an average is 3 x 8 x 8 pixels and 10 labels in float32.
    counted = prepare_bytes("fedmix", clients=3, images=7, image_shape=(3, 8, 8))
    average = (3 * 8 * 8 + 10) * 4
    assert counted == {"up": 3 * 2 * average, "down": 3 * 3 * 2 * average}


def test_a_message_holds_parameters_and_running_statistics():
    # conv 3->1, 1->1, 1->2 (5 x 5, bias), dense 128->4, 4->1, head 1->10, five batch normalisations of 1, 1, 2, 4, 1.
    parameters = (75 + 1) + (25 + 1) + (50 + 2) + (128 * 4 + 4) + (4 + 1) + (10 + 10) + 2 * (1 + 1 + 2 + 4 + 1)
    counted = model_bytes({"name": "digits_cnn", "channels": 1, "width": 4}, (3, 32, 32))
    assert counted["parameters"] == 4 * parameters
    assert counted["message"] == 4 * parameters + 4 * 2 * (1 + 1 + 2 + 4 + 1) + 5 * 8


def test_a_round_of_fedfa_on_a_small_network():
    """Stages of 2, 2 and 4 channels: mean and standard deviation up, two weights down, 4 bytes each."""
    counted = round_bytes("fedfa", {"name": "digits_cnn", "channels": 2, "width": 8}, (3, 8, 8))
    assert counted["up"]["fedfa"] == counted["down"]["fedfa"] == 2 * 4 * (2 + 2 + 4)
    assert counted["up"]["model"] == counted["down"]["model"]


def test_fedfas_appendix_d_from_the_messages():
    """18 KB for AlexNet, both ways together. U-Net is not trained by the loop: 15.5 KB from what a client tells."""
    counted = round_bytes("fedfa", {"name": "alexnet", "width": 8}, (3, 127, 127))
    assert counted["up"]["fedfa"] + counted["down"]["fedfa"] == 18 * 1024
    unet = FedFA().build(models.build("unet", (3, 16, 16), 2))
    told = _feature_statistics.told(SimpleNamespace(model=unet))
    assert 2 * sum(value.numel() * value.element_size() for value in told.values()) == 15.5 * 1024
