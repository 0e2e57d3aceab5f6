"""Folders as the kernel shows them, in version 1 and 2, inside and outside of a container."""

from pathlib import Path

from hookviz.machine.cgroup import memory_group, processors


def made(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return folder


def test_version_2_in_a_container_sees_its_own_group_at_the_top(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "listing": "0::/",
            "memory.max": "4294967296",
            "memory.current": "1000000",
            "memory.stat": "anon 7\ninactive_file 400000\nactive_file 5",
            "cpu.max": "150000 100000",
        },
    )
    group = memory_group(root, root / "listing")
    assert group is not None
    assert (group.limit, group.used()) == (4294967296, 600000)
    assert processors(root, root / "listing") == 1.5


def test_the_tightest_group_counts_whichever_is_above(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "listing": "0::/class/app",
            "class/memory.max": "500",
            "class/memory.current": "90",
            "class/memory.stat": "inactive_file 100",
            "class/app/memory.max": "900",
            "class/cpu.max": "max 100000",
            "class/app/cpu.max": "400000 100000",
        },
    )
    group = memory_group(root, root / "listing")
    assert group is not None
    assert (group.limit, group.used()) == (500, 0)
    assert processors(root, root / "listing") == 4


def test_version_1(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "listing": "5:cpu,cpuacct:/docker/a1\n4:memory:/docker/a1",
            "memory/memory.limit_in_bytes": "2048",
            "memory/memory.usage_in_bytes": "1024",
            "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 24",
            "cpu/cpu.cfs_quota_us": "50000",
            "cpu/cpu.cfs_period_us": "100000",
        },
    )
    group = memory_group(root, root / "listing")
    assert group is not None
    assert (group.limit, group.used()) == (2048, 1000)
    assert processors(root, root / "listing") == 0.5


def test_no_bound_is_none(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "listing": "4:memory:/\n3:cpu:/\n0::/",
            "memory.max": "max",
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "cpu.max": "max 100000",
            "cpu/cpu.cfs_quota_us": "-1",
        },
    )
    assert memory_group(root, root / "listing") is None
    assert processors(root, root / "listing") is None
    assert memory_group(tmp_path / "none", tmp_path / "none") is None


def test_a_path_that_leaves_the_mount_is_not_followed(tmp_path: Path) -> None:
    root = made(tmp_path / "top", {"listing": "0::/../../other"})
    made(tmp_path, {"other/memory.max": "5", "memory.max": "6"})
    assert memory_group(root, root / "listing") is None
