module {
  tt.func public @softmax(%out: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %in: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
    %ninf = arith.constant dense<0xFC00> : tensor<1000xf16>
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %0, %stride : i32
    %2 = tt.make_range {end = 1000 : i32, start = 0 : i32} : tensor<1000xi32>
    %5 = tt.splat %n : i32 -> tensor<1000xi32>
    %6 = arith.cmpi slt, %2, %5 : tensor<1000xi32>
    %row = tt.addptr %in, %1 : !tt.ptr<f16>, i32
    %7 = tt.splat %row : !tt.ptr<f16> -> tensor<1000x!tt.ptr<f16>>
    %8 = tt.addptr %7, %2 : tensor<1000x!tt.ptr<f16>>, tensor<1000xi32>
    %9 = tt.load %8, %6, %ninf : tensor<1000x!tt.ptr<f16>>
    %10 = arith.extf %9 : tensor<1000xf16> to tensor<1000xf32>
    %max = "tt.reduce"(%10) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.maxnumf %a, %b : f32
      tt.reduce.return %m : f32
    }) : (tensor<1000xf32>) -> f32
    %11 = tt.splat %max : f32 -> tensor<1000xf32>
    %12 = arith.subf %10, %11 : tensor<1000xf32>
    %13 = math.exp %12 : tensor<1000xf32>
    %sum = "tt.reduce"(%13) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tt.reduce.return %m : f32
    }) : (tensor<1000xf32>) -> f32
    %14 = tt.splat %sum : f32 -> tensor<1000xf32>
    %15 = arith.divf %13, %14 : tensor<1000xf32>
    %16 = arith.truncf %15 : tensor<1000xf32> to tensor<1000xf16>
    %orow = tt.addptr %out, %1 : !tt.ptr<f16>, i32
    %17 = tt.splat %orow : !tt.ptr<f16> -> tensor<1000x!tt.ptr<f16>>
    %18 = tt.addptr %17, %2 : tensor<1000x!tt.ptr<f16>>, tensor<1000xi32>
    tt.store %18, %16, %6 : tensor<1000x!tt.ptr<f16>>
    tt.return
  }
}
