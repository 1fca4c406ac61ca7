// RUN:
// What a call of the author's own code must say of its operands.
tt.func @f(%x: f32) { "tt.raw_call"(%x) <{language = "ptx", layouts = [unit], names = ["x"], order = array<i32: 1>, source = "", symbol = "", threads = array<i32>, operandSegmentSizes = array<i32: 1, 0>}> : (f32) -> () tt.return }
// ERROR: `order` must have the number of each operand, once
// -----
// RUN:
tt.func @f(%x: f32) { "tt.raw_call"(%x) <{language = "ptx", layouts = [unit], names = [], order = array<i32: 0>, source = "", symbol = "", threads = array<i32>, operandSegmentSizes = array<i32: 1, 0>}> : (f32) -> () tt.return }
// ERROR: `names` must have one name for each operand
// -----
// RUN:
tt.func @f(%x: f32) { "tt.raw_call"(%x) <{language = "ptx", layouts = [], names = ["x"], order = array<i32: 0>, source = "", symbol = "", threads = array<i32>, operandSegmentSizes = array<i32: 1, 0>}> : (f32) -> () tt.return }
// ERROR: `layouts` must have one layout, or `unit`, for each operand
// -----
// RUN:
tt.func @f(%x: f32) { "tt.raw_call"(%x) <{language = "ptx", layouts = [unit], names = ["x"], order = array<i32: 0>, source = "", symbol = "", threads = array<i32>, operandSegmentSizes = array<i32: 0, 1>}> : (f32) -> () tt.return }
// ERROR: the outputs
// -----
// RUN:
tt.func @f(%x: f32) { "tt.raw_call"(%x) <{language = "ptx", layouts = [unit], names = ["x"], order = array<i32: 0>, source = "", symbol = "", threads = array<i32: 8, 0>, operandSegmentSizes = array<i32: 1, 0>}> : (f32) -> () tt.return }
// ERROR: `threads` must have at most three extents, each of at least 1
