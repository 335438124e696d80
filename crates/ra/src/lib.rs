//! kempe-ra
