"""What waits to be indexed: urgent documents first, a look at everything covers the rest."""

from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.inbox import Inbox

A, B, C = RelPath("a.md"), RelPath("b.md"), RelPath("c.md")


def test_take__urgent_first_and_each_once() -> None:
    """Documents come once, the urgent ones first, with the time of the first event of the others."""
    inbox = Inbox()
    assert inbox.is_empty
    inbox.notice([A], 1.0)
    inbox.notice([A], 2.0)
    inbox.notice([B], 3.0)
    inbox.announce([C, B])
    assert inbox.has_documents
    assert inbox.is_urgent(C)
    changes = inbox.take()
    assert changes.paths == (C, B, A)
    assert changes.noticed == {A: 1.0, B: 3.0}
    assert inbox.is_empty
    assert inbox.take().paths == ()


def test_take_urgent__leaves_the_rest() -> None:
    """Urgent documents can be taken alone."""
    inbox = Inbox()
    inbox.announce([A])
    inbox.notice([B], 1.0)
    assert inbox.take_urgent() == (A,)
    assert inbox.take_urgent() == ()
    assert inbox.take().paths == (B,)


def test_take_everything__covers_what_was_noticed() -> None:
    """A look at everything takes the earliest time and the noticed documents with it, not the urgent ones."""
    inbox = Inbox()
    inbox.notice([A], 1.0)
    inbox.announce([B])
    inbox.notice_everything(5.0)
    inbox.notice_everything(3.0)
    inbox.notice_everything(4.0)
    assert inbox.has_everything
    assert inbox.take_everything() == 3.0
    assert inbox.take_everything() is None
    assert inbox.take().paths == (B,)
    inbox.notice([A], 1.0)
    inbox.forget_noticed()
    assert inbox.is_empty


def test_put_back__keeps_the_first_times() -> None:
    """What could not be indexed waits again, with the times of its first events."""
    inbox = Inbox()
    inbox.notice([A], 1.0)
    inbox.announce([B])
    changes = inbox.take()
    inbox.notice([C], 7.0)
    inbox.put_back(changes, now=5.0)
    assert inbox.take().noticed == {B: 5.0, A: 1.0, C: 7.0}


def test_freeze__waits_for_a_rebuild() -> None:
    """Documents that wait for a rebuild keep the index from being in line, until it is done."""
    inbox = Inbox()
    inbox.freeze([A])
    assert inbox.is_frozen(A)
    assert not inbox.is_frozen(B)
    assert not inbox.is_empty
    assert not inbox.has_documents
    inbox.thaw()
    assert inbox.is_empty
