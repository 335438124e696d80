//! kempe-ir
