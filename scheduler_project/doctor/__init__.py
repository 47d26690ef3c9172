"""``manage.py doctor``: looks at every part, and says what to do about what is wrong.

Each check is a function that yields findings; they run side by side, each within a time limit, so that a part
that is away or silent keeps nobody from hearing about the others. Nothing is changed by looking.
"""
