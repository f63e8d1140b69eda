# SPDX-License-Identifier: Apache-2.0
"""Snake and SnakeBeta as vocoders have them, and modules that are nearly that."""

from __future__ import annotations

import torch
from torch import nn, pow, sin


class SnakeBeta(nn.Module):
    """As in BigVGAN: alpha and beta for each channel, or their logarithms."""

    def __init__(self, channels, alpha_logscale=False):
        super().__init__()
        self.alpha_logscale = alpha_logscale
        self.alpha, self.beta = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.ones(channels))
        self.no_div_by_zero = 1e-9

    def forward(self, x):
        alpha = self.alpha.unsqueeze(0).unsqueeze(-1)
        beta = self.beta.unsqueeze(0).unsqueeze(-1)
        if self.alpha_logscale:
            alpha = torch.exp(alpha)
            beta = torch.exp(beta)
        return x + (1.0 / (beta + self.no_div_by_zero)) * pow(sin(x * alpha), 2)


class Snake(nn.Module):
    """With one parameter, as [1, C, 1], and methods of tensors."""

    def __init__(self, channels):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x):
        return x + (self.alpha + 1e-9).reciprocal() * (self.alpha * x).sin().pow(2)


def draw_snakes(model):
    """Gives all of them other parameters."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (SnakeBeta, Snake)):
                for parameter in module.parameters():
                    parameter.uniform_(0.3, 1.7)


# ---- what is not Snake ----


class Cosine(SnakeBeta):
    def forward(self, x):
        alpha, beta = self.alpha.unsqueeze(0).unsqueeze(-1), self.beta.unsqueeze(0).unsqueeze(-1)
        return x + (1.0 / (beta + self.no_div_by_zero)) * torch.cos(sin(x * alpha))


class Less(SnakeBeta):
    def forward(self, x):
        alpha, beta = self.alpha.unsqueeze(0).unsqueeze(-1), self.beta.unsqueeze(0).unsqueeze(-1)
        return x * (1.0 / (beta + self.no_div_by_zero)) + pow(sin(x * alpha), 2)


class Twice(SnakeBeta):
    def forward(self, x):
        alpha, beta = self.alpha.unsqueeze(0).unsqueeze(-1), self.beta.unsqueeze(0).unsqueeze(-1)
        return x + (2.0 / (beta + self.no_div_by_zero)) * pow(sin(x * alpha), 2)


class Cubed(SnakeBeta):
    def forward(self, x):
        alpha, beta = self.alpha.unsqueeze(0).unsqueeze(-1), self.beta.unsqueeze(0).unsqueeze(-1)
        return x + (1.0 / (beta + self.no_div_by_zero)) * pow(sin(x * alpha), 3)


class AlongTime(SnakeBeta):
    def forward(self, x):
        alpha, beta = self.alpha.unsqueeze(0), self.beta.unsqueeze(0).unsqueeze(-1)
        return x + (1.0 / (beta + self.no_div_by_zero)) * pow(sin(x * alpha), 2)


class Counting(SnakeBeta):
    def forward(self, x):
        self.alpha_logscale = not self.alpha_logscale
        alpha, beta = self.alpha.unsqueeze(0).unsqueeze(-1), self.beta.unsqueeze(0).unsqueeze(-1)
        return x + (1.0 / (beta + self.no_div_by_zero)) * pow(sin(x * alpha), 2)


class Printing(SnakeBeta):
    def forward(self, x):
        print("called")
        alpha, beta = self.alpha.unsqueeze(0).unsqueeze(-1), self.beta.unsqueeze(0).unsqueeze(-1)
        return x + (1.0 / (beta + self.no_div_by_zero)) * pow(sin(x * alpha), 2)


class Trying(SnakeBeta):
    def forward(self, x):
        try:
            x = x.reciprocal(1)
        except TypeError:
            pass
        alpha, beta = self.alpha.unsqueeze(0).unsqueeze(-1), self.beta.unsqueeze(0).unsqueeze(-1)
        return x + (1.0 / (beta + self.no_div_by_zero)) * pow(sin(x * alpha), 2)


class ByValue(SnakeBeta):
    def forward(self, x):
        alpha, beta = self.alpha.unsqueeze(0).unsqueeze(-1), self.beta.unsqueeze(0).unsqueeze(-1)
        if alpha == 1:
            alpha = beta
        return x + (1.0 / (beta + self.no_div_by_zero)) * pow(sin(x * alpha), 2)


class Computing(SnakeBeta):
    """A property in place of a number."""

    no_div_by_zero = property(lambda self: 1e-9, lambda self, value: None)


class Calling(SnakeBeta):
    def __call__(self, x):
        return 2 * super().__call__(x)


LEFT = {
    **dict.fromkeys((Printing, Trying, Calling), "its class does more than Snake"),
    Cosine: "reads cos, which is no parameter",
    **dict.fromkeys((Less, Twice), "its forward computes another formula than"),
    ByValue: "it compares values",
    Cubed: "its power is 3",
    AlongTime: "not along the channels",
    Counting: "its forward changes the module",
    Computing: "reads no_div_by_zero, which is no parameter and no number of its own",
}
