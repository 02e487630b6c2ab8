"""A latent variable at each step of a decoder, as DRGD has it (Li et al. 2017).

Legend: B pairs, K hypotheses, D embedding size, H hidden size, Z latent size.
"""

from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

LOG_VARIANCE_LIMIT: Final = 10.0  # so that the variance never overflows, nor falls to 0


class Gaussian(NamedTuple):
    """A normal distribution without covariances."""

    mean: Tensor  # (..., Z)
    log_variance: Tensor  # (..., Z)

    def at(self, noise: Tensor | None) -> Tensor:
        """`mu + sigma * noise`, the reparameterised draw; without noise it is mu. (..., Z)."""
        if noise is None:
            return self.mean
        return self.mean + (0.5 * self.log_variance).exp() * noise

    def divergence(self) -> Tensor:
        """`KL(N(mu, var) || N(0, I)) = 0.5 * sum (mu^2 + var - log var - 1)`. (..., Z) -> (...)."""
        dtype = torch.promote_types(self.mean.dtype, torch.float32)
        mean, log_variance = self.mean.to(dtype), self.log_variance.to(dtype)
        return 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(-1)


class Posterior(nn.Module):
    """`q(z_j | y_<j, z_<j)`, which does not see y_j: so training and search share it.

    `s_j = sigmoid(W_y E_t y_{j-1} + W_z z_{j-1} + W_h h + b)`, `mu_j = W_mu s_j + b_mu`,
    `log var_j = W_s s_j + b_s` within 10 of 0. Which h it reads, the cell says.
    """

    def __init__(self, embedding_size: int, hidden_size: int, latent_size: int) -> None:
        super().__init__()
        self.of_word = nn.Linear(embedding_size, hidden_size, bias=False)  # W_y
        self.of_latent = nn.Linear(latent_size, hidden_size, bias=False)  # W_z
        self.of_hidden = nn.Linear(hidden_size, hidden_size)  # W_h, b
        self.mean = nn.Linear(hidden_size, latent_size)  # W_mu, b_mu
        self.log_variance = nn.Linear(hidden_size, latent_size)  # W_s, b_s

    def forward(self, embedded: Tensor, latent: Tensor, hidden: Tensor) -> Gaussian:
        """E_t y_{j-1} (B, K, D), z_{j-1} (B, K, Z), h (B, K, H) -> (B, K, Z)."""
        sums = self.of_word(embedded) + self.of_latent(latent) + self.of_hidden(hidden)
        seen = sums.sigmoid()
        limit = LOG_VARIANCE_LIMIT
        return Gaussian(self.mean(seen), self.log_variance(seen).clamp(-limit, limit))


class GatedFusion(nn.Module):
    """`zh_j = tanh(W_zh z_j + b)`, `u_j = sigmoid(W_hu h_j + W_zu zh_j + b_u)`,
    `d_j = u_j * h_j + (1 - u_j) * zh_j`.
    """  # noqa: D205

    def __init__(self, hidden_size: int, latent_size: int) -> None:
        super().__init__()
        self.of_latent = nn.Linear(latent_size, hidden_size)  # W_zh, b
        self.gate_of_hidden = nn.Linear(hidden_size, hidden_size, bias=False)  # W_hu
        self.gate_of_latent = nn.Linear(hidden_size, hidden_size)  # W_zu, b_u

    def forward(self, hidden: Tensor, latent: Tensor) -> Tensor:
        """h_j (B, K, H), z_j (B, K, Z) -> (B, K, H)."""
        projected = self.of_latent(latent).tanh()
        gate = (self.gate_of_hidden(hidden) + self.gate_of_latent(projected)).sigmoid()
        fused: Tensor = gate * hidden + (1 - gate) * projected
        return fused


class SumFusion(nn.Module):
    """`d_j = tanh(W_zh z_j + W_hh h_j + b)`."""

    def __init__(self, hidden_size: int, latent_size: int) -> None:
        super().__init__()
        self.of_latent = nn.Linear(latent_size, hidden_size, bias=False)  # W_zh
        self.of_hidden = nn.Linear(hidden_size, hidden_size)  # W_hh, b

    def forward(self, hidden: Tensor, latent: Tensor) -> Tensor:
        """h_j (B, K, H), z_j (B, K, Z) -> (B, K, H)."""
        fused: Tensor = (self.of_latent(latent) + self.of_hidden(hidden)).tanh()
        return fused
