//! Python-syntax source to a tt module.
