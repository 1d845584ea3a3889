"""The suite for surfaces, with the long campaign of crashes among the slow tests."""

import pytest

from callboard.testing import SurfaceSuite, surface_suite


def short_suite(make) -> type[SurfaceSuite]:
    """Make the class of `surface_suite`, with a short form of its longest test.

    Most crashes are before the call and after it, where all surfaces do the same. Some suites try all of them.
    """

    class ShortSuite(surface_suite(make)):
        @pytest.mark.slow
        def test_after_a_crash_at_any_row_it_is_done_once(self, tmp_path):
            super().test_after_a_crash_at_any_row_it_is_done_once(tmp_path)

        def test_after_a_crash_in_the_call_it_is_done_once(self, tmp_path):
            self._crashed(tmp_path, in_call=True)

    return ShortSuite
