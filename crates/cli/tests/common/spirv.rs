//! Small SPIR-V modules, word by word.

/// Appends instructions.
#[derive(Default)]
pub struct Words(pub Vec<u32>);

impl Words {
    fn op(&mut self, opcode: u32, operands: &[u32]) -> &mut Words {
        self.0.push((operands.len() as u32 + 1) << 16 | opcode);
        self.0.extend_from_slice(operands);
        self
    }

    fn entry_point(&mut self, model: u32, function: u32, name: &str, interface: &[u32]) {
        let mut operands = vec![model, function];
        operands.extend(text(name));
        operands.extend_from_slice(interface);
        self.op(15, &operands);
    }
}

/// A string as words, closed by a zero byte.
fn text(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// A module with the entry points given as (execution model, name), which all are the same function: it replaces each
/// word x of buffer 0:0 by 2 * x + 1, in work-groups of 64.
pub fn double_and_increment(entries: &[(u32, &str)]) -> Vec<u8> {
    // Ids: types 1 to 9, constants 20 to 22, variables 30 and 31, function 40, labels and values from 41.
    let mut w = Words(vec![0x0723_0203, 0x0001_0300, 0, 64, 0]);
    w.op(17, &[1]); // capability Shader
    w.op(14, &[0, 1]); // logical, GLSL450
    for &(model, name) in entries {
        w.entry_point(model, 40, name, &[31]);
        if model == 5 {
            w.op(16, &[40, 17, 64, 1, 1]); // local size
        }
    }
    w.op(71, &[31, 11, 28]); // built-in GlobalInvocationId
    w.op(71, &[5, 6, 4]); // array stride
    w.op(72, &[6, 0, 35, 0]); // member offset
    w.op(71, &[6, 3]); // buffer block
    w.op(71, &[30, 34, 0]).op(71, &[30, 33, 0]); // set 0, binding 0
    w.op(19, &[1]).op(33, &[2, 1]); // void, function type
    w.op(21, &[3, 32, 0]); // u32
    w.op(23, &[4, 3, 3]); // vec3
    w.op(29, &[5, 3]); // run-time array
    w.op(30, &[6, 5]); // struct
    w.op(32, &[7, 2, 6]); // pointer to it, Uniform
    w.op(32, &[8, 2, 3]); // pointer to u32, Uniform
    w.op(32, &[9, 1, 4]); // pointer to vec3, Input
    w.op(43, &[3, 20, 0]).op(43, &[3, 21, 1]).op(43, &[3, 22, 2]);
    w.op(59, &[7, 30, 2]).op(59, &[9, 31, 1]);
    w.op(54, &[1, 40, 0, 2]).op(248, &[41]);
    w.op(61, &[4, 42, 31]); // load
    w.op(81, &[3, 43, 42, 0]); // x
    w.op(65, &[8, 44, 30, 20, 43]); // access chain
    w.op(61, &[3, 45, 44]);
    w.op(132, &[3, 46, 45, 22]); // multiply
    w.op(128, &[3, 47, 46, 21]); // add
    w.op(62, &[44, 47]); // store
    w.op(253, &[]).op(56, &[]);
    w.0.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The module that most tests use.
pub fn sample() -> Vec<u8> {
    double_and_increment(&[(5, "main")])
}

/// A module that writes the work-group id of x, divided by 4 as a float, to red and green of an image at 0:1 that has no
/// format, and 1 to blue and alpha.
pub fn image_writer() -> Vec<u8> {
    let mut w = Words(vec![0x0723_0203, 0x0001_0300, 0, 64, 0]);
    w.op(17, &[1]).op(17, &[56]); // capabilities Shader, StorageImageWriteWithoutFormat
    w.op(14, &[0, 1]);
    w.entry_point(5, 40, "main", &[31]);
    w.op(16, &[40, 17, 1, 1, 1]); // local size
    w.op(71, &[31, 11, 26]); // built-in WorkgroupId
    w.op(71, &[30, 34, 0]).op(71, &[30, 33, 1]); // set 0, binding 1
    w.op(71, &[30, 25]); // NonReadable
    w.op(19, &[1]).op(33, &[2, 1]); // void, function type
    w.op(21, &[3, 32, 0]).op(22, &[4, 32]); // u32, f32
    w.op(23, &[5, 3, 3]).op(23, &[6, 3, 2]).op(23, &[7, 4, 4]); // uvec3, uvec2, vec4
    w.op(25, &[8, 4, 1, 0, 0, 0, 2, 0]); // image of f32: 2D, storage, no format
    w.op(32, &[9, 0, 8]).op(32, &[10, 1, 5]); // pointers: UniformConstant, Input
    w.op(43, &[4, 20, 0.25f32.to_bits()]).op(43, &[4, 21, 1f32.to_bits()]);
    w.op(59, &[9, 30, 0]).op(59, &[10, 31, 1]);
    w.op(54, &[1, 40, 0, 2]).op(248, &[41]);
    w.op(61, &[5, 42, 31]); // load
    w.op(79, &[6, 43, 42, 42, 0, 1]); // xy
    w.op(81, &[3, 44, 42, 0]); // x
    w.op(112, &[4, 45, 44]).op(133, &[4, 46, 45, 20]); // as a float, times 0.25
    w.op(80, &[7, 47, 46, 46, 21, 21]); // vec4
    w.op(61, &[8, 48, 30]); // the image
    w.op(99, &[48, 43, 47]); // write
    w.op(253, &[]).op(56, &[]);
    w.0.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A module with a type and nothing else.
pub fn without_entry_point() -> Vec<u8> {
    let mut w = Words(vec![0x0723_0203, 0x0001_0300, 0, 64, 0]);
    w.op(17, &[1]).op(14, &[0, 1]).op(19, &[1]);
    w.0.iter().flat_map(|word| word.to_le_bytes()).collect()
}
