//! kempe-v3d
