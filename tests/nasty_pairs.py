"""Seeded pairs of texts that are hard on a scorer: every rule of the stemmer, every odd byte."""

import random
from collections.abc import Mapping

from ledeline.synth.newsroom import generate
from perl_rouge import Pair

SUFFIXES = """
    s es ies sses ss ed eed ing y ly at ated ating bl bled iz ized ational tional enci ency anci ancy
    izer bli ably alli ally entli ently eli ely ousli ously ization ation ator alism iveness fulness
    ousness aliti ality iviti ivity biliti bility logi logy icate ative alize iciti icity ical ful
    ness al ance ence er ic able ible ant ement ment ent ou ism ate iti ous ive ize sion tion ion e
    ll lle le tt tted zz zzing ssing lling yed ying yy
""".split()
ROOTS = """
    relat condition valen hesit digit conform radic differ vile analog vietnam predic operat feudal
    decis hope callous formal sensit sensibl tripl form electr good reviv allow infer airlin gyroscop
    adjust defens irrit replac dep adopt homolog commun activ angular effect bowdler prob ceas contro
    rol fil hop tan fall hiss fizz fail happ sk cr tr by toy yell yes y yy say pay ow box snow fix agr
    f pl bl w x cement argu compl gover
""".split()
MARKS = """
    # ## $ $5 -- - -x x- ... ' 's '' `` <unk> <UNK> UNK unk <s> </s> & &amp; @ % _ a_b u.s. U.S. well-known
    Japan's can't 3.4bn 1,000 1990s 20th i'm 5-4 (a) [b] {c} a/b a+b = ~ ^ | \\ " * é café naïve ſ ß
    İ ı Å 漢字 漢 ٣ ² ½ 😀 ﬁ Ａ
""".split()
SPACES = [" ", "  ", "\t", "\f", "\v", "\r", "\n", "\0", "\x1c", "\x7f", "\x85", "\xa0", "\xad"]
SPACES += ["\u2028", "\u2029", "\u200b", "\u3000", "\ufeff", "\u212a", "\udc80", "\udcff", "\ud800"]
PUNCTUATION = "#-$.,'\"!?<>()[]_/\\&*\t\f\0\x85\u2028\u212aé漢\udcff "


class Dice(random.Random):
    """Words and texts of all kinds."""

    def __init__(self, seed: int, exceptions: Mapping[str, str]) -> None:
        super().__init__(seed)
        self.irregular = [word for word in exceptions.items() if "".join(word).isalnum()]

    def root(self) -> str:
        if self.random() < 0.7:
            return self.choice(ROOTS)
        return self.letters(self.randint(1, 5))

    def letters(self, size: int) -> str:
        alphabet = self.choice(
            ["aeiouybcdlst", "aeiouy", "yaei", "bcdlstyz", "abcdefghijklmnopqrstuvwxyz09"]
        )
        return "".join(self.choices(alphabet, k=size))

    def inflected(self, root: str) -> str:
        """A root with up to three suffixes, sometimes in capitals."""
        word = root + "".join(self.choices(SUFFIXES, k=self.choice([0, 1, 1, 1, 2, 2, 3])))
        return self.choice([word, word, word, word.upper(), word.capitalize()])

    def word(self) -> str:
        kind = self.random()
        if kind < 0.5:
            return self.inflected(self.root())
        if kind < 0.8:
            return self.choice(self.choice(self.irregular))
        return self.letters(self.randint(1, 9))


def inflections(dice: Dice) -> Pair:
    """The same roots on both sides, with other suffixes, some elsewhere."""
    roots = [dice.root() for _ in range(dice.randint(1, 12))]
    ours, theirs = ([dice.inflected(root) for root in roots] for _ in range(2))
    if dice.random() < 0.4:
        dice.shuffle(ours)
    return Pair(" ".join(ours[: dice.randint(1, 12)]), (" ".join(theirs),))


def irregular(dice: Dice) -> Pair:
    """Words of the exception lists against their lemmas."""
    found = dice.choices(dice.irregular, k=dice.randint(1, 8))
    sides = [[dice.choice([*both, dice.inflected(both[1])]) for both in found] for _ in range(2)]
    return Pair(" ".join(sides[0]), (" ".join(sides[1]),))


