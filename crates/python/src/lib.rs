//! The PyO3 extension module of the Python package.
