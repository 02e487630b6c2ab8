"""Memory goes back to the system when the server rests."""

import asyncio

import pytest

pytest.importorskip("uvicorn")

from ledeline.server import memory


def test_it_is_given_back_when_idle_and_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    size, released, idle = [100.0], [0], [False]

    def release() -> None:
        released[0] += 1
        size[0] = 100.0

    monkeypatch.setattr(memory, "_CHECK_SECONDS", 0.001)
    monkeypatch.setattr(memory, "release_memory", release)
    monkeypatch.setattr(memory, "resident_bytes", lambda: size[0])

    async def story() -> None:
        keeping = asyncio.create_task(memory.keep_memory_small(lambda: idle[0]))
        await asyncio.sleep(0.05)
        assert released == [0]  # there is work
        idle[0] = True
        await _until(lambda: released == [1])
        await asyncio.sleep(0.05)
        assert released == [1]  # nothing has grown
        size[0] = 150.0
        await _until(lambda: released == [2])
        keeping.cancel()

    asyncio.run(story())


async def _until(condition) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


def test_a_large_block_that_is_freed_is_gone() -> None:
    if memory.resident_bytes() == float("inf"):
        pytest.skip("this system does not tell the memory of a process")
    memory.release_memory()
    before = memory.resident_bytes()
    blocks = [bytes(range(256)) * 2**12 for _ in range(100)]  # 100 MB
    assert memory.resident_bytes() > before + 90e6
    del blocks
    memory.release_memory()
    assert memory.resident_bytes() < before + 50e6
