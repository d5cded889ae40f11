"""A torso: from observations to features."""

import math
from dataclasses import dataclass

from torch import Tensor, nn

import quantail
from quantail.networks import Torso
from quantail.spaces import ObservationSpec


@dataclass(frozen=True)
class LSTMConfig:
    """The torso's own settings: `--torso.units 64` on the command line."""

    units: int = quantail.setting(32, "units of the LSTM", unit="units", least=1)


class LSTMTorso(Torso):
    """Reads the stacked observations one after the other, the oldest first, with an LSTM.

    Its features are the last hidden state, which may be negative: `nonnegative` stays False, so that no
    head skips zeros.
    """

    Config = LSTMConfig
    config: LSTMConfig

    def __init__(self, observation: ObservationSpec, config: LSTMConfig) -> None:
        super().__init__(observation, config)
        self.array = observation.single("torso example-lstm")
        inputs = math.prod(self.array.shape)
        self.lstm = nn.LSTM(inputs, config.units, batch_first=True)
        self.num_features = config.units

    def forward(self, observations: Tensor) -> Tensor:
        frames = observations.float() * self.array.scale  # bytes become numbers from 0 to 1
        frames = frames.reshape(len(frames), self.array.stack, -1)  # [B, stack, inputs]
        _, (hidden, _) = self.lstm(frames)
        return hidden[-1]  # [B, units]
