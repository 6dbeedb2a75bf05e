"""Random numbers and files, the same on every machine."""

import random


class Draw:
    """Random numbers by one method whose stream no version changes."""

    def __init__(self, seed):
        self.real = random.Random(seed).random

    def below(self, limit):
        return int(self.real() * limit)

    def pick(self, items):
        return items[self.below(len(items))]

    def word(self, letters, least, most):
        return "".join(self.pick(letters) for _ in range(least + self.below(most - least + 1)))


def text(draw, size):
    """Text with the word frequencies of a natural language (Zipf)."""
    words = [draw.word("etaoinshrdlucmfwypvbgkjqxz", 2, 9) for _ in range(4000)]
    parts, length = [], 0
    while length < size:
        word = words[int(len(words) ** draw.real()) - 1]
        end = ".\n" if draw.below(12) == 0 else " "
        parts.append(word + end)
        length += len(word) + len(end)
    return "".join(parts)[:size]


def write(name, content):
    with open(name, "w", encoding="ascii", newline="\n") as file:
        file.write(content)
