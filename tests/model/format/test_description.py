"""What describes a folder is read without torch, so it has names of its own; they are the same."""

from torch import nn

from ledeline.config.engine_systems import (
    ENGINE_ADDONS,
    ENGINE_SYSTEMS,
    READ_ADDONS,
    TRAINING_ADDONS,
    EngineConfig,
)
from ledeline.model.addons import ADDONS
from ledeline.model.addons.addon import Addon
from ledeline.model.attention_system import WEIGHT_NAMES
from ledeline.model.format.description import ADDON_NAMES, SYSTEM_NAMES
from ledeline.model.system_config import ADDON_CONFIGS, SYSTEM_CONFIGS, SystemConfig
from ledeline.model.systems import SYSTEMS


def test_the_names_are_those_of_the_registries() -> None:
    assert tuple(SYSTEMS) == SYSTEM_NAMES
    assert tuple(ADDONS) == ADDON_NAMES
    assert set(SYSTEM_NAMES) == set(SYSTEM_CONFIGS)
    assert set(ADDON_NAMES) == set(ADDON_CONFIGS)


def test_the_engine_reads_the_configurations_of_the_systems() -> None:
    for name, config in ENGINE_SYSTEMS.items():
        assert SYSTEM_CONFIGS[name] is config
    for name, config in READ_ADDONS.items():
        assert ADDON_CONFIGS[name] is config
    assert list(READ_ADDONS) == [name for name in ADDONS if name in READ_ADDONS]  # as in names


def acts_in_training_alone(addon: type[Addon]) -> bool:
    later = ("rescore", "source_predictions")  # after a search, and in explanations
    return not addon.changes_decoding() and not any(map(addon.overrides, later))


def test_the_engine_leaves_out_what_acts_in_training_alone() -> None:
    found = {name for name, addon in ADDONS.items() if acts_in_training_alone(addon)}
    assert set(TRAINING_ADDONS) == found - set(ENGINE_ADDONS)
    assert "reconstruction" not in found  # it ranks what a search finds
    assert not WEIGHT_NAMES.keys() & found  # their weights have their names


def test_it_is_known_of_each_place_of_an_add_on_where_it_acts() -> None:
    """A new one must be judged: does it act in a search?"""
    own = {name for name in vars(Addon) if not name.startswith("_")} - set(vars(nn.Module))
    in_search = {"encoded", "begin", "attention_keys", "scores", "search_scores"}
    with_these = {"attention_scores", "attended"}
    later = {"rescore", "rescores", "source_predictions"}
    in_training = {"num_steps", "loss", "loss_name", "needs_attention_gradient", "capturable"}
    assert own - {"overrides", "changes_decoding"} == in_search | with_these | later | in_training


def test_a_system_has_the_same_name_for_the_engine() -> None:
    each = [{}, {name: one() for name, one in READ_ADDONS.items()}]
    each += [{name: one()} for name, one in READ_ADDONS.items()]
    for name, config in ENGINE_SYSTEMS.items():
        for addons in each:
            own, theirs = (
                kind(system=config(), addons=addons)  # type: ignore[operator]
                for kind in (EngineConfig, SystemConfig)
            )
            assert own.name == theirs.name, name
