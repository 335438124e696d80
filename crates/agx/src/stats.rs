//! Occupancy.

/// Threads that fit on a core for so many half registers, by the largest number of them (section 1.2).
pub const OCCUPANCY: [(u32, u32); 10] = [
    (104, 1024),
    (112, 896),
    (128, 832),
    (136, 768),
    (144, 704),
    (160, 640),
    (184, 576),
    (208, 512),
    (232, 448),
    (256, 384),
];

/// Threads that fit on a core with so many half registers; 0 where there are not so many.
pub fn threads_for(halves: u32) -> u32 {
    OCCUPANCY.iter().find(|column| halves <= column.0).map_or(0, |column| column.1)
}

/// Most half registers that a threadgroup of so many threads may use; 0 if it does not fit on a core.
pub fn halves_for(threads: u32) -> u32 {
    OCCUPANCY.iter().rev().find(|column| threads <= column.1).map_or(0, |column| column.0)
}
