//! Devices, modules, launches.
