"""What was changed and how to take it back: ``history.db`` beside the index, and the journal of changes under way.

The one write path uses it so, holding the workspace lock from the first step to the last::

    journal.recover()                      # Finish or put back what a process that died left open.
    snapshot = workspace.read(path)        # Read again; plan; verify. Nothing is visible yet.
    with journal.step(tool="kb_patch", summary="…", files=(FileChange(path=…, before=…, after=…),)) as step:
        workspace.swap(path, …)            # Recorded and flushed before the first swap; one or many files.
    step.change_id                         # None where history is switched off.

Leaving the ``with`` normally marks the change as done and applies retention. Leaving it by an error puts back every
file that had already changed, takes the record away, and lets the error go on. A crash inside leaves the record open:
``recover`` compares hashes and decides.
"""
