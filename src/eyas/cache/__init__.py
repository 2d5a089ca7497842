"""What was compiled before: content enters, a digest names it, the same bytes leave or nothing does.

Two kinds of entries: `objects`, one for each dispatch, and `modules`, whole `.eyas` files. A key covers everything that
the result depends on, this compiler's own source included.
"""
