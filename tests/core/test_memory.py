"""How much memory there is."""

from itrust._core import memory


def test_free_memory_is_the_least_of_what_machine_container_and_limit_leave(tmp_path, monkeypatch):
    assert 0 <= memory.free_memory() < float("inf")
    (tmp_path / "info").write_text("MemTotal: 900 kB\nMemAvailable:   800 kB\n")
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "used").write_text("1000\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "info")
    monkeypatch.setattr(memory, "LIMITS", [(tmp_path / "max", tmp_path / "used", "cached")])
    assert memory.free_memory() == 800 * 1024
    (tmp_path / "max").write_text("51000\n")
    assert memory.free_memory() == 50_000
    monkeypatch.setattr("resource.getrlimit", lambda _: (40_000, 40_000))
    monkeypatch.setattr(memory, "STATM", tmp_path / "statm")
    assert memory.free_memory() == 40_000
    monkeypatch.setattr("resource.getpagesize", lambda: 1_000)
    (tmp_path / "statm").write_text("7 3 2\n")
    assert memory.free_memory() == 33_000


def test_files_that_the_kernel_would_let_go_count_as_free(tmp_path, monkeypatch):
    for name, held in [
        ("max", "900"),
        ("used", "890"),
        ("memory.stat", "anon 7\ninactive_file 800"),
    ]:
        (tmp_path / name).write_text(f"{held}\n")
    limits = [(tmp_path / "max", tmp_path / "used", "inactive_file")]
    monkeypatch.setattr(memory, "LIMITS", limits)
    assert memory.free_memory() == 810
    (tmp_path / "memory.stat").write_text("total_inactive_file 800\n")
    assert memory.free_memory() == 10
