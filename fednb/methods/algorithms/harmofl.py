"""HarmoFL: images get a common amplitude in the frequency domain, and clients minimise the worst loss near by."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fednb.methods import EVERY_TASK, Averaged, Batch, Client, Message, option
from fednb.methods.algorithms.fedsam import FedSAM


@dataclass(frozen=True)
class HarmoFL(Averaged):  # Eq. 3
    r"""Amplitude normalisation, and perturbed weights.

    With A and P the amplitude and phase of the Fourier transform of each channel of an image x, a client follows the
    mean amplitude of its batches of M images in round 1; the mean over clients is everybody's from then on, in training
    and at test time:

    .. math::
        \bar A \leftarrow (1 - \nu) \bar A + \nu \tfrac{1}{M} \sum_m A(x_m), \quad
        \bar A \leftarrow \tfrac{1}{M} \sum_m A(x_m) \text{ on the first batch}  \tag{1}

        \hat x = \mathcal{F}^{-1}(\bar A \, e^{i P(x)})  \tag{2}

        \bar A = \sum_k \tfrac{n_k}{\sum_j n_j} \bar A_k  \tag{3}

    Each step is that of ``fedsam``, of radius alpha. Pixels may leave [0, 1]. A client sends its mean amplitude in its
    first round, if none is known by then; the server keeps the average and sends it with each message: half of a
    symmetric amplitude, channels x height x (width // 2 + 1) floats. Clients keep nothing.

    Args:
        alpha: at least 0. 0 takes plain steps. 0.05 in the paper and in the released code.
        amplitude: False leaves images as they are; with alpha 0 it is FedAvg, else FedSAM with rho alpha.
        momentum: nu, in (0, 1]; of the variant "paper" only. 0.1 in the released code's signature.
        variant: "paper" or "released".

    Reference: Jiang et al., *HarmoFL: harmonizing local and global drifts in federated learning on heterogeneous
    medical images*, AAAI 2022.

    As printed (``variant="paper"``; not checked against the text: the tags are ours, and nu was not found): all of the
    amplitude is replaced. The average before the first batch is 0; ours is set by the first batch, as released.

    As released (github.com/med-air/HarmoFL; ``variant="released"``; its compiled code was run, and 1 and 2 hold):

    1. The part of the spectrum that is replaced has size 0 around the centre (``L=0``), and that is the zero frequency
       alone: each channel gets the same mean brightness, and nothing else changes.
    2. The momentum passes through a C integer (``int momentum``, Cython 0.29): 0.1 becomes 0, and the average stays
       that of a client's first batch.
    3. Clients count alike, optimisers live through all rounds, batch normalisation has neither running statistics nor
       weights, and every site is cut to the size of the smallest. Ours: as the recipe says.
    """

    tasks = EVERY_TASK
    images_become = "of one amplitude"

    alpha: float = option(0.05, at_least=0)
    amplitude: bool = True
    momentum: float = option(0.1, within="(0, 1]")
    variant: str = option("paper", one_of=("paper", "released"))

    def inputs(self, client: Client, batch: Batch) -> None:
        if not self.amplitude:
            return
        spectrum = torch.fft.rfft2(batch.images)
        known = client.inbox(self) or client.scratch(self)
        if batch.training and known is client.scratch(self):
            mean, kept = spectrum.abs().mean(0), 1 - self.momentum if self.variant == "paper" else 1
            known["amplitude"] = torch.lerp(mean, known["amplitude"], kept) if known else mean  # Eq. 1
        if known:
            batch.images = self._normalised(batch.images, spectrum, known["amplitude"])

    def step(self, client: Client, batch: Batch) -> Tensor:
        return FedSAM(rho=self.alpha).step(client, batch)

    def reply(self, client: Client) -> Message:
        return dict(client.scratch(self))

    def _normalised(self, images: Tensor, spectrum: Tensor, amplitude: Tensor) -> Tensor:
        """Eq. 2; as released, of the zero frequency alone."""
        wanted = amplitude.expand(spectrum.shape)
        if self.variant == "released":
            wanted = spectrum.abs()
            wanted[..., 0, 0] = amplitude[:, 0, 0]
        found = torch.fft.irfft2(torch.polar(wanted.contiguous(), spectrum.angle()), images.shape[-2:])
        return found.contiguous(memory_format=torch.channels_last)
