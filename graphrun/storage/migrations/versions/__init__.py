"""One file a revision, in order of their numbers; a released one is never changed."""
