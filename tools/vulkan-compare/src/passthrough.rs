//! A vertex shader in SPIR-V that hands on what it is given: attribute 0 is the position, the others are varyings.

const OP_MEMORY_MODEL: u32 = 14;
const OP_ENTRY_POINT: u32 = 15;
const OP_CAPABILITY: u32 = 17;
const OP_TYPE_VOID: u32 = 19;
const OP_TYPE_FLOAT: u32 = 22;
const OP_TYPE_VECTOR: u32 = 23;
const OP_TYPE_POINTER: u32 = 32;
const OP_TYPE_FUNCTION: u32 = 33;
const OP_FUNCTION: u32 = 54;
const OP_FUNCTION_END: u32 = 56;
const OP_VARIABLE: u32 = 59;
const OP_LOAD: u32 = 61;
const OP_STORE: u32 = 62;
const OP_DECORATE: u32 = 71;
const OP_LABEL: u32 = 248;
const OP_RETURN: u32 = 253;

const INPUT: u32 = 1;
const OUTPUT: u32 = 3;
const LOCATION: u32 = 30;
const BUILT_IN: u32 = 11;
const POSITION: u32 = 0;

/// Attribute `n + 1` goes to the n-th of these locations; all are vectors of four floats, whatever the bits are.
pub fn vertex(locations: &[u8]) -> Vec<u32> {
    let [void, function, float, vector, input, output, main, label] = [1, 2, 3, 4, 5, 6, 7, 8];
    let count = locations.len() as u32 + 1;
    // Inputs, then outputs, then what is loaded.
    let (ins, outs, loads) = (9, 9 + count, 9 + 2 * count);
    let mut words = vec![0x0723_0203, 0x0001_0300, 0, 9 + 3 * count, 0];
    let mut add = |op: u32, operands: &[u32]| {
        words.push((operands.len() as u32 + 1) << 16 | op);
        words.extend(operands);
    };
    add(OP_CAPABILITY, &[1]);
    add(OP_MEMORY_MODEL, &[0, 1]);
    let mut entry = vec![0, main, u32::from_le_bytes(*b"main"), 0];
    entry.extend(ins..loads);
    add(OP_ENTRY_POINT, &entry);
    for n in 0..count {
        add(OP_DECORATE, &[ins + n, LOCATION, n]);
        match (n as usize).checked_sub(1).and_then(|k| locations.get(k)) {
            Some(&location) => add(OP_DECORATE, &[outs + n, LOCATION, location.into()]),
            None => add(OP_DECORATE, &[outs + n, BUILT_IN, POSITION]),
        }
    }
    add(OP_TYPE_VOID, &[void]);
    add(OP_TYPE_FUNCTION, &[function, void]);
    add(OP_TYPE_FLOAT, &[float, 32]);
    add(OP_TYPE_VECTOR, &[vector, float, 4]);
    add(OP_TYPE_POINTER, &[input, INPUT, vector]);
    add(OP_TYPE_POINTER, &[output, OUTPUT, vector]);
    for n in 0..count {
        add(OP_VARIABLE, &[input, ins + n, INPUT]);
        add(OP_VARIABLE, &[output, outs + n, OUTPUT]);
    }
    add(OP_FUNCTION, &[void, main, 0, function]);
    add(OP_LABEL, &[label]);
    for n in 0..count {
        add(OP_LOAD, &[vector, loads + n, ins + n]);
        add(OP_STORE, &[outs + n, loads + n]);
    }
    add(OP_RETURN, &[]);
    add(OP_FUNCTION_END, &[]);
    words
}
