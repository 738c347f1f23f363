"""The functions of `pellucid.bench` take the folders of runs by name, as they are documented."""

from pathlib import Path

from pellucid import bench


def test_a_folder_is_a_name_or_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert bench.run("smoke-reviews", "run", shard="1/4").failed == 0
    (shard,) = (str(path) for path in Path("run").glob("shard*"))
    merged = bench.merge([shard], "merged")
    assert merged.taken == merged.states["done"] > 0
    assert bench.merge([Path(shard)], Path("merged")).taken == 0
    assert bench.table_of("merged") == bench.table_of(Path("merged"))
    assert bench.compare("merged", shard) == bench.compare(Path("merged"), Path(shard))
    assert bench.write_report("merged") == bench.write_report(Path("merged"))
