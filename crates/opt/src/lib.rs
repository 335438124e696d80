//! kempe-opt
