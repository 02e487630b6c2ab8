"""EncDec, the paper's base system: LSTM encoder, LSTM decoder with attention (Appendices A-C).

With the add-ons sGate and SPM it makes the paper's four systems.
"""

from typing import TYPE_CHECKING

from ledeline.config.engine_systems import EncDecConfig as EncDecConfig
from ledeline.model.addons.addon import Sizes
from ledeline.model.attention_system import AttentionSystem
from ledeline.model.format.int8 import Layout
from ledeline.model.layers.attention import Attention
from ledeline.model.layers.decoder import Decoder
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoder

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig


class EncDec(AttentionSystem):
    """LSTM encoder and decoder of equally many layers, Luong attention with input feeding."""

    Config = EncDecConfig
    capturable = True

    encoder: Encoder
    decoder: Decoder

    def __init__(self, config: "SystemConfig", vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        own = config.of_type(EncDecConfig)
        d, h, dropout = own.embedding_size, own.hidden_size, Dropout(own.dropout)
        self.assemble(
            Encoder(vocabulary, d, h, own.layers, dropout),
            Decoder(vocabulary, d, h, own.layers, Attention(h), dropout),
            Sizes(vocabulary, d, h),
            dropout,
        )

    def int8_layouts(self) -> dict[str, Layout]:
        """As the CPU engine multiplies."""
        own = self.config.of_type(EncDecConfig)
        d, h = own.embedding_size, own.hidden_size
        return {
            "decoder.first.weight": Layout((d, 2 * h)),  # [E_t y_{j-1}; z_{j-1}, zv_{j-1}]
            "decoder.attention.mix.weight": Layout((h, h)),  # [c_j; zv_j]
            "decoder.attention.bilinear": Layout(transposed=True),  # W_a, as h_i^T W_a is made
        }
