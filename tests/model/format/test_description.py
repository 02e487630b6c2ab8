"""What describes a folder is read without torch, so it has names of its own; they are the same."""

from ledeline.config.engine_systems import ENGINE_ADDONS, ENGINE_SYSTEMS, EngineConfig
from ledeline.model.addons import ADDONS
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
    for name, config in ENGINE_ADDONS.items():
        assert ADDON_CONFIGS[name] is config


def test_a_system_has_the_same_name_for_the_engine() -> None:
    for name, config in ENGINE_SYSTEMS.items():
        for addons in ({}, {"sgate": ENGINE_ADDONS["sgate"]()}, {"spm": ENGINE_ADDONS["spm"]()}):
            own, theirs = (
                kind(system=config(), addons=addons)  # type: ignore[operator]
                for kind in (EngineConfig, SystemConfig)
            )
            assert own.name == theirs.name, name
