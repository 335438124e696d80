//! kempe-mir
