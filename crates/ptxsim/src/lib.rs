//! A PTX simulator with race, bounds and deadlock checks.
