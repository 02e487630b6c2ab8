from ledeline.core.shuffle import permutation, random_keys

MASK = 2**64 - 1


def key_by_hand(seed: int, stream: int, item: int) -> int:
    key = item
    for salt in (seed, stream):
        key = (key + (salt + 1) * 0x9E3779B97F4A7C15) & MASK
        key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & MASK
        key ^= key >> 31
    return key


def test_keys_are_those_of_plain_integers() -> None:
    for seed, stream in ((0, 0), (1, 7), (2**40, 3)):
        assert random_keys(seed, stream, 50).tolist() == [
            key_by_hand(seed, stream, item) for item in range(50)
        ]


def test_shuffling_is_a_permutation_that_seed_and_stream_fix() -> None:
    order = permutation(1, 0, 1000).tolist()
    assert sorted(order) == list(range(1000))
    assert order == sorted(range(1000), key=lambda item: key_by_hand(1, 0, item))
    assert order != permutation(2, 0, 1000).tolist()
    assert order != permutation(1, 1, 1000).tolist()
    assert abs(sum(order[:500]) / 500 - 499.5) < 50  # no half is favoured


def test_golden_order() -> None:
    assert permutation(1, 0, 10).tolist() == [2, 9, 6, 5, 0, 3, 8, 1, 7, 4]
