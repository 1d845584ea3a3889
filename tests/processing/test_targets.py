"""The list of targets that a HostAgent sees is worked out once."""

from callboard.actors.processing._services import ListedTargets
from callboard.testing import MemoryServer


def window(number, **fields):
    return MemoryServer.window().model_copy(update={"id": f"memo:{number}", **fields})


def updated(listed, *lists):
    """Take lists, and give how many targets were looked at."""
    seen = []

    def offers(target):
        seen.append(target.id)
        return (target,)

    listed.update(lists, offers)
    return len(seen)


def test_the_same_lists_are_not_looked_at_again():
    listed, one, two = ListedTargets(), (window(1), window(2)), (window(3),)
    assert updated(listed, one, two) == 3
    digest, offered = listed.digest, listed.offered
    assert updated(listed, one, two) == 0
    assert (listed.digest, listed.offered) == (digest, (*one, *two))
    assert listed.offered is offered


def test_another_list_is_looked_at():
    listed, one = ListedTargets(), (window(1),)
    updated(listed, one)
    digest = listed.digest
    assert updated(listed, one, (window(2),)) == 2
    assert listed.digest != digest
    assert updated(listed, one) == 1
    assert (listed.digest, listed.offered) == (digest, one)


def test_a_list_that_can_be_changed_is_looked_at_each_time():
    listed, changed = ListedTargets(), [window(1)]
    updated(listed, changed)
    changed.append(window(2))
    assert updated(listed, changed) == 2
    assert [target.id for target in listed.offered] == ["memo:1", "memo:2"]


def test_a_target_of_one_task_alone_is_noticed():
    listed = ListedTargets()
    updated(listed, (window(1), window(2, owner="t")))
    assert listed.owned
    updated(listed, (window(1),))
    assert not listed.owned
