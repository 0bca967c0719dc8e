"""A CPU hog: a neighbour that computes and never waits."""

import numpy as np


def main() -> None:
    matrix = np.random.default_rng(0).standard_normal((256, 256))
    while True:
        matrix = np.tanh(matrix @ matrix)


if __name__ == "__main__":
    main()
