//! kempe-front
