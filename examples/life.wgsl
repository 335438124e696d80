// Game of life on a torus of 64 x 32 cells, one bit for each: an invocation makes one row word of 32 cells, all cells
// of the word at once with bit-sliced counters.

@group(0) @binding(0) var<storage, read> before: array<u32>;
@group(0) @binding(1) var<storage, read_write> after: array<u32>;

const COLUMNS: u32 = 2u; // words in a row
const ROWS: u32 = 32u;

fn cells(x: u32, y: u32) -> u32 {
    return before[(y & (ROWS - 1u)) * COLUMNS + (x & (COLUMNS - 1u))];
}

// The cells to the left and to the right of each cell of a word.
fn beside(x: u32, y: u32) -> vec2<u32> {
    let here = cells(x, y);
    let west = (here << 1u) | (cells(x + COLUMNS - 1u, y) >> 31u);
    let east = (here >> 1u) | (cells(x + 1u, y) << 31u);
    return vec2<u32>(west, east);
}

// Adds one bit to the counters: ones, twos, and whether four was passed.
fn count(counter: vec3<u32>, bit: u32) -> vec3<u32> {
    let carry = counter.x & bit;
    let over = counter.y & carry;
    return vec3<u32>(counter.x ^ bit, counter.y ^ carry, counter.z | over);
}

@compute @workgroup_size(2, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = id.x;
    let y = id.y;
    let up = y + ROWS - 1u;
    let down = y + 1u;
    var c = vec3<u32>(0u);
    var rows = array<u32, 3>(up, y, down);
    for (var k = 0u; k < 3u; k++) {
        let sides = beside(x, rows[k]);
        c = count(c, sides.x);
        c = count(c, sides.y);
        if k != 1u {
            c = count(c, cells(x, rows[k]));
        }
    }
    // Two or three neighbours and not four or more; two only where there is life already.
    let alive = cells(x, y);
    after[y * COLUMNS + x] = c.y & ~c.z & (c.x | alive);
}