def repeated(dice: Dice) -> Pair:
    """Few words, many times: hard on clipping and on subsequences."""
    words = [dice.word() for _ in range(dice.randint(1, 5))]
    sides = [" ".join(dice.choices(words, k=dice.randint(1, 25))) for _ in range(2)]
    return Pair(sides[0], (sides[1],))


def odd_bytes(dice: Dice) -> Pair:
    """Words, marks and spaces of all kinds."""
    words = [dice.choice([dice.choice(MARKS), dice.word()]) for _ in range(dice.randint(1, 8))]
    sides = [
        "".join(dice.choice(words) + dice.choice(SPACES) for _ in range(dice.randint(1, 12)))
        for _ in range(2)
    ]
    return Pair(sides[0], (sides[1],))


def without_words(dice: Dice) -> Pair:
    """A candidate of punctuation, or of nothing."""
    return Pair("".join(dice.choices(PUNCTUATION, k=dice.randint(0, 9))), (dice.word() + " 1",))


def unrelated(dice: Dice) -> Pair:
    """Words of all kinds."""
    sides = [" ".join(dice.word() for _ in range(dice.randint(1, 10))) for _ in range(2)]
    return Pair(sides[0], (sides[1],))


def long(dice: Dice, size: int = 1000) -> Pair:
    """Lines of a thousand words."""
    words = [dice.word() for _ in range(dice.choice([3, 100, 2000]))]
    sides = [" ".join(dice.choices(words, k=length)) for length in (size, dice.choice([15, 150]))]
    dice.shuffle(sides)
    return Pair(sides[0], (sides[1],))


def headlines(number: int, seed: int) -> list[Pair]:
    """Headlines of the newsroom against disturbed ones, and the beginnings of their ledes."""
    dice = random.Random(seed)
    stories = list(generate(number, seed))
    pairs = []
    for story in stories:
        words = story.headline.split()
        other = dice.choice(stories).headline.split()
        words = [dice.choice(other) if dice.random() < 0.2 else word for word in words]
        words = [word for word in words if dice.random() < 0.85]
        lede = " ".join(story.lede.split()[: dice.randint(5, 14)])
        pairs.append(Pair(dice.choice([" ".join(words), lede]), (story.headline,)))
    return pairs


KINDS = [inflections, irregular, repeated, odd_bytes, unrelated, without_words]
WEIGHTS = [30, 15, 15, 25, 10, 5]


def has_word(text: str) -> bool:
    return any(char.isascii() and char.isalnum() for char in text)


def one_pair(dice: Dice) -> Pair:
    """Any pair whose reference has a word; the Perl script dies on another."""
    while True:
        pair = dice.choices(KINDS, WEIGHTS)[0](dice)
        if has_word(pair.references[0]):
            return pair


def pairs(number: int, seed: int, exceptions: Mapping[str, str]) -> list[Pair]:
    """Pairs of all kinds, each with one reference that has a word."""
    dice = Dice(seed, exceptions)
    return [one_pair(dice) for _ in range(number)]


def several(number: int, seed: int, exceptions: Mapping[str, str]) -> list[Pair]:
    """Pairs with two to four references, which share some words with the candidate."""
    dice = Dice(seed, exceptions)
    found = []
    for _ in range(number):
        some = [one_pair(dice) for _ in range(dice.randint(1, 2))]
        texts = [text for pair in some for text in (pair.candidate, *pair.references)]
        texts = [text for text in texts if has_word(text)]
        references = dice.choices(texts, k=dice.randint(2, 4))
        found.append(Pair(dice.choice(some).candidate, tuple(references)))
    return found


def words(number: int, seed: int, exceptions: Mapping[str, str]) -> list[str]:
    """Different words in small letters and digits, with all exceptions among them."""
    dice = Dice(seed, exceptions)
    found = dict.fromkeys(one for both in exceptions.items() for one in both if one.isalnum())
    while len(found) < number:
        found[dice.word().lower()] = None
    return list(found)
