"""Pairs of text aligned by a model in every way it can, beside baselines that know nothing."""

from collections.abc import Sequence
from typing import Final

from ledeline.analysis.alignment import (
    Links,
    attention_links,
    diagonal_links,
    identity_links,
    owners,
    spm_links,
    to_words,
)
from ledeline.model.files import Loaded
from ledeline.reasons import Seen, force

METHODS: Final = {
    "spm-vocabulary": "SPM, the likeliest type of all (the paper's rule)",
    "spm-sentence": "SPM, the likeliest type of the sentence",
    "attention": "attention at the step that writes the word",
    "attention-shifted": "attention one step later",
    "identity": "baseline: the word at the same place",
    "diagonal": "baseline: the word at the proportional place",
}


def align(loaded: Loaded, pairs: Sequence[tuple[str, str]]) -> dict[str, list[Links]]:
    """Link the white-space words of each (lede, headline), by each method the model has."""
    profile, subwords = loaded.profile, loaded.subwords
    ids = [
        (
            subwords.encode(profile.words(lede)),
            subwords.encode(profile.headline(profile.words(headline))),
        )
        for lede, headline in pairs
    ]
    found: dict[str, list[Links]] = {}
    for (lede, headline), (source, target), seen in zip(
        pairs, ids, force(loaded.model, ids), strict=True
    ):
        source_owners = owners(lede, profile, subwords)
        headline_owners = owners(headline, profile, subwords, headline=True)
        for method, links in _model_links(seen, source, len(target)).items():
            found.setdefault(method, []).append(to_words(links, source_owners, headline_owners))
        num_words = len(lede.split()), len(headline.split())
        found.setdefault("identity", []).append(identity_links(*num_words))
        found.setdefault("diagonal", []).append(diagonal_links(*num_words))
    return found


def _model_links(seen: Seen, source: list[int], num_headline: int) -> dict[str, Links]:
    """Links between sub-words."""
    links = {}
    if seen.q is not None:
        q, attention = seen.q[:-1], seen.attention[:-1]  # the last step writes <eos>
        links["spm-vocabulary"] = spm_links(q, source, rule="vocabulary", attention=attention)
        links["spm-sentence"] = spm_links(q, source, rule="sentence", attention=attention)
    links["attention"] = attention_links(seen.attention, num_headline)
    links["attention-shifted"] = attention_links(seen.attention, num_headline, shift=1)
    return links
