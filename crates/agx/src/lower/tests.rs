//! What addresses become: reference section 6.
