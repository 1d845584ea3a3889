"""The cache of what is known about versions of files."""

from __future__ import annotations

from callboard.surfaces.documents._version_cache import VersionCache


def test_cache_forgets_the_least_recently_used_version():
    cache = VersionCache(100)
    cache.keep("a", "index", 1, 40)
    cache.keep("b", "index", 2, 40)
    cache.get("a", "index")
    cache.keep("c", "index", 3, 40)
    assert [cache.get(version, "index") for version in "abc"] == [1, None, 3]


def test_cache_does_not_keep_a_result_above_its_limit():
    cache = VersionCache(100)
    cache.keep("a", "index", 1, 40)
    cache.keep("b", "index", 2, 101)
    assert [cache.get(version, "index") for version in "ab"] == [1, None]


def test_cache_counts_a_result_that_is_kept_again_once():
    cache = VersionCache(100)
    for _ in range(3):
        cache.keep("a", "index", 1, 60)
    cache.keep("b", "index", 2, 40)
    assert [cache.get(version, "index") for version in "ab"] == [1, 2]
