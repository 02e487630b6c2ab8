"""Byte-pair encoding: apply merges to words. `ledeline.text.bpe_learning` learns them.

Merges and pieces are those of subword-nmt 0.3.8 (codes version 0.2: the last character of a word
carries ``</w>``). A word is a non-empty string without white space.
"""

import heapq
from collections.abc import Mapping
from itertools import pairwise

WORD_END = "</w>"

SymbolPair = tuple[str, str]


def apply_merges(word: str, ranks: Mapping[SymbolPair, int]) -> list[str]:
    """Split a word into symbols by merging all pairs of the lowest rank, again and again.

    For a word of n characters it takes O(n log n) time.
    """
    symbols = [*word[:-1], word[-1] + WORD_END]
    if len(symbols) == 1:
        return symbols
    end = len(symbols)
    left, right = list(range(-1, end - 1)), list(range(1, end + 1))
    heap = [(ranks[pair], place) for place, pair in enumerate(pairwise(symbols)) if pair in ranks]
    heapq.heapify(heap)
    while heap:
        rank, changed = heap[0][0], []
        while heap and heap[0][0] == rank:  # in order from the left
            place = heapq.heappop(heap)[1]
            other = right[place]
            if other < end and ranks.get((symbols[place], symbols[other])) == rank:
                symbols[place] += symbols[other]
                symbols[other] = ""
                right[place] = right[other]
                if right[other] < end:
                    left[right[other]] = place
                changed.append(place)
        for place in changed:
            for first in (left[place], place):
                if first >= 0 and right[first] < end:
                    pair = (symbols[first], symbols[right[first]])
                    if pair in ranks:
                        heapq.heappush(heap, (ranks[pair], first))
    return [symbol for symbol in symbols if symbol]
