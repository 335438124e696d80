//! kempe
