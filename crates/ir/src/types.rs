//! Scalar types and address spaces.

use std::fmt;

/// The type of a value. All arithmetic is scalar; a vector is just neighbouring operands of a memory operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Type {
    Bool,
    I8,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
    /// An address inside one address space: 32 bits.
    Ptr(Space),
}

/// Where memory lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// One copy per invocation: function and private variables.
    Private,
    /// One copy per work-group.
    Shared,
    /// Storage buffers.
    Storage,
    /// Uniform buffers: read-only while the program runs.
    Uniform,
    /// Push constants: read-only while the program runs.
    Push,
    /// Constant data of the module itself ([`crate::Module::constant_data`]).
    Constant,
    /// Memory reached through a 64-bit address of the host (physical storage buffers).
    Global,
}

impl Type {
    /// Width in bits. A boolean is 1 bit as a value and 32 bits in memory.
    pub fn bits(self) -> u32 {
        match self {
            Type::Bool => 1,
            Type::I8 => 8,
            Type::I16 | Type::F16 => 16,
            Type::I32 | Type::F32 | Type::Ptr(_) => 32,
            Type::I64 | Type::F64 => 64,
        }
    }

    /// Size in memory in bytes.
    pub fn bytes(self) -> u32 {
        if self == Type::Bool { 4 } else { self.bits() / 8 }
    }

    /// All ones over the bits of the type.
    pub fn mask(self) -> u64 {
        if self.bits() == 64 { u64::MAX } else { (1 << self.bits()) - 1 }
    }

    /// 8 to 64-bit integers (not booleans).
    pub fn is_int(self) -> bool {
        matches!(self, Type::I8 | Type::I16 | Type::I32 | Type::I64)
    }

    pub fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::F32 | Type::F64)
    }

    pub fn is_ptr(self) -> bool {
        matches!(self, Type::Ptr(_))
    }

    /// The integer type of a width in bits.
    pub fn int(bits: u32) -> Option<Type> {
        Some(match bits {
            8 => Type::I8,
            16 => Type::I16,
            32 => Type::I32,
            64 => Type::I64,
            _ => return None,
        })
    }

    /// The float type of a width in bits.
    pub fn float(bits: u32) -> Option<Type> {
        Some(match bits {
            16 => Type::F16,
            32 => Type::F32,
            64 => Type::F64,
            _ => return None,
        })
    }
}

impl Space {
    /// The name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Space::Private => "private",
            Space::Shared => "shared",
            Space::Storage => "storage",
            Space::Uniform => "uniform",
            Space::Push => "push",
            Space::Constant => "constant",
            Space::Global => "global",
        }
    }

    pub const ALL: [Space; 7] = [
        Space::Private,
        Space::Shared,
        Space::Storage,
        Space::Uniform,
        Space::Push,
        Space::Constant,
        Space::Global,
    ];

    /// Nothing that the program does changes it while it runs.
    pub fn is_read_only(self) -> bool {
        matches!(self, Space::Uniform | Space::Push | Space::Constant)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => f.write_str("bool"),
            Type::I8 => f.write_str("i8"),
            Type::I16 => f.write_str("i16"),
            Type::I32 => f.write_str("i32"),
            Type::I64 => f.write_str("i64"),
            Type::F16 => f.write_str("f16"),
            Type::F32 => f.write_str("f32"),
            Type::F64 => f.write_str("f64"),
            Type::Ptr(s) => write!(f, "ptr.{}", s.name()),
        }
    }
}
