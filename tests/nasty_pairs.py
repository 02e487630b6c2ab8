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


class RandomWords(random.Random):
    """Words and texts of all kinds."""

    def __init__(self, seed: int, irregular_forms: Mapping[str, str]) -> None:
        super().__init__(seed)
        self.irregular = [word for word in irregular_forms.items() if "".join(word).isalnum()]

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


def inflections(rng: RandomWords) -> Pair:
    """The same roots on both sides, with other suffixes, some elsewhere."""
    roots = [rng.root() for _ in range(rng.randint(1, 12))]
    ours, theirs = ([rng.inflected(root) for root in roots] for _ in range(2))
    if rng.random() < 0.4:
        rng.shuffle(ours)
    return Pair(" ".join(ours[: rng.randint(1, 12)]), (" ".join(theirs),))


def irregular(rng: RandomWords) -> Pair:
    """Words of the exception lists against their lemmas."""
    found = rng.choices(rng.irregular, k=rng.randint(1, 8))
    sides = [[rng.choice([*both, rng.inflected(both[1])]) for both in found] for _ in range(2)]
    return Pair(" ".join(sides[0]), (" ".join(sides[1]),))


def repeated(rng: RandomWords) -> Pair:
    """Few words, many times: hard on clipping and on subsequences."""
    words = [rng.word() for _ in range(rng.randint(1, 5))]
    sides = [" ".join(rng.choices(words, k=rng.randint(1, 25))) for _ in range(2)]
    return Pair(sides[0], (sides[1],))


def odd_bytes(rng: RandomWords) -> Pair:
    """Words, marks and spaces of all kinds."""
    words = [rng.choice([rng.choice(MARKS), rng.word()]) for _ in range(rng.randint(1, 8))]
    sides = [
        "".join(rng.choice(words) + rng.choice(SPACES) for _ in range(rng.randint(1, 12)))
        for _ in range(2)
    ]
    return Pair(sides[0], (sides[1],))


def without_words(rng: RandomWords) -> Pair:
    """A candidate of punctuation, or of nothing."""
    return Pair("".join(rng.choices(PUNCTUATION, k=rng.randint(0, 9))), (rng.word() + " 1",))


def unrelated(rng: RandomWords) -> Pair:
    """Words of all kinds."""
    sides = [" ".join(rng.word() for _ in range(rng.randint(1, 10))) for _ in range(2)]
    return Pair(sides[0], (sides[1],))


def long(rng: RandomWords, size: int = 1000) -> Pair:
    """Lines of a thousand words."""
    words = [rng.word() for _ in range(rng.choice([3, 100, 2000]))]
    sides = [" ".join(rng.choices(words, k=length)) for length in (size, rng.choice([15, 150]))]
    rng.shuffle(sides)
    return Pair(sides[0], (sides[1],))


def headlines(number: int, seed: int) -> list[Pair]:
    """Headlines of the newsroom against disturbed ones, and the beginnings of their ledes."""
    rng = random.Random(seed)
    stories = list(generate(number, seed))
    pairs = []
    for story in stories:
        words = story.headline.split()
        other = rng.choice(stories).headline.split()
        words = [rng.choice(other) if rng.random() < 0.2 else word for word in words]
        words = [word for word in words if rng.random() < 0.85]
        lede = " ".join(story.lede.split()[: rng.randint(5, 14)])
        pairs.append(Pair(rng.choice([" ".join(words), lede]), (story.headline,)))
    return pairs


KINDS = [inflections, irregular, repeated, odd_bytes, unrelated, without_words]
WEIGHTS = [30, 15, 15, 25, 10, 5]


def has_word(text: str) -> bool:
    return any(char.isascii() and char.isalnum() for char in text)


def one_pair(rng: RandomWords) -> Pair:
    """Any pair whose reference has a word; the Perl script dies on another."""
    while True:
        pair = rng.choices(KINDS, WEIGHTS)[0](rng)
        if has_word(pair.references[0]):
            return pair


def pairs(number: int, seed: int, irregular_forms: Mapping[str, str]) -> list[Pair]:
    """Pairs of all kinds, each with one reference that has a word."""
    rng = RandomWords(seed, irregular_forms)
    return [one_pair(rng) for _ in range(number)]


def several(number: int, seed: int, irregular_forms: Mapping[str, str]) -> list[Pair]:
    """Pairs with two to four references, which share some words with the candidate."""
    rng = RandomWords(seed, irregular_forms)
    found = []
    for _ in range(number):
        some = [one_pair(rng) for _ in range(rng.randint(1, 2))]
        texts = [text for pair in some for text in (pair.candidate, *pair.references)]
        texts = [text for text in texts if has_word(text)]
        references = rng.choices(texts, k=rng.randint(2, 4))
        found.append(Pair(rng.choice(some).candidate, tuple(references)))
    return found


def words(number: int, seed: int, irregular_forms: Mapping[str, str]) -> list[str]:
    """Different words in small letters and digits, with all irregular forms among them."""
    rng = RandomWords(seed, irregular_forms)
    found = dict.fromkeys(one for both in irregular_forms.items() for one in both if one.isalnum())
    while len(found) < number:
        found[rng.word().lower()] = None
    return list(found)
