"""How much memory there is."""

from itrust._core import memory


def test_free_memory_is_the_least_of_what_machine_container_and_limit_leave(tmp_path, monkeypatch):
    assert 2**20 < memory.free_memory() < float("inf")
    (tmp_path / "info").write_text("MemTotal: 900 kB\nMemAvailable:   800 kB\n")
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "used").write_text("1000\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "info")
    monkeypatch.setattr(memory, "LIMITS", [(tmp_path / "max", tmp_path / "used")])
    assert memory.free_memory() == 800 * 1024
    (tmp_path / "max").write_text("51000\n")
    assert memory.free_memory() == 50_000
    monkeypatch.setattr("resource.getrlimit", lambda _: (40_000, 40_000))
    monkeypatch.setattr(memory, "STATM", tmp_path / "statm")
    assert memory.free_memory() == 40_000
    monkeypatch.setattr("resource.getpagesize", lambda: 1_000)
    (tmp_path / "statm").write_text("7 3 2\n")
    assert memory.free_memory() == 33_000
