//! compile(source, signature, options) to an artifact: stages, dumps, cache.
